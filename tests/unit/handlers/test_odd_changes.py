"""Changes that AWS schedules and no rule answers, or that make no sense."""

from __future__ import annotations

import json

import pytest

from tests.unit.handlers.fakes import (
    OLD,
)
from tests.unit.handlers.health_events import DAY, RETIREMENT, health_event
from tests.unit.handlers.station import Station


@pytest.fixture
def station() -> Station:
    return Station()


@pytest.mark.parametrize(
    "code", ["AWS_EC2_PLANNED_LIFECYCLE_EVENT", "AWS_EC2_INSTANCE_NOVEL_CHANGE", "AWS_EBS_NEW"]
)
def test_a_change_that_is_not_known_replaces_nothing_and_calls_a_person_once(
    station: Station, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    for _ in range(3):
        station.announce(health_event(code))
        station.now += DAY
    assert station.ledger.open_incidents() == ()
    pages = [r for r in caplog.records if r.levelname == "CRITICAL"]
    assert len(pages) == 1
    assert code in pages[0].message


def test_a_change_of_anothers_instance_calls_nobody(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    station.announce(health_event("AWS_EC2_PLANNED_LIFECYCLE_EVENT").replace(OLD, "i-0foreign"))
    assert [r for r in caplog.records if r.levelname == "CRITICAL"] == []


def test_a_change_whose_date_makes_no_sense_is_told_and_crashes_no_later_turn(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    event = json.loads(health_event(RETIREMENT))
    for start in ("Fri, 31 Dec 9999 23:59:59 GMT", "soon", "-1", float("nan"), 1e308, True):
        event["detail"] |= {"startTime": start, "eventArn": f"arn:{start}"}
        station.announce(json.dumps(event))
    assert station.ledger.open_incidents() == ()
    pages = [r.message for r in caplog.records if r.levelname == "CRITICAL"]
    assert len(pages) == 6
    assert all("no time between 2000 and 2100" in page for page in pages)
