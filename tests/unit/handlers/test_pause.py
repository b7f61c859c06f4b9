"""A stop on purpose: nothing new is drained or terminated, and nothing runs out meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.ground.errors import Conflict
from core.incidents.actions import ForwardDrain, TakeLease, TerminateInGroup
from core.incidents.joining import Pause, ask_release
from core.incidents.record import State
from handlers.incidents.act import perform
from handlers.store.documents import Pauses
from tests.unit.handlers.announced import ec2_event, health_event, hook_event
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, START, Station
from tests.unit.handlers.walks import announce, replace_machine

WHY = Pause("ada", "We look at the disks", START)


@pytest.fixture
def station() -> Station:
    return paused(Station())


def paused(station: Station, pause: Pause | None = WHY) -> Station:
    Pauses(station.records, "orders").write(pause)
    return station


def ticks(station: Station, most: int) -> None:
    for _ in range(most):
        if not station.incident().open:
            return
        station.tick()


def test_nothing_is_drained_while_it_holds_and_the_hooks_keep_beating(station: Station) -> None:
    announce(station)
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    ticks(station, 5)
    station.now += POLICY.hold_limit_seconds + 60
    ticks(station, 1)
    incident = station.incident()
    assert incident.state is State.HOLDING
    assert incident.reason == (
        "Paused by ada since 2026-11-20 10:00 UTC, until somebody resumes: We look at the disks."
    )
    assert station.forwarded == []
    assert station.ledger.leases() == ()
    assert incident.heartbeat_at == station.now
    paused(station, None)
    ticks(station, 3)
    assert station.incident().state is not State.HOLDING


def test_a_pause_outlasts_a_reading_that_failed(station: Station) -> None:
    announce(station)
    station.cluster.kubernetes_answers = False
    station.now += POLICY.hold_limit_seconds + 60
    ticks(station, 1)
    assert station.incident().open


def test_a_node_without_kafka_stays_too(station: Station) -> None:
    station.cluster.pods.pop(10)
    station.cluster.attached.clear()
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))
    ticks(station, 20)
    assert station.forwarded == []
    assert station.incident().state is State.OPENED


def test_nothing_planned_begins_while_it_holds(station: Station) -> None:
    station.announce(health_event())
    ticks(station, 5)
    assert station.cluster.desired_calls == []
    assert station.cluster.asked_to_terminate == []


def test_a_drain_that_runs_ends(station: Station) -> None:
    paused(station, None)
    replace_machine(station)
    paused(station)
    station.cluster.place_pod(10, NEW)
    station.cluster.kafka = healthy_kafka()
    ticks(station, 12)
    assert station.incident().state is State.RELEASED


def test_a_two_minute_warning_is_drained_all_the_same(station: Station) -> None:
    station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    ticks(station, 1)
    assert len(station.forwarded) == 1


def test_not_even_a_person_lets_one_go_before_it_is_resumed(station: Station) -> None:
    announce(station)
    station.ledger.put(ask_release(station.incident(), "ada", station.now))
    station.now += 60
    station.broom.sweep(station.now)
    ticks(station, 5)
    assert station.forwarded == []


@pytest.mark.parametrize("action", [ForwardDrain(), TerminateInGroup(decrement=False)])
def test_a_pause_that_comes_after_the_decision_stops_its_effect(
    station: Station, action: ForwardDrain | TerminateInGroup
) -> None:
    paused(station, None)
    announce(station)
    incident = replace(station.incident(), node_id=10)
    paused(station)
    with pytest.raises(Conflict, match="Paused by ada"):
        perform(incident, (TakeLease(), action), station.loop.effects, station.now)
    assert station.forwarded == []
    assert station.cluster.asked_to_terminate == []


def test_a_pause_with_an_end_is_over_then() -> None:
    station = paused(Station(), replace(WHY, until=START + 60))
    assert station.freezes.current_pause(START + 59) is not None
    assert station.freezes.current_pause(START + 60) is None
