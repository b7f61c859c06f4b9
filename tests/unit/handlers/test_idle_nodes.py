"""That no Kafka pod runs on a node takes more than one reading to say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.record import State
from tests.unit.handlers.announced import health_event, hook_event
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station


@pytest.fixture
def station() -> Station:
    made = Station()
    made.cluster.terminate(OLD)
    return made


def ticks(station: Station, most: int) -> None:
    for _ in range(most):
        station.tick()


def test_a_pod_that_its_operator_restarts_is_not_drained_unasked(station: Station) -> None:
    """For a moment it has no node; its broker would be refused, and its node drained at once."""
    station.cluster.kafka = healthy_kafka(out=30)
    station.cluster.place_pod(10, None, ready=False)
    station.cluster.attached.clear()
    station.announce(hook_event("drain"))
    ticks(station, 3)
    assert station.forwarded == []
    station.cluster.place_pod(10, OLD)
    ticks(station, 3)
    assert station.incident().node_id == 10
    assert station.incident().state is State.REPLACING


def test_a_pod_that_is_being_made_anew_is_waited_for(station: Station) -> None:
    """Deleted and not created again yet: no pod at all, and no volume either."""
    pod = station.cluster.pods.pop(10)
    station.cluster.attached.clear()
    station.announce(hook_event("drain"))
    ticks(station, 3)
    assert station.forwarded == []
    station.cluster.pods[10] = pod
    ticks(station, 3)
    assert station.incident().state is State.REPLACING


def test_a_node_that_has_a_volume_of_kafkas_is_kept_and_told(station: Station) -> None:
    del station.cluster.pods[10]
    station.announce(hook_event("drain"))
    ticks(station, 80)
    assert station.forwarded == []
    assert station.incident().pages == ("volume_on_idle_node",)
    station.now += POLICY.hold_limit_seconds
    ticks(station, 1)
    assert station.incident().state is State.RETAINED


def test_a_pod_without_a_node_that_belongs_elsewhere_is_waited_for_a_stated_time(
    station: Station,
) -> None:
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster.terminate(NEW)
    station.cluster.place_pod(20, None, ready=False)
    station.announce(hook_event("drain", instance_id=NEW))
    ticks(station, 10)
    assert station.forwarded == []
    station.now += 301
    ticks(station, 2)
    assert len(station.forwarded) == 1


def test_a_reading_that_failed_proves_nothing_about_what_came_before(station: Station) -> None:
    station.cluster.pods.pop(10)
    station.cluster.attached.clear()
    station.announce(hook_event("drain"))
    ticks(station, 2)
    station.cluster.kubernetes_answers = False
    station.now += 60
    ticks(station, 1)
    station.cluster.kubernetes_answers = True
    ticks(station, 1)
    assert station.forwarded == []


def test_the_gate_stays_closed_for_a_kafka_pod_that_came_to_an_idle_node(station: Station) -> None:
    station.cluster.pods.pop(10)
    station.cluster.attached.clear()
    station.announce(hook_event("drain"))
    while not station.forwarded:
        station.tick()
    station.cluster.place_pod(10, OLD)
    station.tick()
    assert (OLD, "gate", "CONTINUE") not in station.cluster.completed
    assert station.incident().node_id == 10


def test_a_planned_departure_does_not_end_a_node_on_one_reading() -> None:
    station = Station()
    pod = station.cluster.pods.pop(10)
    station.announce(health_event())
    ticks(station, 2)
    assert station.cluster.asked_to_terminate == []
    station.cluster.pods[10] = replace(pod, node_name=node_named(OLD))
    ticks(station, 2)
    assert station.incident().state is State.REPLACING


def test_back_is_not_believed_across_a_silence_of_kafka(station: Station) -> None:
    station.announce(hook_event("drain"))
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    while not station.forwarded:
        station.tick()
    station.cluster.place_pod(10, NEW)
    while station.incident().broker_back_at is None:
        station.tick()
    whole = station.cluster.kafka
    station.cluster.kafka = None
    station.now += 10 * POLICY.post_condition_hold_seconds
    station.tick()
    station.cluster.kafka = whole
    station.tick()
    assert station.incident().state is State.GATING
    assert station.incident().completed_at is None


@pytest.mark.parametrize("state", [State.DRAINING, State.GATING])
def test_a_word_that_comes_after_the_sweep_found_the_node_keeps_nobody_waiting(
    station: Station, state: State
) -> None:
    """The sweep knows no announcement to forward; the one that comes later is sent to nobody."""
    station.cluster.pods.pop(10)
    station.cluster.attached.clear()
    station.now += 120
    station.broom.sweep(station.now)
    while station.incident().state is not state:
        station.cluster.waiting_hooks |= {(OLD, "drain"), (OLD, "gate")}
        station.tick()
    station.announce(hook_event("drain"))
    station.announce(hook_event("gate"))
    station.cluster.waiting_hooks |= {(OLD, "drain"), (OLD, "gate")}
    station.cluster.set_lifecycle(OLD, "Terminating:Wait")
    ticks(station, 8)
    assert station.forwarded == []
    assert (OLD, "drain", "CONTINUE") in station.cluster.completed
    assert station.incident().state is State.RELEASED


@pytest.mark.parametrize("pod", ["runs on", "has no node", "is made anew"])
def test_a_node_whose_object_was_deleted_is_not_taken_for_one_that_never_joined(
    station: Station, pod: str
) -> None:
    """Somebody deleted the Node before anything was learned of it; EC2 knows what it was called."""
    del station.cluster.node_views[OLD]
    if pod == "has no node":
        station.cluster.place_pod(10, None, ready=False)
    if pod == "is made anew":
        del station.cluster.pods[10]  # Its volume is attached there still.
    station.announce(hook_event("drain"))
    ticks(station, 10)
    assert station.forwarded == []
    assert (OLD, "gate", "CONTINUE") not in station.cluster.completed
    if pod == "runs on":
        assert station.incident().node_id == 10
        assert station.incident().state is State.REPLACING
