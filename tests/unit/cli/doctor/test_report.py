"""cli.doctor.report: everything a diagnosis holds, for people and for programs."""

from __future__ import annotations

import io
import json

from rich.console import Console

from cli.doctor import report
from core.drift import Finding
from tests.unit.cli.doctor.test_examine import FINDING, UNREAD, diagnosis

MARKUP = Finding("volume [bold]", "Retain", "[red]Delete", "-p '{\"spec\":{}}'")


def shown(*arguments: list) -> str:  # type: ignore[type-arg]
    console = Console(file=io.StringIO(), width=200)
    report.show(diagnosis(*arguments), console)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_a_healthy_cluster_is_one_line() -> None:
    assert shown([], []) == (
        "test-orders in account 123456789012, us-east-1: Everything is as its spec says (1.2 s).\n"
    )


def test_a_finding_is_shown_with_both_values_and_its_remedy_as_they_are() -> None:
    said = shown([MARKUP], [])
    for text in ("volume [bold]", "Retain", "[red]Delete", "-p '{\"spec\":{}}'"):
        assert text in said
    assert "1 thing is not as the spec says" in said


def test_what_was_not_read_is_said_and_the_rest_not_called_everything() -> None:
    said = shown([], [UNREAD])
    assert "queues could not be read: refused." in said
    assert "What was read is as its spec says" in said


def test_json_holds_all_of_it() -> None:
    said = json.loads(report.as_json(diagnosis([FINDING, MARKUP], [UNREAD])))
    assert said["exit_code"] == 2
    assert said["account"] == "123456789012"
    assert said["findings"][0] == {
        "what": "queue x",
        "expected": "present",
        "found": "missing",
        "remedy": "look",
    }
    assert said["unread"] == [{"part": "queues", "reason": "refused"}]
