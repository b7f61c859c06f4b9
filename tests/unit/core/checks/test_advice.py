"""core.checks.advice: what works today and costs something later is a warning, with a remedy."""

from __future__ import annotations

from typing import Any

import pytest

from core.checks.table import description_findings
from core.cluster import ClusterSpec, parse

ZONES = ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"]


def spec(controllers: int = 3, brokers: list[str] | None = None, **kafka: Any) -> ClusterSpec:
    """A cluster in four zones, its controllers in the first ones."""
    node = {"instance_type": "r7g.xlarge", "nodes_per_zone": 3}
    return parse(
        {
            "name": "orders",
            "environment": "test",
            "region": "us-east-1",
            "availability_zones": ZONES,
            "pools": [
                {
                    **node,
                    "name": "controller",
                    "role": "controller",
                    "zones": ZONES[:controllers],
                    "nodes_per_zone": 1,
                    "first_node_id": 0,
                },
                {
                    **node,
                    "name": "broker",
                    "role": "broker",
                    "zones": brokers,
                    "first_node_id": 100,
                },
            ],
            "kafka": kafka,
        }
    )


def advice(described: ClusterSpec) -> list[str]:
    """Return what is worth knowing of a description, but for roles that are two in one."""
    found, _accepted = description_findings(described)
    return [each.line for each in found if each.check != "combined"]


def test_three_voters_by_name_and_brokers_everywhere_need_no_advice() -> None:
    assert advice(spec()) == []


@pytest.mark.parametrize("role", ["controller", "combined"])
def test_controllers_that_would_follow_a_new_zone_are_warned_of(role: str) -> None:
    changed = spec().model_dump(mode="json")
    changed["availability_zones"] = ZONES[:3]
    changed["pools"][0] |= {"role": role, "zones": None}
    (sentence,) = advice(parse(changed))
    assert sentence == (
        "worth knowing: pool controller: it has controllers in all of availability_zones: a zone "
        "added later adds controllers, and Strimzi cannot add a voter to a live cluster; set zones "
        "of the pool to [us-east-1a, us-east-1b, us-east-1c], which changes nothing today."
    )


def test_voters_of_several_pools_are_counted_together() -> None:
    changed = spec(2).model_dump(mode="json")
    combined = {**changed["pools"][1], "name": "both", "role": "combined", "first_node_id": 200}
    changed["pools"].append({**combined, "nodes_per_zone": 1, "zones": ZONES[2:3]})
    assert advice(parse(changed)) == []


def changed(**settings: Any) -> list[str]:
    raw = spec().model_dump(mode="json")
    pools = [{**raw["pools"][0], **settings.pop("pool", {})}, raw["pools"][1]]
    return advice(parse({**raw, "pools": pools, **settings}))


def test_a_heap_of_connects_that_leaves_java_too_little_is_warned_of() -> None:
    assert changed(connect={"heap_mib": 1638}) == []
    (said,) = changed(connect={"heap_mib": 2000})
    assert "connect: the heap of its workers may take more than 80%" in said


def test_addresses_that_nobody_writes_to_are_warned_of() -> None:
    (said,) = changed(alerts={"enabled": False, "email": ["a@example.org"]})
    assert "so that a@example.org would never be told" in said
    assert changed(alerts={"enabled": False}) == []
    assert changed(alerts={"email": ["a@example.org"]}) == []


@pytest.mark.parametrize(("partitions", "said"), [(10_000, True), (12, False)])
def test_more_replicas_than_a_broker_hands_over_are_a_warning(
    partitions: int, *, said: bool
) -> None:
    raw = spec().model_dump(mode="json", exclude_unset=True)
    topics = [{"name": f"t{n}", "partitions": partitions} for n in range(2)]
    found = advice(parse({**raw, "topics": topics}))
    assert any("Kafka advises 4000 at the most" in each for each in found) is said
