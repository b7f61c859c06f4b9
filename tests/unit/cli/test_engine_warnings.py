"""What a program warns of is told where its layer's run is."""

from __future__ import annotations

from pulumi.automation import EngineEvent
from pulumi.automation.events import DiagnosticEvent, SummaryEvent

from cli import provision
from cli.engine.events import EngineWatch

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
    watch(EngineEvent(sequence=2, timestamp=2, summary_event=SummaryEvent(False, 1, {}, {})))
    assert (watch.warnings, watch.problems) == ([WARNED], [WARNED])
    result = watch.result(1.0, {})
    assert provision._warnings([result]) == [f"Warning: {WARNED}"]


def test_an_engine_that_says_what_nobody_can_read_is_told_of() -> None:
    # Its reader ends at such an event, and so no summary comes.
    (warning,) = EngineWatch("analytics", None).result(1.0, {}).warnings
    assert "cannot read, so what it did is not all shown" in warning
