"""core.health.kafka: what one reading says, where a broker stands and who contradicts it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.health.kafka import (
    REGISTRATIONS,
    BrokerSigns,
    ErrorCounts,
    ErrorSnapshot,
    Lifecycle,
    active_controller,
    broker_verdict,
    controller_verdict,
    disagreements,
    lifecycle,
    metadata_errors_verdict,
    node_verdict,
    observation,
    partitions_verdict,
    quorum_verdict,
    signs_of,
    silent,
    snapshot,
    snapshot_from_dict,
    vetoes,
)
from core.health.node import NEVER, STATES, Metric, MetricSample, NodeMetrics, Role, parse
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
    [{"node_name": None}, {}, {"containers_ready": True, "gates": {"target-health/x": False}}],
    ids=["unscheduled", "not ready", "gated"],
)
def test_a_pod_that_waits_since_nobody_knows_when_is_not_known(changes: dict[str, object]) -> None:
    verdict = pod_verdict(replace(LATE, **changes), 10_000.0)
    assert verdict.health is Health.UNKNOWN
    assert "nothing says since when" in verdict.reason


def test_a_pod_that_is_ready_needs_no_time_of_its_making() -> None:
    assert pod_verdict(replace(LATE, ready=True), 10_000.0).healthy


DATA = Path(__file__).parents[3] / "data" / "exporters"
ONLINE: dict[str, Any] = {
    "quorum_answers": True,
    "described": True,
    "is_fenced": False,
    "registration": 30,
    "since_heartbeat_seconds": 0.5,
    "broker_state": 3,
}


def told(**changed: Any) -> Any:
    return lifecycle(BrokerSigns(broker_id=11, **{**ONLINE, **changed}))


@every_case(
    ("changed", "state"),
    [
        ({}, Lifecycle.ONLINE),
        ({"registration": None}, Lifecycle.ONLINE),
        ({"broker_state": None}, Lifecycle.ONLINE),
        ({"is_fenced": True, "registration": 10, "broker_state": 2}, Lifecycle.FENCED),
        ({"is_fenced": True, "registration": 10}, Lifecycle.FENCED),
        ({"is_fenced": None, "registration": 10}, Lifecycle.FENCED),
        ({"registration": 20}, Lifecycle.STOPPING),
        ({"registration": 20, "is_fenced": True, "broker_state": None}, Lifecycle.STOPPING),
        ({"registration": None, "broker_state": 6}, Lifecycle.STOPPING),
        ({"described": False, "is_fenced": None, "registration": None}, Lifecycle.OFFLINE),
        ({"registration": -1, "broker_state": None}, Lifecycle.OFFLINE),
        (
            {"is_fenced": True, "registration": 10, "broker_state": None,
                "since_heartbeat_seconds": 60.0}, Lifecycle.OFFLINE),
        ({"told_to_stop": True}, Lifecycle.STOPPING),
        ({"told_to_stop": True, "is_fenced": True, "registration": 10}, Lifecycle.STOPPING),
        ({"told_to_stop": True, "process": False, "is_fenced": True, "registration": 10},
            Lifecycle.OFFLINE),
        ({"process": False, "is_fenced": True, "registration": None}, Lifecycle.OFFLINE),
        ({"process": False}, Lifecycle.ONLINE),
        ({"quorum_answers": False}, Lifecycle.UNKNOWN),
        ({"is_fenced": None, "registration": None}, Lifecycle.UNKNOWN),
    ],
)  # fmt: skip
def test_where_a_broker_stands(changed: dict[str, Any], state: Lifecycle) -> None:
    found = told(**changed)
    assert found.state is state
    assert found.reason.startswith(f"Broker 11 is {state.value}: ")


def test_agreement_has_nothing_to_report() -> None:
    assert told().disagreements == ()


def test_a_broker_fenced_again_contradicts_the_quorum() -> None:
    (said,) = told(is_fenced=True, registration=10).disagreements
    assert "says that it is running" in said


def test_the_gauge_and_describe_cluster_may_contradict_each_other() -> None:
    (said,) = told(registration=10).disagreements
    assert "not fenced by DescribeCluster and fenced by" in said


def test_a_gauge_that_a_restarted_controller_did_not_make_again_is_named() -> None:
    found = told(registration=None)
    assert found.state is Lifecycle.ONLINE
    assert "KAFKA-20370" in found.disagreements[0]


def test_a_broker_whose_process_is_gone_is_online_until_its_session_ends_and_that_is_said() -> None:
    (said,) = told(process=False, broker_state=None).disagreements
    assert said == "Broker 11 has no process left, and its session has not run out yet."


def test_a_pod_that_was_told_to_stop_says_so_where_kafka_was_not_asked() -> None:
    found = lifecycle(BrokerSigns(broker_id=11, told_to_stop=True))
    assert found.reason == "Broker 11 is stopping: its pod stops."
    assert lifecycle(BrokerSigns(broker_id=11, process=False)).state is Lifecycle.UNKNOWN


SIGNS = st.builds(
    BrokerSigns,
    broker_id=st.just(11),
    quorum_answers=st.sampled_from([None, True, False]),
    described=st.sampled_from([None, True, False]),
    is_fenced=st.sampled_from([None, True, False]),
    registration=st.sampled_from([None, *REGISTRATIONS]),
    since_heartbeat_seconds=st.one_of(st.none(), st.floats(0, 1000)),
    broker_state=st.sampled_from([None, *STATES, 99]),
    told_to_stop=st.sampled_from([None, True, False]),
    process=st.sampled_from([None, True, False]),
)


@given(SIGNS)
def test_no_broker_is_online_that_any_word_of_the_quorum_has_fenced(signs: BrokerSigns) -> None:
    if signs.is_fenced or signs.quorum_answers is False:
        assert lifecycle(signs).state is not Lifecycle.ONLINE


@given(SIGNS)
def test_every_word_is_a_sentence(signs: BrokerSigns) -> None:
    found = lifecycle(signs)
    assert all(said.endswith(".") for said in (found.reason, *found.disagreements))


def test_signs_are_gathered_from_the_active_controller_and_the_broker_itself() -> None:
    controller = parse((DATA / "controller-strimzi-reporter.txt").read_text())
    broker = parse((DATA / "broker-jmx-exporter.txt").read_text())
    signs = signs_of(
        2,
        quorum_answers=True,
        described={2: False},
        active_controller=active_controller([broker, controller]),
        own=broker,
    )
    assert (signs.registration, signs.broker_state, signs.is_fenced) == (30, 3, False)
    assert signs.since_heartbeat_seconds == 0.574


def test_without_a_quorum_describe_cluster_is_not_believed() -> None:
    signs = signs_of(
        2, quorum_answers=False, described={2: False}, active_controller=None, own=None
    )
    assert (signs.described, signs.is_fenced) == (None, None)


REPORTED = (DATA / "broker-strimzi-reporter.txt").read_text()
CONTROLLER = parse((DATA / "controller-strimzi-reporter.txt").read_text())
NOW = 10_000.0
TWO = kafka_view({10, 20}, PartitionView("t", 0, 10, (10, 20), (10, 20), 1))
POD = PodSeen(
    name="orders-broker-b-20",
    node_id=20,
    created_at=NOW - 900,
    node_name="ip-1",
    ready=True,
    started_at=NOW - 890,
)


def broker(state: int = 3) -> NodeMetrics:
    name = "kafka_server_kafkaserver_brokerstate"
    assert f"{name} 3.0" in REPORTED
    return parse(REPORTED.replace(f"{name} 3.0", f"{name} {state}.0"))


@every_case(
    ("view", "metrics", "pod", "health", "words"),
    [
        (TWO, broker(), POD, Health.HEALTHY, "in the ISR of all its 1 partitions"),
        # Green by itself, and out.
        (replace(TWO, fenced=frozenset({20})), broker(), POD, Health.UNHEALTHY,
            "though it says of itself that it is running"),
        (replace(TWO, brokers=frozenset({10})), broker(), POD, Health.UNHEALTHY, "registered"),
        # Unfenced by Kafka, and not there by itself.
        (TWO, broker(2), POD, Health.STARTING, "recover"),
        (TWO, None, POD, Health.UNKNOWN, "exporter does not answer"),
        (TWO, broker(), replace(POD, started_at=None), Health.UNHEALTHY, "no Java process"),
    ],
)  # fmt: skip
def test_the_graver_word_is_the_nodes(
    view: ClusterView, metrics: NodeMetrics | None, pod: PodSeen, health: Health, words: str
) -> None:
    verdict = node_verdict(20, Role.BROKER, view, metrics, pod, NOW)
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason


def test_without_a_pod_list_a_node_is_still_judged_by_both_words() -> None:
    assert node_verdict(20, Role.BROKER, TWO, broker(), None, NOW).healthy


def test_a_controller_that_keeps_up_is_healthy_and_one_that_never_fetched_is_not() -> None:
    assert node_verdict(2, Role.CONTROLLER, TWO, CONTROLLER, None, NOW).healthy
    behind = replace(TWO, voters=(VoterView(1, 0.0), VoterView(2, None)))
    assert observation(2, Role.CONTROLLER, behind, CONTROLLER, None, NOW).voter_lag_seconds == NEVER
    verdict = node_verdict(2, Role.CONTROLLER, behind, CONTROLLER, None, NOW)
    assert verdict.health is Health.UNHEALTHY


def test_without_a_quorum_nothing_kafka_says_is_observed() -> None:
    stale = replace(TWO, voters=(), quorum_leader=None, stale=True)
    seen = observation(20, Role.BROKER, stale, broker(), POD, NOW)
    assert (seen.quorum_answers, seen.fenced, seen.not_in_sync) == (False, None, None)
    assert not node_verdict(20, Role.BROKER, stale, broker(), POD, NOW).healthy


@pytest.mark.parametrize(("age", "health"), [(100.0, Health.STARTING), (5_000.0, Health.DEGRADED)])
def test_young_brokers_out_of_an_isr_fill_and_old_ones_fell_out(age: float, health: Health) -> None:
    behind = replace(TWO, partitions=(PartitionView("t", 0, 10, (10, 20), (10,), 1),))
    seen = observation(20, Role.BROKER, behind, broker(), replace(POD, started_at=NOW - age), NOW)
    assert (seen.not_in_sync, seen.was_in_sync) == (1, health is Health.DEGRADED)


def test_who_contradicts_the_quorum_is_told() -> None:
    fenced = replace(TWO, fenced=frozenset({20}))
    (told,) = disagreements(20, fenced, broker(), None)
    assert "says that it is running" in told
    assert disagreements(20, TWO, broker(), None) == ()
