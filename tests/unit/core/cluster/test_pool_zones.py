"""In which zones a pool stands, and what follows for ids, listeners and racks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.cluster import parse
from tests.unit.core.cluster.test_cluster import GOOD, changed, problems


def test_a_pool_stands_in_every_zone_unless_it_names_some() -> None:
    spec = parse(changed("pools.0.zones", ["us-east-1c", "us-east-1a"]))
    controller, broker = spec.pools
    assert spec.zones_of(broker) == spec.availability_zones
    # In the cluster's order, not the pool's.
    assert spec.zones_of(controller) == ("us-east-1a", "us-east-1c")
    assert (spec.nodes_of(controller), spec.controllers, spec.brokers) == (2, 2, 3)


@given(st.sets(st.sampled_from(GOOD["availability_zones"]), min_size=1), st.booleans())
def test_the_zones_a_pool_names_change_no_node_id(zones: set[str], grown: bool) -> None:
    everywhere = parse(GOOD)
    raw = changed("pools.0.zones", sorted(zones, reverse=True))
    raw["availability_zones"] = [*raw["availability_zones"], *["us-east-1d"] * grown]
    pinned = parse(raw)
    ids = everywhere.node_ids_of(everywhere.pools[0])
    assert pinned.node_ids_of(pinned.pools[0]) == {z: ids[z] for z in ids if z in zones}


def test_pools_in_different_zones_do_not_meet() -> None:
    fast = {**GOOD["pools"][1], "name": "fast", "nodes_per_zone": 1}
    raw = changed("pools.1.zones", GOOD["availability_zones"])
    raw["availability_zones"] = [*GOOD["availability_zones"], "us-east-1d"]
    raw["pools"][0] |= {"zones": GOOD["availability_zones"]}
    spec = parse({**raw, "pools": [*raw["pools"], {**fast, "zones": ["us-east-1d"]}]})
    assert spec.node_ids_of(spec.pools[2]) == {"us-east-1d": range(40, 50)}
    both = {**fast, "zones": ["us-east-1c", "us-east-1d"]}
    (sentence,) = problems({**raw, "pools": [*raw["pools"], both]})
    assert "node ids of pools broker (10-39) and fast (30-49) overlap" in sentence


def test_listeners_are_counted_in_the_zones_of_brokers() -> None:
    many = {"nodes_per_zone": 17, "node_ids_per_zone": 20}
    raw = changed("pools.1", {**GOOD["pools"][1], **many})
    (sentence,) = problems(raw)
    assert "51 brokers, spare ones included, and the bootstrap need 52 listeners" in sentence
    raw["pools"][1]["zones"] = ["us-east-1a", "us-east-1b"]
    assert parse(raw).brokers == 34


def test_the_zones_of_brokers_are_the_racks() -> None:
    raw = changed("pools.1.zones", ["us-east-1c"])
    raw["pools"][1]["nodes_per_zone"] = 2
    both = {**GOOD["pools"][1], "name": "both", "role": "combined", "first_node_id": 100}
    raw["pools"].append({**both, "zones": ["us-east-1a"]})
    assert parse(raw).broker_zones == ("us-east-1a", "us-east-1c")
