"""core.health.kafka: neither Kafka's word on a node nor its own is believed alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.health.kafka import disagreements, node_verdict, observation
from core.health.node import NEVER, NodeMetrics, Role, parse
from core.health.pods import PodSeen
from core.health.verdict import Health
from core.views import ClusterView, PartitionView, VoterView
from tests.every_case import every_case

DATA = Path(__file__).parents[3] / "data" / "exporters"
BROKER = (DATA / "broker-strimzi-reporter.txt").read_text()
CONTROLLER = parse((DATA / "controller-strimzi-reporter.txt").read_text())
NOW = 10_000.0
WHOLE = ClusterView(
    brokers=frozenset({10, 20}),
    fenced=frozenset(),
    voters=tuple(VoterView(n, 0.0) for n in (0, 1, 2)),
    quorum_leader=1,
    partitions=(PartitionView("t", 0, 10, (10, 20), (10, 20), 1),),
)
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
    view: ClusterView,
    metrics: NodeMetrics | None,
    pod: PodSeen,
    health: Health,
    words: str,
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
def test_a_young_broker_out_of_an_isr_fills_and_an_old_one_has_fallen_out(
    age: float, health: Health
) -> None:
    behind = replace(WHOLE, partitions=(PartitionView("t", 0, 10, (10, 20), (10,), 1),))
    seen = observation(20, Role.BROKER, behind, broker(), replace(POD, started_at=NOW - age), NOW)
    assert (seen.not_in_sync, seen.was_in_sync) == (1, health is Health.DEGRADED)


def test_who_contradicts_the_quorum_is_told() -> None:
    fenced = replace(WHOLE, fenced=frozenset({20}))
    (told,) = disagreements(20, fenced, broker(), None)
    assert "says that it is running" in told
    assert disagreements(20, WHOLE, broker(), None) == ()
