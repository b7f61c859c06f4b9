"""core.health.kafka: one admin reading, believed only where a quorum stands behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.health.kafka import (
    broker_verdict,
    controller_verdict,
    partitions_verdict,
    quorum_verdict,
    silent,
)
from core.health.verdict import Health
from core.views import ClusterView, PartitionView, VoterView
from tests.every_case import every_case

BROKERS = (10, 20, 30)


def partition(
    number: int = 0, isr: tuple[int, ...] = BROKERS, *, led: bool = True
) -> PartitionView:
    return PartitionView("t", number, isr[0] if led and isr else None, BROKERS, isr, 2)


WHOLE = ClusterView(
    brokers=frozenset(BROKERS),
    fenced=frozenset(),
    voters=tuple(VoterView(n, 0.0) for n in (0, 1, 2)),
    quorum_leader=1,
    partitions=(partition(0), partition(1)),
)
# Without a quorum brokers answer all the same, with nobody fenced.
STALE = replace(WHOLE, voters=(), quorum_leader=None, stale=True)


def voters(*lags: float | None) -> tuple[VoterView, ...]:
    return tuple(VoterView(n, lag) for n, lag in enumerate(lags))


@every_case(
    ("view", "health", "words"),
    [
        (WHOLE, Health.HEALTHY, "Controller 1 leads the quorum of 3"),
        (replace(WHOLE, voters=voters(19.0, 0.0, 0.0)), Health.DEGRADED, "and 0 lag behind"),
        (replace(WHOLE, voters=voters(19.0, 0.0, None)), Health.UNHEALTHY, "no majority keeps up"),
        (STALE, Health.UNHEALTHY, "no quorum"),
        (replace(WHOLE, quorum_leader=9), Health.UNKNOWN, "not all there is to tell"),
        (replace(WHOLE, voters=voters(0.0, 0.0, float("nan"))), Health.DEGRADED, "2 lag behind"),
        (replace(WHOLE, voters=()), Health.UNKNOWN, "not all there is to tell"),
        (replace(WHOLE, quorum_leader=None), Health.UNHEALTHY, "no quorum"),
    ],
)
def test_the_quorum_needs_a_leader_and_a_majority(
    view: ClusterView, health: Health, words: str
) -> None:
    verdict = quorum_verdict(view)
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason


@pytest.mark.parametrize(
    ("partitions", "health", "words"),
    [
        ((partition(0), partition(1)), Health.HEALTHY, "All 2"),
        ((partition(0), partition(1, (10, 20))), Health.DEGRADED, "1 of 2 partitions: t-1"),
        ((partition(0), partition(1, (10,))), Health.UNHEALTHY, "min.insync.replicas"),
        ((partition(0), partition(1, (10,), led=False)), Health.UNHEALTHY, "No broker leads 1"),
        ((), Health.HEALTHY, "All 0"),
    ],
)
def test_partitions_are_as_well_as_the_worst_of_them(
    partitions: tuple[PartitionView, ...], health: Health, words: str
) -> None:
    verdict = partitions_verdict(replace(WHOLE, partitions=partitions))
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason


def test_an_offline_partition_names_who_still_holds_all_of_it() -> None:
    gone = replace(partition(1, (), led=False), eligible=(30,))
    verdict = partitions_verdict(replace(WHOLE, partitions=(partition(0), gone)))
    assert "Broker 30 still holds all of t-1 (ELR)" in verdict.reason


@pytest.mark.parametrize(
    ("view", "health", "words"),
    [
        (WHOLE, Health.HEALTHY, "all its 2 partitions"),
        (replace(WHOLE, fenced=frozenset({20})), Health.UNHEALTHY, "fenced"),
        (replace(WHOLE, brokers=frozenset({10, 30})), Health.UNHEALTHY, "not registered"),
        (replace(WHOLE, partitions=(partition(0, (10, 30)),)), Health.DEGRADED, "not in the ISR"),
    ],
)
def test_a_broker_is_well_once_it_is_in_every_isr(
    view: ClusterView, health: Health, words: str
) -> None:
    verdict = broker_verdict(20, view)
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason


@every_case(
    ("node_id", "view", "health"),
    [
        (1, WHOLE, Health.HEALTHY),
        (2, WHOLE, Health.HEALTHY),
        # A hiccup, which would keep a rotation waiting.
        (2, replace(WHOLE, voters=voters(0.0, 0.0, 4.0)), Health.HEALTHY),
        (2, replace(WHOLE, voters=voters(0.0, 0.0, 15.0)), Health.UNHEALTHY),
        (2, replace(WHOLE, voters=voters(0.0, 0.0, None)), Health.UNHEALTHY),
        (7, WHOLE, Health.UNHEALTHY),
    ],
)
def test_a_controller_is_well_while_it_keeps_up(
    node_id: int, view: ClusterView, health: Health
) -> None:
    assert controller_verdict(node_id, view).health is health


def test_what_brokers_say_without_a_quorum_is_believed_of_nobody() -> None:
    for verdict in (broker_verdict(10, STALE), controller_verdict(1, STALE)):
        assert (verdict.health, verdict.missing) == (Health.UNKNOWN, ("Kafka's admin API",))
    assert partitions_verdict(STALE).health is Health.UNKNOWN


def test_silence_keeps_its_reason() -> None:
    assert "It hung." in silent("Broker 10", "It hung.").reason
