"""core.checks.advice: what works today and costs something later is a warning, with a remedy."""

from __future__ import annotations

from typing import Any

import pytest

from core.checks.advice import advice
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


def test_three_voters_by_name_and_brokers_everywhere_need_no_advice() -> None:
    assert advice(spec()) == []


@pytest.mark.parametrize("role", ["controller", "combined"])
def test_controllers_that_would_follow_a_new_zone_are_warned_of(role: str) -> None:
    changed = spec().model_dump(mode="json")
    changed["availability_zones"] = ZONES[:3]
    changed["pools"][0] |= {"role": role, "zones": None}
    (sentence,) = advice(parse(changed))
    assert sentence == (
        "Pool controller has controllers in all of availability_zones: a zone added later adds "
        "controllers, and Strimzi cannot add a voter to a live cluster; set zones of the pool to "
        "[us-east-1a, us-east-1b, us-east-1c], which changes nothing today."
    )


@pytest.mark.parametrize(("voters", "losses"), [(2, 0), (4, 1)])
def test_an_even_number_of_voters_is_no_better_than_one_fewer(voters: int, losses: int) -> None:
    (sentence,) = advice(spec(voters))
    assert sentence == (
        f"{voters} controllers are an even number of voters: their quorum bears the loss of "
        f"{losses}, as {voters - 1} would; let them be an odd number, before the first `up`."
    )


def test_voters_of_several_pools_are_counted_together() -> None:
    changed = spec(2).model_dump(mode="json")
    combined = {**changed["pools"][1], "name": "both", "role": "combined", "first_node_id": 200}
    changed["pools"].append({**combined, "nodes_per_zone": 1, "zones": ZONES[2:3]})
    assert advice(parse(changed)) == []


@pytest.mark.parametrize(
    ("brokers", "words"),
    [
        (ZONES[:2], ("Brokers stand in 2 zones", "hold 2 of a partition's 3", "1 are left")),
        (ZONES[:1], ("Brokers stand in 1 zone,", "hold 3 of a partition's 3", "0 are left")),
    ],
)
def test_a_zone_whose_loss_stops_producers_is_warned_of(
    brokers: list[str], words: tuple[str, ...]
) -> None:
    (sentence,) = advice(spec(brokers=brokers))
    for word in (*words, "min_insync_replicas asks for 2"):
        assert word in sentence


def test_enough_replicas_in_the_other_zone_are_enough() -> None:
    assert advice(spec(brokers=ZONES[:2], default_replication_factor=4)) == []


def test_a_cluster_in_one_zone_has_chosen_that() -> None:
    changed = spec(1, brokers=ZONES[:1]).model_dump(mode="json")
    assert advice(parse({**changed, "availability_zones": ZONES[:1]})) == []


def changed(**settings: Any) -> list[str]:
    raw = spec().model_dump(mode="json")
    pools = [{**raw["pools"][0], **settings.pop("pool", {})}, raw["pools"][1]]
    return advice(parse({**raw, "pools": pools, **settings}))


def test_a_heap_that_leaves_java_too_little_is_warned_of() -> None:
    assert changed(pool={"heap_mib": 6553}, connect={"heap_mib": 1638}) == []
    (said,) = changed(pool={"heap_mib": 6554})
    assert "heap_mib of pool controller is 6554 of 8192 MiB" in said
    assert "lower it to 6553 or less" in said
    (said,) = changed(connect={"heap_mib": 2000})
    assert "heap_mib of connect is 2000 of 2048 MiB" in said


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
