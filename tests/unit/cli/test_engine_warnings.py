"""What a program warns of is told where its layer's run is."""

from __future__ import annotations

from pulumi.automation import EngineEvent
from pulumi.automation.events import DiagnosticEvent

from cli import provision
from cli.engine.progress import EngineWatch

URN = "urn:pulumi:test-analytics::stillwater::pulumi:pulumi:Stack::stillwater-test-analytics"
WARNED = "pip found no pyarrow. Reports on EMR read bills line by line."


def said(severity: str, message: str, urn: str | None = URN) -> EngineEvent:
    diagnostic = DiagnosticEvent(
        message=message,
        color="never",
        severity=severity,
        urn=urn,
        prefix="",
        ephemeral=False,
        stream_id=0,
    )
    return EngineEvent(sequence=1, timestamp=1, diagnostic_event=diagnostic)


def test_a_warning_is_kept_once_apart_from_errors_and_information() -> None:
    watch = EngineWatch("analytics", None)
    for severity in ("info", "warning", "warning", "error"):
        watch(said(severity, f"{WARNED}<{{%reset%}}>\n"))
    assert (watch.warnings, watch.problems) == ([WARNED], [WARNED])
    result = watch.result(1.0, {})
    assert provision._warnings([result]) == [f"Warning: {WARNED}"]
