"""Several wait while one is out: whoever has the least time left goes next, whose tick comes first
or not.
"""

from __future__ import annotations

import pytest

from core.incidents.record import State
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.health_events import health_event
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_never_two_out import SECOND, second_waits, turns
from tests.unit.handlers.walks import drain_node

THIRD, THIRD_SPARE = "i-0c", "i-0f"


@pytest.fixture
def station() -> Station:
    """One is out, a second waits for its turn, and a third for longer than ten minutes less."""
    station = second_waits(drain_node(Station()))
    station.now += 600
    turns(station, SECOND, 1)
    station.cluster.add_instance(THIRD_SPARE, "us-east-1c")
    station.cluster.add_node(THIRD_SPARE)
    return station


def third_leaves(station: Station) -> None:
    station.cluster.terminate(THIRD)
    station.announce(hook_event("drain", instance_id=THIRD, zone="us-east-1c"))
    turns(station, THIRD, 4)
    assert station.incident(THIRD).state is State.HOLDING
    turns(station, SECOND, 1)


def first_is_back(station: Station) -> None:
    station.cluster.kafka = healthy_kafka()
    station.cluster.place_pod(10, "i-0d")
    turns(station, OLD, 8, seconds=1.5)
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    turns(station, OLD, 4, seconds=0.1)
    assert not station.incident().open
    assert station.ledger.leases() == ()


def holders(station: Station) -> list[str]:
    return [lease.holder for lease in station.ledger.leases()]


def test_whoever_waits_for_longer_is_not_passed_by_the_one_whose_tick_comes_first(
    station: Station,
) -> None:
    third_leaves(station)
    first_is_back(station)
    turns(station, THIRD, 2, seconds=1.0)
    assert holders(station) == []
    assert f"Incident {SECOND} has less time to wait" in station.incident(THIRD).reason
    turns(station, SECOND, 1)
    assert holders(station) == [SECOND]


def test_one_that_nobody_looks_at_any_more_lets_the_others_pass(station: Station) -> None:
    third_leaves(station)
    first_is_back(station)
    station.now += 60
    turns(station, THIRD, 1)
    assert holders(station) == [THIRD]


def test_one_that_kafka_keeps_lets_the_others_pass(station: Station) -> None:
    third_leaves(station)
    first_is_back(station)
    station.cluster.kafka = healthy_kafka(out=10)
    turns(station, SECOND, 1)
    assert station.incident(SECOND).turn_due_at is None
    station.cluster.kafka = healthy_kafka()
    turns(station, THIRD, 1)
    assert holders(station) == [THIRD]


def test_a_machine_that_aws_takes_within_the_hour_passes_those_with_more_time(
    station: Station,
) -> None:
    due = station.now + 3000
    body = health_event(due=due, said_at=station.now).replace(OLD, THIRD)
    station.announce(body)
    turns(station, THIRD, 4)
    assert station.incident(THIRD).state is State.HOLDING, station.incident(THIRD).reason
    first_is_back(station)
    turns(station, SECOND, 1, seconds=1.0)
    assert f"Incident {THIRD} has less time to wait" in station.incident(SECOND).reason
    turns(station, THIRD, 1)
    assert holders(station) == [THIRD]
