"""core.health: answers that contradict themselves, or leave out what everybody has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.health.kafka import partitions_verdict
from core.health.pods import PodSeen, pod_verdict
from core.health.verdict import Health
from core.views import ClusterView, PartitionView, VoterView

BROKERS = (10, 20, 30)
WHOLE = ClusterView(
    brokers=frozenset(BROKERS),
    fenced=frozenset(),
    voters=tuple(VoterView(n, 0.0) for n in (0, 1, 2)),
    quorum_leader=1,
    partitions=(PartitionView("t", 0, 10, BROKERS, BROKERS, 2),),
)
LATE = PodSeen(name="orders-broker-a-10", node_id=10, created_at=None, node_name="ip-1")


@pytest.mark.parametrize(
    ("leader", "isr", "fenced", "words"),
    [
        (10, (20, 30), (), "not in its ISR"),
        (99, BROKERS, (), "not in its ISR"),
        (10, BROKERS, (10,), "is fenced"),
        (40, (*BROKERS, 40), (), "not registered"),
    ],
    ids=["out of sync", "no replica", "fenced", "unregistered"],
)
def test_a_partition_whose_leader_cannot_lead_is_not_known_to_be_well(
    leader: int, isr: tuple[int, ...], fenced: tuple[int, ...], words: str
) -> None:
    odd = PartitionView("t", 1, leader, BROKERS, isr, 2)
    view = replace(WHOLE, fenced=frozenset(fenced), partitions=(*WHOLE.partitions, odd))
    verdict = partitions_verdict(view)
    assert (verdict.health, words in verdict.reason) == (Health.UNKNOWN, True), verdict.reason
    assert f"Broker {leader}" in verdict.reason


def test_what_stops_producers_is_said_before_what_contradicts_itself() -> None:
    below = PartitionView("t", 1, 10, BROKERS, (10,), 2)
    odd = PartitionView("t", 2, 10, BROKERS, (20, 30), 2)
    verdict = partitions_verdict(replace(WHOLE, partitions=(below, odd)))
    assert verdict.health is Health.UNHEALTHY


@pytest.mark.parametrize(
    "changes",
    [
        {"node_name": None},
        {},
        {"containers_ready": True, "gates": {"target-health/x": False}},
    ],
    ids=["unscheduled", "not ready", "gated"],
)
def test_a_pod_that_waits_and_says_not_since_when_is_not_known_to_start(
    changes: dict[str, object],
) -> None:
    verdict = pod_verdict(replace(LATE, **changes), 10_000.0)  # type: ignore[arg-type]
    assert verdict.health is Health.UNKNOWN
    assert "nothing says since when" in verdict.reason


def test_a_pod_that_is_ready_needs_no_time_of_its_making() -> None:
    assert pod_verdict(replace(LATE, ready=True), 10_000.0).healthy
