"""core.examination: every source's word becomes parts, and every silence a named unknown."""

from dataclasses import replace
from typing import Any

import pytest

from core.availability.consent import Freeze
from core.availability.operator import Condition, KafkaConditions
from core.events import Kind as EventKind
from core.examination import Expected, Seen, parts
from core.ground.fields import Unknown
from core.health.connect import RestResponse
from core.health.pods import PodSeen
from core.health.verdict import Health, Part, PartKind, cluster_health
from core.incidents.record import Incident, State, Transition
from core.views import ClusterView, PartitionView
from tests.unit.views import kafka_view

NOW = 10_000.0
ROLES = {0: "controller", 1: "controller", 2: "controller", 10: "broker", 20: "broker"}
WORKER = "orders-connect-connect-0"
EXPECTED = Expected(roles=ROLES, workers=[WORKER], worker_startup_seconds=120)
HUNG = Unknown("It did not answer within 14 s.")
FINE = (
    RestResponse(
        path="/health",
        seconds=0.1,
        status=200,
        content_type="application/json",
        body='{"status":"healthy","message":""}',
    ),
)


def pod(name: str, node_id: int | None, **changes: Any) -> PodSeen:
    usual = PodSeen(
        name=name,
        node_id=node_id,
        created_at=NOW - 900,
        node_name="ip-1",
        ready=True,
        containers_ready=True,
        started_at=NOW - 890,
    )
    return replace(usual, **changes)


PODS = (*(pod(f"orders-{n}", n) for n in ROLES), pod(WORKER, None))
KAFKA = kafka_view({10, 20}, PartitionView("t", 0, 10, (10, 20), (10, 20), 1))
SETTLED = KafkaConditions(ready=True, generation_observed=True)
SEEN = Seen(
    kafka=KAFKA, pods=PODS, incidents=(), freezes=(), operator=SETTLED, workers={WORKER: FINE}
)


def by_name(seen: Seen, expected: Expected = EXPECTED) -> dict[tuple[PartKind, str], Part]:
    return {(part.kind, part.name): part for part in parts(seen, expected, NOW)}


def incident(**changes: Any) -> Incident:
    usual = Incident(
        id="i-1",
        instance_id="i-1",
        kind=EventKind.ASG_TERMINATE,
        state=State.DRAINING,
        opened_at=NOW - 90,
        announced_at=NOW - 90,
        announcements=(),
        reason="Broker 10 may leave.",
        transitions=(Transition(NOW - 40, State.DRAINING, "tick", ""),),
    )
    return replace(usual, **changes)


def test_a_whole_cluster_is_healthy_in_every_part() -> None:
    health = cluster_health(parts(SEEN, EXPECTED, NOW))
    assert health.status_code == 200
    kinds = [part.kind for part in health.parts]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        PartKind.QUORUM: 1,
        PartKind.PARTITIONS: 1,
        PartKind.CONTROLLER: 3,
        PartKind.BROKER: 2,
        PartKind.POD: 6,
        PartKind.WORKER: 1,
        PartKind.INCIDENTS: 1,
        PartKind.ZONES: 1,
        PartKind.OPERATOR: 1,
    }


@pytest.mark.parametrize(
    ("changes", "source", "status"),
    [
        ({"kafka": HUNG}, "Kafka's admin API", 500),
        ({"pods": HUNG}, "the Kubernetes API", 500),
        ({"incidents": HUNG}, "the ledger", 503),
        ({"freezes": HUNG}, "the ledger", 503),
        ({"operator": HUNG}, "the Kubernetes API", 503),
        ({"workers": {WORKER: HUNG}}, f"Connect's REST port of {WORKER}", 500),
    ],
)
def test_a_silent_source_is_named(changes: dict[str, Any], source: str, status: int) -> None:
    health = cluster_health(parts(replace(SEEN, **changes), EXPECTED, NOW))
    assert health.status_code == status
    assert health.verdict.missing == (source,)
    unknown = [part for part in health.parts if part.verdict.health is Health.UNKNOWN]
    assert unknown
    assert all(HUNG.why in part.verdict.reason for part in unknown)


def test_every_source_silent_still_names_every_node() -> None:
    answers = dict.fromkeys(("kafka", "pods", "incidents", "freezes", "operator"), HUNG)
    silent = Seen(**answers, workers={WORKER: HUNG})
    named = by_name(silent)
    assert {
        int(name) for kind, name in named if kind in {PartKind.BROKER, PartKind.CONTROLLER}
    } == set(ROLES)
    assert {part.verdict.health for part in named.values()} == {Health.UNKNOWN}


def test_what_the_spec_has_and_nobody_sees_is_a_part() -> None:
    without = replace(SEEN, pods=tuple(p for p in PODS if p.node_id != 20 and p.name != WORKER))
    named = by_name(without)
    assert named[PartKind.POD, "of node 20"].verdict.health is Health.UNHEALTHY
    assert named[PartKind.POD, WORKER].verdict.health is Health.UNHEALTHY
    assert named[PartKind.WORKER, WORKER].verdict.health is Health.UNHEALTHY


GROWN = replace(KAFKA, brokers=frozenset({10, 20, 30}), fenced=frozenset({30}))


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            replace(SEEN, kafka=GROWN, pods=(*PODS, replace(PODS[0], name="o-30", node_id=30))),
            id="it has a pod"),
        pytest.param(replace(SEEN, kafka=GROWN, pods=HUNG), id="whether it has a pod is unknown"),
        pytest.param(
            replace(SEEN,
                kafka=replace(GROWN, partitions=(PartitionView("t", 0, 10, (10, 30), (10,), 1),))),
            id="it holds something"),
    ],
)  # fmt: skip
def test_a_broker_of_no_spec_is_looked_at_too(seen: Seen) -> None:
    assert by_name(seen)[PartKind.BROKER, "30"].verdict.health is Health.UNHEALTHY


def test_all_that_is_left_of_a_broker_is_its_name() -> None:
    found = by_name(replace(SEEN, kafka=GROWN))
    assert (PartKind.BROKER, "30") not in found
    (note,) = found[PartKind.QUORUM, "quorum"].notes
    assert "unregister --id 30" in note


def test_a_worker_whose_process_does_not_run_is_judged_by_its_pod() -> None:
    crashed = pod(
        WORKER, None, ready=False, started_at=None, waiting="CrashLoopBackOff", stuck=True
    )
    named = by_name(replace(SEEN, pods=(*PODS[:-1], crashed)))
    assert "CrashLoopBackOff" in named[PartKind.WORKER, WORKER].verdict.reason


def test_a_worker_may_start_as_long_as_the_spec_allows() -> None:
    page = (RestResponse(path="/health", seconds=0.1, status=404, body="<html>"),)
    young = replace(SEEN, workers={WORKER: page}, pods=(pod(WORKER, None, started_at=NOW - 100),))
    assert by_name(young)[PartKind.WORKER, WORKER].verdict.health is Health.STARTING
    impatient = replace(EXPECTED, worker_startup_seconds=60.0)
    assert by_name(young, impatient)[PartKind.WORKER, WORKER].verdict.health is Health.UNHEALTHY


def test_an_incident_on_its_way_is_told_and_no_fault() -> None:
    verdict = by_name(replace(SEEN, incidents=(incident(),)))[
        PartKind.INCIDENTS, "incidents"
    ].verdict
    assert verdict.healthy
    assert "i-1 is draining for 40 s" in verdict.reason


def test_an_incident_that_waits_for_somebody_degrades() -> None:
    paged = incident(pages=("held",), reason="Partition t-0 holds it.")
    verdict = by_name(replace(SEEN, incidents=(incident(), paged)))[
        PartKind.INCIDENTS, "incidents"
    ].verdict
    assert verdict.health is Health.DEGRADED
    assert "Partition t-0 holds it." in verdict.reason


def test_a_frozen_zone_degrades() -> None:
    freeze = Freeze(zone_id="use1-az1", zone="us-east-1a", since=0, until=None, source="autoshift")
    verdict = by_name(replace(SEEN, freezes=(freeze,)))[PartKind.ZONES, "zones"].verdict
    assert verdict.health is Health.DEGRADED
    assert "us-east-1a" in verdict.reason


BEHIND = replace(KAFKA, partitions=(PartitionView("t", 0, 10, (10, 20), (10,), 1),))


@pytest.mark.parametrize(
    ("kafka", "pods"),
    [
        pytest.param(BEHIND, (pod("orders-20", 20, ready=False),), id="kubernetes sees it, too"),
        pytest.param(BEHIND, HUNG, id="nobody knows of the pod"),
        pytest.param(HUNG, PODS, id="nobody knows of the broker"),
    ],
)
def test_where_both_see_the_same_or_one_sees_nothing_no_gap_is_claimed(
    kafka: ClusterView | Unknown, pods: tuple[PodSeen, ...] | Unknown
) -> None:
    found = by_name(replace(SEEN, kafka=kafka, pods=pods))
    assert found[PartKind.BROKER, "20"].notes == ()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"paused": True}, "The Kafka is paused"),
        ({"ready": False, "not_ready": Condition("FatalProblem", "Pod a-1")}, "Pod a-1"),
        ({"warnings": (Condition("KafkaStorage", "KafkaNodePool a is ignored."),)}, "To fix"),
    ],
    ids=["paused", "not ready", "ignored"],
)
def test_what_the_operator_leaves_undone_only_degrades(told: dict[str, Any], words: str) -> None:
    health = cluster_health(parts(replace(SEEN, operator=replace(SETTLED, **told)), EXPECTED, NOW))
    assert health.status_code == 503
    assert words in health.verdict.reason


def test_a_change_that_is_being_carried_out_is_a_note() -> None:
    seen = replace(SEEN, operator=replace(SETTLED, generation_observed=False))
    part = by_name(seen)[PartKind.OPERATOR, "operator"]
    assert part.verdict.healthy
    assert "has not finished" in part.notes[0]
