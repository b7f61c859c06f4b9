"""What AWS would refuse beside a cluster that exists: nothing of a description that is taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from core.cluster import adoption
from core.ground.errors import InvalidInput
from local.refusals import gate
from stacks.program import main
from tests.unit.infra.aws_gate import wanted
from tests.unit.infra.recording import run_program
from tests.unit.infra.test_adopted import ADOPTED, KAFKA

NO_MACHINES: Mapping[str, Any] = {
    "scaling_groups": [],
    "managed_node_groups": [],
    "node_pools": [],
}
ACT: Mapping[str, Any] = {**NO_MACHINES, "level": "act", "kafkas": [KAFKA], "drainer": "none"}
SLACK = {
    "channel": "C0HARBOUR1",
    "secret_name": "s" * 255,
    "api_url": f"https://{'a' * 60}.example/{'b/' * 50}",
}
ALERTS = {"enabled": True, "email": ["oncall@example.org"]}


def groups(count: int, length: int) -> list[str]:
    return [f"kafka-{index:03}-".ljust(length, "g") for index in range(count)]


def servers(count: int, length: int) -> str:
    return ",".join(f"{f'b{index}'.ljust(length, 'b')}.example:9093" for index in range(count))


# At the edge of what is taken: one more of anything is refused (BEYOND).
TAKEN: Mapping[str, Mapping[str, Any]] = {
    "Karpenter alone, watched": {**NO_MACHINES, "node_pools": ["kafka"]},
    "Karpenter alone, gated": {
        **NO_MACHINES,
        "node_pools": ["kafka"],
        "level": "gate",
        "eviction_gate": {"image": "registry.example/gate:1"},
    },
    "many groups": {**ACT, "scaling_groups": groups(35, 40)},
    "many short groups": {**ACT, "scaling_groups": groups(57, 11)},
    "groups of any letters": {**ACT, "scaling_groups": ["Kafka nodes/eu (a) 'x' \"y\" é", "b!"]},
    "many managed groups": {**NO_MACHINES, "managed_node_groups": groups(25, 39)},
    "long NodePools": {
        **NO_MACHINES,
        "node_pools": [f"p{index}".ljust(63, "o") for index in range(10)],
    },
    "everything": {
        **ACT,
        "drainer": "theirs",
        "queue_url": f"https://sqs.us-east-1.amazonaws.com/111122223333/{'q' * 80}",
        "kafkas": [
            {
                **KAFKA,
                "called": "c" * 43,
                "name": "k" * 47,
                "namespace": "n" * 63,
                "credentials_secret": "s" * 63,
                "authority_secret": "a" * 63,
                "bootstrap": servers(3, 100),
            }
        ],
        "scaling_groups": groups(16, 40),
        "alerts": ALERTS,
        "pool_label": f"{'a' * 200}.example/{'l' * 63}",
        "slack": SLACK,
        "eviction_gate": {"image": "registry.example/gate:1"},
        "maintenance": {"start_utc": "03:00"},
    },
}
BEYOND: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "many groups": ({**ACT, "scaling_groups": groups(37, 40)}, "a rule of EventBridge's"),
    "many short groups": ({**ACT, "scaling_groups": groups(61, 11)}, "a role's policy"),
    "many managed groups": (
        {**NO_MACHINES, "managed_node_groups": groups(27, 39)},
        "a rule of EventBridge's",
    ),
    "long NodePools": (
        {**NO_MACHINES, "node_pools": [f"p{index}".ljust(63, "o") for index in range(20)]},
        "a function's environment",
    ),
    "a bootstrap of every broker": (
        {**ACT, "scaling_groups": ["g"], "kafkas": [{**KAFKA, "bootstrap": servers(40, 60)}]},
        "name fewer servers",
    ),
}


@pytest.mark.parametrize("changed", TAKEN.values(), ids=TAKEN.keys())
def test_of_what_is_taken_aws_refuses_nothing(changed: Mapping[str, Any], cache: None) -> None:
    raw = {"adopt": {**ADOPTED, **changed}}
    adoption.parse(raw)
    stack = run_program(
        main, stack_name="shop-operations", config={"cluster": json.dumps(raw)}, real_sizes=True
    )
    found = gate.all_refusals(wanted({"operations": stack}))
    assert [refusal.sentence for refusal in found] == []


@pytest.mark.parametrize(("changed", "words"), BEYOND.values(), ids=BEYOND.keys())
def test_what_aws_would_refuse_is_refused_before(changed: Mapping[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        adoption.parse({"adopt": {**ADOPTED, **changed}})
