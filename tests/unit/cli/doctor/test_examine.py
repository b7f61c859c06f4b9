"""cli.doctor.examine: parts that cannot be read are named; a diagnosis for people and programs."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from cli.answers import UNFORESEEN
from cli.doctor import examine
from cli.doctor.account import Found, KubernetesCluster, LiveAccount
from cli.doctor.examine import Diagnosis, _read
from cli.terminal import show_findings
from core.checks.drift import drift, findings
from core.checks.expected import expectation_of
from core.checks.facts import hook_of
from core.checks.finding import Finding, Weight, unknown, worst_first, worth_knowing
from core.ground.errors import StillwaterError
from core.ground.fields import Unknown
from infra.spec import ROOT
from infra.spec import read as read_spec
from tests.unit.core.checks.test_drift import broker, volume
from tests.unit.infra.programs import spec

WANTED = expectation_of(spec(), []).snapshot
Readers = list[tuple[tuple[str, ...], Callable[..., Iterator[Found]]]]


class Side:
    """The AWS side or the Kubernetes side, with readers of our own."""

    def __init__(self, readers: Readers, api: Callable[[], Any] = object) -> None:
        self._readers, self.api = readers, api

    def readers(self) -> Readers:
        return self._readers


def read(account: Readers, cluster: Readers, api: Callable[[], Any] = object) -> Any:
    return _read(
        WANTED, cast("LiveAccount", Side(account)), cast("KubernetesCluster", Side(cluster, api))
    )


def refused() -> ClientError:
    said = {"Code": "AccessDenied", "Message": "not\n authorized."}
    return ClientError({"Error": said}, "DescribeListeners")


def queues() -> Iterator[Found]:
    yield "queues", {}


def pods(api: object) -> Iterator[Found]:
    yield "pods", {"api": api}


def test_a_cluster_nobody_can_reach_costs_nothing_of_aws() -> None:
    def unreachable() -> Any:
        raise StillwaterError("There is no such cluster.")

    snapshot, unread = read([(("queues",), queues)], [(("pods",), pods)], unreachable)
    assert snapshot.queues == {}
    seen = Unknown("There is no such cluster", "see to what it says, and ask again")
    assert unread == [unknown("Kafka's pods", seen)]


def test_an_answer_that_nobody_foresaw_is_unread_and_costs_no_other_part() -> None:
    def odd() -> Iterator[Found]:
        raise KeyError("spec")

    snapshot, unread = read(
        [(("queues",), odd), (("balancers",), lambda: iter([("balancers", {})]))], []
    )
    assert snapshot.balancers == {}
    said = Unknown("the answer is not as documented (KeyError: 'spec')", UNFORESEEN)
    assert unread == [unknown("queues", said)]


FINDING = Finding("drift", Weight.DRIFT, "queue x", "expected present, found missing", "look")
UNREAD = unknown("queues", Unknown("refused"))
KNOWN = worth_knowing("pause", "orders", "it is paused", "resume it")


@pytest.mark.parametrize(
    ("findings", "code"),
    [([], 0), ([KNOWN], 0), ([FINDING], 1), ([UNREAD], 2), ([FINDING, UNREAD], 2)],
)
def test_the_exit_code_says_clean_found_or_not_read(findings: list[Finding], code: int) -> None:
    assert diagnosis(findings).exit_code == code


def diagnosis(findings: list[Finding]) -> Diagnosis:
    return Diagnosis(
        environment="test",
        cluster="test-orders",
        account="123456789012",
        region="us-east-1",
        seconds=1.234,
        findings=findings,
    )


MARKUP = drift("volume [bold]", "Retain", "[red]Delete", "-p '{\"spec\":{}}'")


def printed(seen: Diagnosis) -> str:
    console = Console(file=io.StringIO(), width=110)
    show_findings(seen.findings, console, examine.verdict(seen))
    return str(console.file.getvalue())


def test_a_healthy_cluster_is_one_line() -> None:
    assert printed(diagnosis([])) == (
        "test-orders in account 123456789012, us-east-1: everything is as its description says "
        "(1.2 s).\n"
    )


def test_what_was_not_read_is_said_and_counted() -> None:
    said = printed(diagnosis([UNREAD]))
    assert "unknown: queues: it could not be read: refused;" in said
    assert "us-east-1: 1 x unknown" in said


def test_the_guides_sample_is_what_the_doctor_prints() -> None:
    spec = read_spec(ROOT / "stacks" / "config" / "clusters" / "example.yaml")
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
            [*findings(wanted, drifted), unknown("alarms", Unknown(f"{refused}authorized"))]
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
