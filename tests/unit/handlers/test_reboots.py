"""A reboot that AWS schedules is ridden through: others lead meanwhile."""

from __future__ import annotations

import pytest

from core.incidents.record import State
from tests.unit.handlers.health_events import REBOOT, health_event
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import START, Station
from tests.unit.handlers.test_planned import announced


@pytest.fixture
def station() -> Station:
    return Station()


def test_a_reboot_is_ridden_through_with_leaders_elsewhere(station: Station) -> None:
    due = START + 2 * 3600
    station.announce(health_event(REBOOT, due=due))
    station.tick()
    assert station.incident().state is State.OPENED
    assert station.cluster.reordered == []
    station.now = due - 600
    station.tick()
    view = station.cluster.kafka
    assert view is not None
    assert {p.leader for p in view.partitions} == {20}
    assert station.cluster.terminated == []
    station.now = due + 7200
    station.tick()
    station.tick()
    assert station.incident().state is State.RIDDEN_THROUGH
    assert station.cluster.kafka == healthy_kafka()


def test_a_reboot_that_is_over_early_gives_the_leaders_back(station: Station) -> None:
    due = START + 600
    announced(station, REBOOT, due=due)
    station.now = due
    station.announce(health_event(REBOOT, due=due, status="closed", said_at=due))
    station.tick()
    assert station.incident().state is State.CANCELLED
    assert station.cluster.kafka == healthy_kafka()


def test_a_release_nobody_could_finish_is_finished_by_the_next_shift(station: Station) -> None:
    due = START + 600
    announced(station, REBOOT, due=due)
    moved, station.cluster.kafka = station.cluster.kafka, None
    station.announce(health_event(REBOOT, due=due, status="closed", said_at=due))
    station.tick()
    assert station.incident().state is State.CANCELLED
    station.cluster.kafka = moved
    station.shifts.turn(station.now)
    assert station.cluster.kafka == healthy_kafka()
