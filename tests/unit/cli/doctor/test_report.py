"""cli.doctor.report: everything a diagnosis holds, for people and for programs."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from cli.doctor import report
from cli.doctor.examine import Diagnosis, UnknownPart
from core.checks.drift import Drift, findings
from core.checks.expected import expectation_of
from core.model.snapshot import Pod, Volume, hook_of
from infra.spec import ROOT, read
from tests.unit.cli.doctor.test_examine import FINDING, UNREAD, diagnosis

MARKUP = Drift("volume [bold]", "Retain", "[red]Delete", "-p '{\"spec\":{}}'")


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


def test_a_remedy_of_several_findings_is_said_once_and_on_one_line() -> None:
    long = Drift("a", "b", "c", f"run `{'x' * 300}`")
    lines = shown([FINDING, long, FINDING], []).splitlines()
    assert "1, 3: look." in lines
    assert f"2: run `{'x' * 300}`." in lines


def test_what_was_not_read_is_said_and_the_rest_not_called_everything() -> None:
    said = shown([], [UNREAD])
    assert "queues could not be read: refused." in said
    assert "What was read is as its spec says" in said


def test_the_guides_sample_is_what_the_doctor_prints() -> None:
    spec = read(ROOT / "stacks" / "config" / "clusters" / "example.yaml")
    wanted = expectation_of(spec, [])
    asked = wanted.snapshot
    hooks, groups = dict(asked.hooks or {}), dict(asked.groups or {})
    hook, group = hook_of("drain", "example-orders-broker-a"), "example-orders-broker-b"
    hooks[hook] = replace(hooks[hook], default_result="CONTINUE")
    groups[group] = replace(groups[group], maximum=1)
    drifted = replace(
        asked,
        hooks=hooks,
        groups=groups,
        services=None,
        pods={"orders-broker-c-30": Pod(node_id=30, is_broker=True, gates=frozenset())},
        volumes={"pvc-5b1e": Volume(claim="data-0-orders-broker-a-10", reclaim_policy="Delete")},
    )
    seen = Diagnosis(
        environment="example",
        cluster=spec.prefix,
        account="111122223333",
        region=spec.region,
        seconds=1.9,
        findings=findings(wanted, drifted),
        unread=[
            UnknownPart(
                "alarms",
                "An error occurred (AccessDenied) when calling the DescribeAlarms operation: not "
                "authorized",
            )
        ],
    )
    console = Console(file=io.StringIO(), width=110)
    report.show(seen, console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert printed.strip() in (ROOT / "docs" / "how-to" / "doctor.md").read_text()


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


def test_a_door_without_a_lock_is_named_and_is_no_difference() -> None:
    said = "kafka.listener has anonymous_clients: whoever reaches it may do everything."
    open_door = Diagnosis(
        environment="try",
        cluster="try-orders",
        account="123456789012",
        region="us-east-1",
        seconds=1.0,
        findings=[],
        unread=[],
        open_doors=[said],
    )
    assert open_door.exit_code == 0
    console = Console(file=io.StringIO(), width=100)
    report.show(open_door, console)
    assert said in str(console.file.getvalue())  # type: ignore[attr-defined]
