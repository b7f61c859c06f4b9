"""cli.provision: changes as a person reads them, and the question before anything is done."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from pulumi.automation import OpType
from rich.console import Console

from cli import provision
from cli.engine.events import HIDDEN, Changes, LayerResult, kind_of
from core.ground.errors import StillwaterError
from tests.every_case import every_case
from tests.unit.cli.keyboard import Keyboard

STACK = "urn:pulumi:prod-kafka::stillwater::"
NODES = "stillwater:infra:BrokerNodes$"
GROUP = "aws:autoscaling/group:Group"
SECRET = "kubernetes:core/v1:Secret"


def metadata(op: OpType, resource: str, name: str, parents: str = "", **fields: Any) -> Any:
    urn = f"{STACK}{parents}{resource}::{name}"
    return SimpleNamespace(op=op, urn=urn, type=resource, **fields)


def state(protect: bool = False, **inputs: Any) -> Any:
    return SimpleNamespace(protect=protect, inputs=inputs)


def lines(*steps: Any, diff: bool = False) -> list[str]:
    changes = Changes()
    for step in steps:
        changes.add(step)
    result = LayerResult(layer="kafka", seconds=0.0, changes=changes.all())
    return [line for line, _ in provision.lines(result, diff=diff)]


def test_resources_are_named_by_what_they_are_under_the_part_they_belong_to() -> None:
    said = lines(
        metadata(OpType.CREATE, GROUP, "broker-a", NODES, new=state(name="prod-orders-broker-a")),
        metadata(OpType.CREATE, "kubernetes:kafka.strimzi.io/v1:KafkaNodePool", "pool"),
        metadata(OpType.SAME, GROUP, "broker-b", NODES),
        metadata(OpType.CREATE, "stillwater:infra:BrokerNodes", "nodes"),
        metadata(OpType.CREATE, "pulumi:providers:aws", "aws"),
    )
    assert said == [
        "kafka: 2 to create",
        "  Broker nodes",
        "    + Auto Scaling group prod-orders-broker-a",
        "  Other",
        "    + KafkaNodePool pool",
    ]


def test_a_replacement_is_one_line_with_its_cause_and_comes_before_what_only_adds() -> None:
    said = lines(
        metadata(OpType.CREATE, GROUP, "b", NODES),
        metadata(OpType.CREATE_REPLACEMENT, GROUP, "a", NODES, keys=["name"]),
        metadata(OpType.REPLACE, GROUP, "a", NODES, keys=["name"], old=state(protect=True)),
        metadata(OpType.DELETE_REPLACED, GROUP, "a", NODES),
    )
    assert said == [
        "kafka: 1 to create, 1 to replace",
        "  Broker nodes",
        "    ! Auto Scaling group a: made anew because of name; protected: the engine refuses",
        "    + Auto Scaling group b",
    ]


def test_values_that_differ_are_shown_when_asked_for() -> None:
    step = metadata(
        OpType.UPDATE,
        GROUP,
        "a",
        old=state(maxSize=3, tags=[{"key": "x"}]),
        new=state(maxSize=6, tags=[{"key": "y"}]),
        detailed_diff={"maxSize": object(), "tags[0].key": object(), 'labels["a.b"]': object()},
    )
    assert lines(step)[-1].endswith('a: labels["a.b"], maxSize, tags[0].key')
    assert lines(step, diff=True)[-3:] == [
        '        labels["a.b"]: nothing -> nothing',
        "        maxSize: 3 -> 6",
        "        tags[0].key: x -> y",
    ]


def test_no_value_of_a_secret_is_ever_shown() -> None:
    step = metadata(
        OpType.UPDATE,
        SECRET,
        "token",
        old=state(stringData={"token": "xoxb-old"}),
        new=state(stringData={"token": "xoxb-new"}),
        detailed_diff={"stringData.token": object()},
    )
    shown = "\n".join(lines(step, diff=True))
    assert "xoxb" not in shown
    assert f"stringData.token: {HIDDEN} -> {HIDDEN}" in shown


def test_a_layer_that_could_not_be_planned_says_why() -> None:
    result = LayerResult(layer="kafka", seconds=0.0, skipped="Bring platform up first.")
    assert provision.lines(result) == [("kafka: Bring platform up first.", None)]


@every_case(
    ("resource", "words"),
    [
        ("aws:ec2/securityGroupRule:SecurityGroupRule", "security group rule"),
        ("aws:iam/rolePolicy:RolePolicy", "IAM role policy"),
        ("aws:sqs/queuePolicy:QueuePolicy", "SQS queue policy"),
        ("aws:eks/addon:Addon", "EKS add-on"),
        ("aws:ec2/vpcEndpoint:VpcEndpoint", "VPC endpoint"),
        ("aws:lb/targetGroup:TargetGroup", "load balancer target group"),
        ("aws:backup/vault:Vault", "backup vault"),
        ("kubernetes:policy/v1:PodDisruptionBudget", "PodDisruptionBudget"),
    ],
)
def test_a_type_without_an_entry_is_said_in_its_own_words(resource: str, words: str) -> None:
    assert kind_of(resource) == words


def asked(answer: str, console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard())
    monkeypatch.setattr(console, "input", lambda *_a, **_k: answer)
    provision.ask_for_agreement("Remove prod?", "prod", console, yes=False)


def test_only_the_answer_that_is_asked_for_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, force_interactive=True)
    asked(" prod ", terminal, monkeypatch)
    for answer in ("y", "yes", "PROD", ""):
        with pytest.raises(StillwaterError, match="Nothing was changed"):
            asked(answer, terminal, monkeypatch)


def test_ctrl_d_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard())
    terminal = Console(file=io.StringIO(), force_terminal=True, force_interactive=True)
    with pytest.raises(StillwaterError, match="Nothing was changed: there was no answer"):
        provision.ask_for_agreement("Remove prod?", "prod", terminal, yes=False)


def test_a_terminal_whose_input_is_elsewhere_is_asked_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("prod"))
    terminal = Console(file=io.StringIO(), force_terminal=True, force_interactive=True)
    with pytest.raises(StillwaterError, match="say --yes"):
        provision.ask_for_agreement("Remove prod?", "prod", terminal, yes=False)


def test_where_nobody_can_answer_only_yes_goes_on() -> None:
    pipe = Console(file=io.StringIO())
    provision.ask_for_agreement("Remove prod?", "prod", pipe, yes=True)
    with pytest.raises(StillwaterError, match="say --yes"):
        provision.ask_for_agreement("Remove prod?", "prod", pipe, yes=False)
