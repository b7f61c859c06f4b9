"""core.health.kafka: where a broker and its node stand, by whose word, and who contradicts it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.health.kafka import (
    REGISTRATIONS,
    BrokerSigns,
    Lifecycle,
    active_controller,
    disagreements,
    lifecycle,
    node_verdict,
    observation,
    signs_of,
)
from core.health.node import NEVER, STATES, NodeMetrics, Role, parse
from core.health.pods import PodSeen
from core.health.verdict import Health
from core.views import ClusterView, PartitionView, VoterView
from tests.every_case import every_case
from tests.unit.views import kafka_view

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


BROKER = (DATA / "broker-strimzi-reporter.txt").read_text()
CONTROLLER = parse((DATA / "controller-strimzi-reporter.txt").read_text())
NOW = 10_000.0
WHOLE = kafka_view({10, 20}, PartitionView("t", 0, 10, (10, 20), (10, 20), 1))
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
    assert f"{name} 3.0" in BROKER
    return parse(BROKER.replace(f"{name} 3.0", f"{name} {state}.0"))


@every_case(
    ("view", "metrics", "pod", "health", "words"),
    [
        (WHOLE, broker(), POD, Health.HEALTHY, "in the ISR of all its 1 partitions"),
        # Green by itself, and out.
        (
            replace(WHOLE, fenced=frozenset({20})),
            broker(),
            POD,
            Health.UNHEALTHY,
            "though it says of itself that it is running",
        ),
        (replace(WHOLE, brokers=frozenset({10})), broker(), POD, Health.UNHEALTHY, "registered"),
        # Unfenced by Kafka, and not there by itself.
        (WHOLE, broker(2), POD, Health.STARTING, "recover"),
        (WHOLE, None, POD, Health.UNKNOWN, "exporter does not answer"),
        (WHOLE, broker(), replace(POD, started_at=None), Health.UNHEALTHY, "no Java process"),
    ],
)
def test_the_graver_word_is_the_nodes(
    view: ClusterView, metrics: NodeMetrics | None, pod: PodSeen, health: Health, words: str
) -> None:
    verdict = node_verdict(20, Role.BROKER, view, metrics, pod, NOW)
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason


def test_without_a_pod_list_a_node_is_still_judged_by_both_words() -> None:
    assert node_verdict(20, Role.BROKER, WHOLE, broker(), None, NOW).healthy


def test_a_controller_that_keeps_up_is_healthy_and_one_that_never_fetched_is_not() -> None:
    assert node_verdict(2, Role.CONTROLLER, WHOLE, CONTROLLER, None, NOW).healthy
    behind = replace(WHOLE, voters=(VoterView(1, 0.0), VoterView(2, None)))
    assert observation(2, Role.CONTROLLER, behind, CONTROLLER, None, NOW).voter_lag_seconds == NEVER
    verdict = node_verdict(2, Role.CONTROLLER, behind, CONTROLLER, None, NOW)
    assert verdict.health is Health.UNHEALTHY


def test_without_a_quorum_nothing_kafka_says_is_observed() -> None:
    stale = replace(WHOLE, voters=(), quorum_leader=None, stale=True)
    seen = observation(20, Role.BROKER, stale, broker(), POD, NOW)
    assert (seen.quorum_answers, seen.fenced, seen.not_in_sync) == (False, None, None)
    assert not node_verdict(20, Role.BROKER, stale, broker(), POD, NOW).healthy


@pytest.mark.parametrize(("age", "health"), [(100.0, Health.STARTING), (5_000.0, Health.DEGRADED)])
def test_young_brokers_out_of_an_isr_fill_and_old_ones_fell_out(age: float, health: Health) -> None:
    behind = replace(WHOLE, partitions=(PartitionView("t", 0, 10, (10, 20), (10,), 1),))
    seen = observation(20, Role.BROKER, behind, broker(), replace(POD, started_at=NOW - age), NOW)
    assert (seen.not_in_sync, seen.was_in_sync) == (1, health is Health.DEGRADED)


def test_who_contradicts_the_quorum_is_told() -> None:
    fenced = replace(WHOLE, fenced=frozenset({20}))
    (told,) = disagreements(20, fenced, broker(), None)
    assert "says that it is running" in told
    assert disagreements(20, WHOLE, broker(), None) == ()
