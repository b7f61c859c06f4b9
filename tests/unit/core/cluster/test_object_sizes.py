"""core.cluster.object_sizes: what would not fit into one object of Kubernetes."""

from __future__ import annotations

from typing import Any

from core.cluster import contradictions, parse
from tests.every_case import every_case
from tests.unit.infra.programs import description


def found(changed: dict[str, Any]) -> list[str]:
    return contradictions.problems(parse(description(**changed)))


def allowed(count: int) -> dict[str, Any]:
    return {"metrics": {"allow": [f"kafka_team_{number:06}_.*" for number in range(count)]}}


def reading(count: int) -> list[dict[str, Any]]:
    return [
        {"resource": "topic", "name": f"orders-{number:06}", "operations": ["Read"]}
        for number in range(count)
    ]


@every_case(
    ("changed", "words"),
    [
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
    assert found({**allowed(30_000), "users": [{"name": "billing", "acls": reading(9_000)}]}) == []
