"""Where the parallel bench puts partitions makes each zone a party."""

from __future__ import annotations

from bench.fleet.ground import brokers_of
from bench.parallel import apart, by_zone
from local.demo import load

BROKERS = brokers_of({"first_node_id": 10, "node_ids_per_zone": 10, "nodes_per_zone": 2})
ZONES = by_zone(BROKERS)


def test_each_zone_has_its_own_two_brokers() -> None:
    assert ZONES == [[10, 11], [20, 21], [30, 31]]


def test_apart_no_two_brokers_of_a_zone_hold_the_same_partition() -> None:
    placed = apart(ZONES)
    assert len(placed) == load.PARTITIONS
    for replicas in placed.values():
        assert len({broker // 10 for broker in replicas}) == load.REPLICATION_FACTOR
    # Each broker leads, and holds, as much as any other.
    leads = [sum(replicas[0] == broker for replicas in placed.values()) for broker in BROKERS]
    assert set(leads) == {load.PARTITIONS // len(BROKERS)}
