"""How long a plan takes for clusters of any size, one by one and a zone at a time."""

from __future__ import annotations

import pytest

from core.incidents.observation import GroupView, NodeView, PodView
from core.rotation.estimate import AWAY_SECONDS, REPLACEMENT_SECONDS, RunObservation
from core.rotation.plan import Plan, plan
from core.rotation.run_record import NodeTurn, Options
from core.views import ClusterView, PartitionView, VoterView
from tests.unit.policies import policy_with

ZONES = ("a", "b", "c")
HOLD_SECONDS = 10
RETURN_SECONDS = AWAY_SECONDS + HOLD_SECONDS


def planned(brokers: int, at_once: int | None) -> Plan:
    """Return the plan of all brokers, each partition with a replica in every zone."""
    zone_of = {100 + n: ZONES[n % 3] for n in range(brokers)}
    of_zone = {z: [b for b, zone in zone_of.items() if zone == z] for z in ZONES}
    partitions = []
    for number in range(brokers * 4):
        replicas = [of_zone[z][(number // 3 + 7 * i) % (brokers // 3)] for i, z in enumerate(ZONES)]
        first = number % 3
        placed = tuple(replicas[first:] + replicas[:first])
        partitions.append(PartitionView("t", number, placed[0], placed, placed, 2))
    seen = RunObservation(
        now=0.0,
        kafka=ClusterView(
            brokers=frozenset(zone_of),
            fenced=frozenset(),
            voters=tuple(VoterView(n, 0.0) for n in range(3)),
            quorum_leader=0,
            partitions=tuple(partitions),
        ),
        pods=tuple(
            PodView(name=f"k-{b}", node_id=b, role="broker", node_name=f"n-{b}", ready=True)
            for b in zone_of
        ),
        nodes=tuple(
            NodeView(
                name=f"n-{b}", instance_id=f"i-{b}", zone=zone, pool="broker",
                ready=True, schedulable=True, csi_ready=True,
            )
            for b, zone in zone_of.items()
        ),
        groups=tuple(
            GroupView(
                name=z, desired=len(ids), maximum=2 * len(ids),
                instances={f"i-{b}": "InService" for b in ids},
            )
            for z, ids in of_zone.items()
        ),
    )  # fmt: skip
    turns = [
        NodeTurn(
            node_id=b, pod=f"k-{b}", role="broker", pool="broker", zone=zone,
            instance_id=f"i-{b}", why="image",
        )
        for b, zone in zone_of.items()
    ]  # fmt: skip
    policy = policy_with(
        stops_together=True, post_condition_hold_seconds=HOLD_SECONDS, isr_margin=0
    )
    return plan(turns, seen, Options(at_once=at_once), policy)


@pytest.mark.parametrize("brokers", [6, 30, 60, 99])
def test_a_zone_at_a_time_takes_as_long_for_a_hundred_brokers_as_for_six(brokers: int) -> None:
    zone_at_once, one_by_one = planned(brokers, None), planned(brokers, 1)
    first, behind = REPLACEMENT_SECONDS + RETURN_SECONDS, max(REPLACEMENT_SECONDS, RETURN_SECONDS)
    assert one_by_one.seconds == pytest.approx(first + (brokers - 1) * behind)
    assert zone_at_once.seconds == pytest.approx(first + 2 * behind)
    assert {node.batch for node in zone_at_once.nodes} == {1, 2, 3}
    assert zone_at_once.seconds < 3600
