"""The components that operate a Kafka that exists make what a description's stack makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from core.ground.errors import InvalidInput
from infra.package.operations import EvictionGate, Operations
from stacks.program import main
from tests.unit.infra.recording import CA, ENDPOINT, Recorded, run_program

SUBNET, SECURITY_GROUP = "subnet-0123456789abcdef0", "sg-0123456789abcdef0"
IMAGE, QUEUE = "registry.example/gate:1.4", "https://sqs.us-east-1.amazonaws.com/000000000000/nth"
TOPIC = "arn:aws:sns:us-east-1:000000000000:pager"
KAFKA: dict[str, Any] = {
    "namespace": "shop-kafka",
    "name": "orders",
    "bootstrap": "kafka.shop.example:9093",
    "credentials_secret": "eyes",
    "authentication": "tls",
}
MACHINES: dict[str, Any] = {"scaling_groups": ["kafka-a", "kafka-b"], "pool_label": "kafka-pool"}
CLUSTER: dict[str, Any] = {
    "cluster": "shop-orders",
    "eks_cluster": "shop",
    "endpoint": ENDPOINT,
    "certificate_authority": CA,
    "kafka": KAFKA,
    "machines": MACHINES,
}
OPERATIONS: dict[str, Any] = {
    **CLUSTER,
    "level": "watch",
    "subnet_ids": [SUBNET],
    "security_group_ids": [SECURITY_GROUP],
}
GATE: dict[str, Any] = {
    **CLUSTER,
    "image": IMAGE,
    "ledger_table": "shop-orders-incidents",
    "ticks_queue_url": "https://sqs.us-east-1.amazonaws.com/000000000000/shop-orders-ticks",
}
DESCRIBED: dict[str, Any] = {
    "eks_cluster": "shop",
    "region": "us-east-1",
    "kafkas": [KAFKA],
    **MACHINES,
    "subnets": [SUBNET],
    "security_groups": [SECURITY_GROUP],
}
# How far, as arguments and as the description's keys.
LEVELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "watch": (
        {"slack_channel": "C0HARBOUR1", "slack_secret_name": "shop/slack"},
        {"slack": {"channel": "C0HARBOUR1", "secret_name": "shop/slack"}},
    ),
    "gate": (
        {"gate_image": IMAGE, "alerts_topic_arn": TOPIC},
        {"eviction_gate": {"image": IMAGE}, "alerts": {"sns_topic_arn": TOPIC}},
    ),
    "act": ({"queue_url": QUEUE}, {"queue_url": QUEUE}),
}


def made(kind: Any, args: Mapping[str, Any]) -> Recorded:
    return run_program(lambda: kind("shop-orders", args, None))


def inputs(recorded: Recorded) -> dict[tuple[str, str], Any]:
    """Return what is made, without who makes it."""
    return {
        (each.type, each.name): json.dumps(each.inputs, sort_keys=True, default=str)
        for each in recorded.resources
        if not each.type.startswith(("pulumi:", "stillwater:"))
    }


@pytest.mark.parametrize("level", LEVELS)
def test_it_makes_what_the_stack_of_a_description_makes(level: str) -> None:
    arguments, described = LEVELS[level]
    adopt = {**DESCRIBED, "level": level, **described}
    stack = run_program(
        main, stack_name="shop-operations", config={"cluster": json.dumps({"adopt": adopt})}
    )
    component = made(Operations, {**OPERATIONS, "level": level, **arguments})
    assert inputs(component) == inputs(stack)


def test_a_gate_made_elsewhere_is_the_one_that_is_not_made_here() -> None:
    args = {**OPERATIONS, "level": "gate", "gate_image": IMAGE}
    here = inputs(made(Operations, args))
    rest = inputs(made(Operations, {**args, "gate_elsewhere": True}))
    gate = {
        (kind, name.replace("shop-orders-", "shop-orders-gate-", 1)) for kind, name in made_of(GATE)
    }
    assert rest.keys() < here.keys()
    assert here.keys() - rest.keys() == gate


def made_of(args: Mapping[str, Any]) -> set[tuple[str, str]]:
    return set(inputs(made(EvictionGate, args)))


def test_functions_stand_in_subnets_that_are_known_late() -> None:
    def program() -> None:
        late = pulumi.Output.from_input(SUBNET)
        Operations("shop-orders", {**OPERATIONS, "subnet_ids": [late]})  # type: ignore[typeddict-item]

    (tick,) = [
        each
        for each in run_program(program).of("lambda/function:Function")
        if each.inputs["name"] == "shop-orders-tick"
    ]
    assert tick.inputs["vpcConfig"]["subnetIds"] == [SUBNET]


@pytest.mark.parametrize(
    ("kind", "args", "sentence"),
    [
        (
            Operations,
            {**OPERATIONS, "level": "own"},
            "level is 'own'; it must be one of watch, gate, act.",
        ),
        (
            Operations,
            {**OPERATIONS, "level": "gate"},
            "level is gate and gateImage is not set; name the gate's image in it",
        ),
        (
            Operations,
            {**OPERATIONS, "machines": {"scaling_groups": ["taken"], "pool_label": "pool"}}
            | {"level": "act", "queue_url": QUEUE},
            "taken has the tag stillwater:cluster=lab: another Stillwater manages it; leave it",
        ),
        (
            EvictionGate,
            {**GATE, "image": "registry.example/gate"},
            "image is 'registry.example/gate': registry.example/gate names no version",
        ),
        (
            EvictionGate,
            {**GATE, "kafka": {**KAFKA, "namespace": "Shop"}},
            "kafka.namespace",
        ),
        (EvictionGate, {**GATE, "machines": {}}, "machines.scalingGroups"),
    ],
    ids=[
        "no such level",
        "no image",
        "another's group",
        "no version",
        "a namespace",
        "no machines",
    ],
)
def test_a_mistake_is_a_sentence(kind: Any, args: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        made(kind, args)
    assert sentence in str(refused.value)
    assert "adopt." not in str(refused.value)
