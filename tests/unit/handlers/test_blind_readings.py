"""A reading of Kafka that hides something: hooks beat, nobody goes, and a person hears why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.ground.errors import StillwaterError
from core.incidents.decide import BLIND_SECONDS
from core.incidents.record import State
from core.views import Doubt
from handlers.incidents.shifts import Leadership
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.memory_records import MemoryRecords
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import replace_machine

HIDDEN = Doubt(
    "Kafka hides topic payments (TopicAuthorizationFailed); grant the functions' user Describe on "
    "every topic.",
    refused=True,
)


@pytest.fixture
def station() -> Station:
    return Station()


def test_nothing_is_drained_on_a_reading_that_hides_a_topic(station: Station) -> None:
    station.cluster.kafka = replace(healthy_kafka(), doubts=(HIDDEN,))
    replace_machine(station)
    for _ in range(5):
        station.tick()
    incident = station.incident()
    assert incident.state is State.HOLDING
    assert station.forwarded == []
    assert "grant the functions' user Describe on every topic" in incident.reason
    assert incident.pages == ("kafka_rights",)


def test_a_reading_that_may_mend_itself_calls_nobody(station: Station) -> None:
    doubt = Doubt("Topic t is known to one broker and not to another.")
    station.cluster.kafka = replace(healthy_kafka(), doubts=(doubt,))
    replace_machine(station)
    for _ in range(5):
        station.tick()
    assert station.incident().state is State.HOLDING
    assert station.incident().pages == ()
    station.cluster.kafka = healthy_kafka()
    station.tick_until_quiet()
    assert station.incident().state is State.DRAINING


def test_a_doubt_that_lasts_calls_a_person_once_and_one_that_ends_is_forgotten(
    station: Station,
) -> None:
    doubt = Doubt("Topic t is known to one broker and not to another.")
    station.cluster.kafka = replace(healthy_kafka(), doubts=(doubt,))
    replace_machine(station)
    station.tick()
    begun = station.incident().doubted_since
    assert begun is not None
    while station.now <= begun + BLIND_SECONDS:
        assert station.incident().pages == ()
        station.now += 120
        station.tick()
    station.tick()
    assert station.incident().pages == ("doubt",)
    assert station.incident().state is State.HOLDING
    station.cluster.kafka = healthy_kafka()
    station.tick()
    assert station.incident().doubted_since is None


def test_a_kafka_that_answers_nothing_calls_a_person_once_it_has_lasted(station: Station) -> None:
    station.cluster.kafka = None
    replace_machine(station)
    station.tick()
    begun = station.incident().doubted_since
    assert begun is not None
    while station.now <= begun + BLIND_SECONDS:
        assert station.incident().pages == ()
        station.now += 120
        station.tick()
    station.tick()
    assert station.incident().pages == ("kafka_silent",)
    assert station.incident().state is State.HOLDING
    station.cluster.kafka = healthy_kafka()
    station.tick()
    assert station.incident().doubted_since is None


def test_leaders_stay_where_a_reading_hides_a_partition(station: Station) -> None:
    station.cluster.kafka = replace(healthy_kafka(), doubts=(HIDDEN,))
    leadership = Leadership(station.cluster, MemoryRecords(), "orders")
    with pytest.raises(StillwaterError, match="hides topic payments"):
        leadership.avoid("test", [10])
    assert station.cluster.reordered == []
