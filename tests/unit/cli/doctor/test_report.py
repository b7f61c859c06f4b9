"""cli.doctor.examine: everything a diagnosis holds, for people and for programs."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from cli.doctor import examine
from cli.doctor.examine import Diagnosis
from cli.terminal import show_findings
from core.checks.drift import drift, findings
from core.checks.expected import expectation_of
from core.checks.facts import hook_of
from core.checks.finding import unknown, worst_first
from core.ground.fields import Unknown
from infra.spec import ROOT, read
from tests.unit.cli.doctor.test_examine import FINDING, UNREAD, diagnosis
from tests.unit.core.checks.test_drift import broker, volume

MARKUP = drift("volume [bold]", "Retain", "[red]Delete", "-p '{\"spec\":{}}'")


def printed(seen: Diagnosis) -> str:
    console = Console(file=io.StringIO(), width=110)
    show_findings(seen.findings, console, examine.verdict(seen))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_a_healthy_cluster_is_one_line() -> None:
    assert printed(diagnosis([])) == (
        "test-orders in account 123456789012, us-east-1: everything is as its description says "
        "(1.2 s).\n"
    )


def test_a_finding_is_one_line_with_both_values_and_its_remedy_as_they_are() -> None:
    first, last = printed(diagnosis([MARKUP])).splitlines()
    assert first == (
        "not as described: volume [bold]: expected Retain, found [red]Delete; -p '{\"spec\":{}}'."
    )
    assert "1 x not as described" in last


def test_what_was_not_read_is_said_and_counted() -> None:
    said = printed(diagnosis([UNREAD]))
    assert "unknown: queues: it could not be read: refused;" in said
    assert "us-east-1: 1 x unknown" in said


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
        pods={"orders-broker-c-30": broker(30, readiness_gates=frozenset())},
        volumes={"pvc-5b1e": volume("Delete")},
    )
    refused = "An error occurred (AccessDenied) when calling the DescribeAlarms operation: not "
    seen = Diagnosis(
        environment="example",
        cluster=spec.prefix,
        account="111122223333",
        region=spec.region,
        seconds=1.9,
        findings=worst_first(
            [
                *findings(wanted, drifted),
                unknown("alarms", Unknown(f"{refused}authorized")),
            ]
        ),
    )
    assert printed(seen).strip() in (ROOT / "docs" / "how-to" / "doctor.md").read_text()


def test_json_holds_all_of_it() -> None:
    said = json.loads(examine.as_json(diagnosis([FINDING, MARKUP, UNREAD])))
    assert said["exit_code"] == 2
    assert said["account"] == "123456789012"
    assert said["findings"][0] == {
        "check": "drift",
        "weight": "not as described",
        "subject": "queue x",
        "evidence": "expected present, found missing",
        "remedy": "look",
    }
