"""core.cluster.limits: what would not fit into one object of Kubernetes."""

from __future__ import annotations

from typing import Any

from core.checks import contradictions
from core.cluster import parse
from tests.every_case import every_case
from tests.unit.infra.programs import BROKER, CONTROLLER, description


def found(changed: dict[str, Any]) -> list[str]:
    return contradictions.problems(parse(description(**changed)))


def allowed(count: int) -> dict[str, Any]:
    return {"metrics": {"allow": [f"kafka_team_{number:06}_.*" for number in range(count)]}}


def reading(count: int) -> list[dict[str, Any]]:
    return [
        {"resource": "topic", "name": f"orders-{number:06}", "operations": ["Read"]}
        for number in range(count)
    ]


def gate(count: int) -> dict[str, Any]:
    names = [f"system:serviceaccount:{'n' * 60}:{'x' * 240}{number:05}" for number in range(count)]
    return {"eviction_gate": {"image": "registry.example/gate:1", "operators": names}}


def voters(pools: int) -> dict[str, Any]:
    zones = [f"us-east-1{letter}" for letter in "abcdef"]
    many = {"nodes_per_zone": 50, "node_ids_per_zone": 50}
    named = [
        {**CONTROLLER, **many, "name": f"p{number:02}", "first_node_id": 300 * number}
        for number in range(pools)
    ]
    return {"availability_zones": zones, "pools": [*named, {**BROKER, "first_node_id": 50_000}]}


@every_case(
    ("changed", "words"),
    [
        (gate(290), "operators takes 96280 characters, and the expression of Kubernetes' webhook"),
        (voters(24), "pools have 7206 nodes, a list of 409633 bytes, and the item of DynamoDB"),
        (allowed(50_000), "metrics.allow takes 1200000 bytes, and one object of Kubernetes has"),
        ({"users": [{"name": "billing", "acls": reading(15_000)}]}, "acls of user billing takes"),
        ({"connect": {"acls": reading(15_000)}}, "connect.acls takes"),
        (
            {"topics": [{"name": "t", "config": {"compression.type": "z" * 1_000_000}}]},
            "config of topic t takes",
        ),
    ],
)
def test_what_no_object_has_room_for_is_refused(changed: dict[str, Any], words: str) -> None:
    sentences = found(changed)
    assert any(words in sentence for sentence in sentences), [each[:200] for each in sentences]
    assert all(len(sentence) < 400 for sentence in sentences)


def test_what_is_large_and_fits_is_taken() -> None:
    assert found({**gate(285), **voters(22)}) == []
    assert found({**allowed(30_000), "users": [{"name": "billing", "acls": reading(9_000)}]}) == []
