"""core.health.kafka: one reading, believed only where a quorum stands behind it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.health.kafka import (
    ErrorCounts,
    ErrorSnapshot,
    broker_verdict,
    controller_verdict,
    metadata_errors_verdict,
    partitions_verdict,
    quorum_verdict,
    silent,
    snapshot,
    snapshot_from_dict,
    vetoes,
)
from core.health.node import Metric, MetricSample, NodeMetrics
from core.health.pods import PodSeen, pod_verdict
from core.health.verdict import Health
from core.views import ClusterView, PartitionView, VoterView
from tests.every_case import every_case
from tests.unit.views import kafka_view

BROKERS = (10, 20, 30)


def partition(
    number: int = 0, isr: tuple[int, ...] = BROKERS, *, led: bool = True
) -> PartitionView:
    return PartitionView("t", number, isr[0] if led and isr else None, BROKERS, isr, 2)


WHOLE = kafka_view(BROKERS, partition(0), partition(1))
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
def test_a_quorum_needs_leader_and_majority(view: ClusterView, health: Health, words: str) -> None:
    verdict = quorum_verdict(view)
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason


@pytest.mark.parametrize(
    ("partitions", "health", "words"),
    [
        ((partition(0), partition(1)), Health.HEALTHY, "All 2"),
        ((partition(0), partition(1, (10, 20))), Health.DEGRADED, "1 of 2 partitions: t-1"),
        ((partition(0), partition(1, (10,))), Health.UNHEALTHY, "min.insync.replicas"),
        ((partition(0), partition(1, (10,), led=False)), Health.UNHEALTHY, "No broker leads 1"),
        # Kafka asks for no more replicas in sync than there are (Partition.effectiveMinIsr).
        ((PartitionView("t", 0, 10, (10,), (10,), 2),), Health.HEALTHY, "All 1"),
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
def test_a_broker_in_every_isr_is_well(view: ClusterView, health: Health, words: str) -> None:
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


CLEAN = ErrorCounts(load=0, apply=0, controller=0)
COUNTS = st.builds(
    ErrorCounts, *(st.one_of(st.none(), st.integers(0, 5)) for _ in ("load", "apply", "controller"))
)
SNAPSHOTS = st.builds(
    ErrorSnapshot,
    st.floats(0, 2e9),
    st.dictionaries(st.integers(0, 30), COUNTS, max_size=5),
    st.dictionaries(st.integers(0, 30), st.text(max_size=20), max_size=3),
)


def metrics(**values: int) -> NodeMetrics:
    return NodeMetrics(
        tuple(MetricSample(Metric[k.upper()], float(v), {}) for k, v in values.items())
    )


BROKER = metrics(metadata_load_errors=0, metadata_apply_errors=0)


@given(SNAPSHOTS)
def test_the_ledger_gives_back_what_it_was_given(taken: ErrorSnapshot) -> None:
    assert snapshot_from_dict(json.loads(json.dumps(taken.to_dict()))) == taken


def test_no_errors_veto_nothing() -> None:
    assert vetoes(ErrorSnapshot(1.0, {10: CLEAN, 0: ErrorCounts(controller=0)})) == ()


@pytest.mark.parametrize(
    ("counts", "runbook"),
    [
        (ErrorCounts(load=1, apply=0), "KafkaMetadataLoadError"),
        (ErrorCounts(load=0, apply=1), "KafkaMetadataApplyError"),
        (ErrorCounts(controller=3), "KafkaControllerMetadataError"),
    ],
)
def test_an_error_of_each_kind_vetoes_and_names_the_node(counts: ErrorCounts, runbook: str) -> None:
    (said,) = vetoes(ErrorSnapshot(1.0, {10: CLEAN, 11: counts}))
    assert said.startswith("Node 11 ")
    assert runbook in said
    assert said.endswith(".")


def test_what_was_acknowledged_vetoes_no_more() -> None:
    found = ErrorSnapshot(2.0, {11: ErrorCounts(load=2)})
    assert vetoes(found, acknowledged=found) == ()


def test_one_error_more_than_acknowledged_vetoes_again() -> None:
    seen = ErrorSnapshot(1.0, {11: ErrorCounts(load=2, apply=0)})
    assert vetoes(ErrorSnapshot(2.0, {11: ErrorCounts(load=2, apply=1)}), seen)


def test_errors_acknowledged_of_one_node_are_not_those_of_another() -> None:
    seen = ErrorSnapshot(1.0, {11: ErrorCounts(load=2)})
    assert len(vetoes(ErrorSnapshot(2.0, {12: ErrorCounts(load=1)}), seen)) == 1


@given(SNAPSHOTS)
def test_acknowledging_everything_always_lifts_the_veto(taken: ErrorSnapshot) -> None:
    assert vetoes(taken, acknowledged=taken) == ()


@given(SNAPSHOTS)
def test_a_veto_stands_for_every_node_with_an_error_and_for_no_other(taken: ErrorSnapshot) -> None:
    assert len(vetoes(taken)) == sum(counts.any for counts in taken.nodes.values())


def test_a_node_that_exports_no_counter_is_silent_and_not_clean() -> None:
    taken = snapshot(5.0, {10: BROKER, 11: metrics(leaders=3)}, {12: "It is frozen."})
    assert set(taken.nodes) == {10}
    assert set(taken.silent) == {11, 12}
    assert "allow list" in taken.silent[11]


def test_counters_a_role_has_not_are_not_missed() -> None:
    assert metadata_errors_verdict(10, "broker", BROKER).health is Health.HEALTHY
    assert (
        metadata_errors_verdict(0, "controller", metrics(metadata_errors=0)).health
        is Health.HEALTHY
    )
    found = metadata_errors_verdict(0, "combined", BROKER)
    assert (found.health, found.missing) == (Health.UNKNOWN, ("MetadataErrorCount",))


def test_a_node_that_does_not_answer_is_unknown() -> None:
    assert metadata_errors_verdict(10, "broker", None).health is Health.UNKNOWN


def test_an_error_outweighs_a_counter_that_is_missing() -> None:
    assert (
        metadata_errors_verdict(10, "broker", metrics(metadata_load_errors=1)).health
        is Health.DEGRADED
    )


ONE_PARTITION = kafka_view(BROKERS, PartitionView("t", 0, 10, BROKERS, BROKERS, 2))
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
    view = replace(
        ONE_PARTITION, fenced=frozenset(fenced), partitions=(*ONE_PARTITION.partitions, odd)
    )
    verdict = partitions_verdict(view)
    assert (verdict.health, words in verdict.reason) == (Health.UNKNOWN, True), verdict.reason
    assert f"Broker {leader}" in verdict.reason


def test_what_stops_producers_is_said_before_what_contradicts_itself() -> None:
    below = PartitionView("t", 1, 10, BROKERS, (10,), 2)
    odd = PartitionView("t", 2, 10, BROKERS, (20, 30), 2)
    verdict = partitions_verdict(replace(ONE_PARTITION, partitions=(below, odd)))
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
def test_a_pod_that_waits_since_nobody_knows_when_is_not_known(changes: dict[str, object]) -> None:
    verdict = pod_verdict(replace(LATE, **changes), 10_000.0)  # type: ignore[arg-type]
    assert verdict.health is Health.UNKNOWN
    assert "nothing says since when" in verdict.reason


def test_a_pod_that_is_ready_needs_no_time_of_its_making() -> None:
    assert pod_verdict(replace(LATE, ready=True), 10_000.0).healthy
