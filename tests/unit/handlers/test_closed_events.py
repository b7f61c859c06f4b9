"""A Health event that AWS closes stays closed: an older word of it, redriven, replaces nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.record import State
from handlers.store.ledger import Ledger
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.health_events import DAY, REBOOT, RETIREMENT, health_event
from tests.unit.handlers.memory_ledger import MemoryLedger
from tests.unit.handlers.station import START, Station
from tests.unit.handlers.tables import REGION, TABLE, stored_items

CLOSED = START + 60
LATE = f"AWS announced this for instance {OLD} before it closed the event on 2026-11-20 10:01 UTC."


@pytest.fixture
def station() -> Station:
    return Station()


def reasons(station: Station) -> list[str]:
    return [reason for _, reason in station.ledger.ignored]


def test_an_open_event_that_arrives_after_its_end_opens_nothing(station: Station) -> None:
    station.announce(health_event(status="closed", said_at=CLOSED))
    station.now += 3 * DAY
    station.announce(health_event(said_at=START))
    assert station.ledger.open_incidents() == ()
    assert reasons(station)[-1] == LATE
    assert station.ticks.sent == []


def test_two_words_of_one_moment_end_it_in_either_order(station: Station) -> None:
    station.announce(health_event(status="closed", said_at=START))
    station.announce(health_event(said_at=START))
    assert station.ledger.open_incidents() == ()


def test_a_word_that_is_later_than_the_end_opens_the_incident(station: Station) -> None:
    station.announce(health_event(status="closed", said_at=CLOSED))
    station.announce(health_event(said_at=CLOSED + 60))
    assert station.incident().state is State.OPENED


def test_an_older_end_that_comes_late_does_not_hide_a_newer_one(station: Station) -> None:
    station.announce(health_event(status="closed", said_at=CLOSED))
    station.announce(health_event(status="closed", said_at=START - 60))
    station.announce(health_event(said_at=START))
    assert reasons(station)[-1] == LATE


def test_the_end_of_one_event_says_nothing_about_another(station: Station) -> None:
    station.announce(health_event(REBOOT, status="closed", said_at=CLOSED))
    station.announce(health_event(said_at=START))
    assert station.incident().state is State.OPENED


def test_the_end_for_one_instance_says_nothing_about_another(station: Station) -> None:
    station.announce(health_event(status="closed", said_at=CLOSED).replace(OLD, "i-0b"))
    station.announce(health_event(said_at=START))
    assert station.incident().state is State.OPENED


def test_an_update_of_a_cancelled_event_that_was_underway_opens_no_second_round(
    station: Station,
) -> None:
    station.announce(health_event(said_at=START))
    station.announce(health_event(status="closed", said_at=CLOSED))
    station.ledger.put(replace(station.incident(), state=State.CANCELLED))
    station.announce(health_event(said_at=START + 30))
    assert station.ledger.get(f"{OLD}.2") is None
    assert reasons(station) == [LATE]


def test_an_older_word_of_a_closed_event_joins_no_incident_of_another(station: Station) -> None:
    station.announce(health_event(REBOOT, status="closed", said_at=CLOSED))
    station.announce(health_event(said_at=CLOSED + 60))
    station.announce(health_event(REBOOT, due=START + DAY, said_at=START))
    assert station.incident().event_type == RETIREMENT
    assert len(station.incident().scheduled) == 1


def test_the_end_of_a_reboot_calls_no_retirement_off(station: Station) -> None:
    station.announce(health_event(said_at=START))
    station.announce(health_event(REBOOT, due=START + DAY, said_at=START + 10))
    station.announce(health_event(REBOOT, due=START + DAY, status="closed", said_at=CLOSED))
    found = station.incident()
    assert (found.event_type, found.called_off) == (RETIREMENT, False)
    assert found.due_at == START + 14 * DAY


def test_a_date_of_a_clock_that_is_wrong_hides_no_later_word(station: Station) -> None:
    station.announce(health_event(said_at=START + 3650 * DAY))
    station.now += 3600
    station.announce(health_event(status="closed", said_at=START + 3600))
    assert station.incident().called_off
    station.now += 3600
    station.announce(health_event(due=START + 20 * DAY, said_at=START + 7200))
    assert not station.incident().called_off


@pytest.fixture(params=["memory", "dynamodb"])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    if request.param == "memory":
        return MemoryLedger()
    request.getfixturevalue("aws")
    return Ledger(TABLE, "orders", REGION)


def test_the_latest_end_of_an_event_stands(ledger: Ledger) -> None:
    assert ledger.closed_at("an event") is None
    for said_at in (20.5, 30.0, 10.0):
        ledger.close_event("an event", said_at, 100.0)
    assert ledger.closed_at("an event") == 30.0
    assert ledger.closed_at("another") is None


def test_the_end_of_an_event_is_kept_as_long_as_what_was_announced(aws: None) -> None:
    Ledger(TABLE, "orders", REGION).close_event("an event", 20.5, 1000.0)
    (item,) = stored_items("closed#")
    assert item["expires_at"] == {"N": str(1000 + 90 * 86_400)}
