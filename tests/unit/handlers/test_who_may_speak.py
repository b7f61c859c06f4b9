"""Announcements of others, of another time and of what cannot be: told, never acted on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.events.parsing import Home
from core.ground.errors import StillwaterError
from tests.announcements import load
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.health_events import DAY, health_event
from tests.unit.handlers.station import START, Station

HOME = Home("123456789012", "us-east-1")
SPOT = ec2_event("EC2 Spot Instance Interruption Warning", OLD)


@pytest.fixture
def station() -> Station:
    return Station()


def pages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelname == "CRITICAL"]


def changed(body: str, **frame: object) -> str:
    return json.dumps(json.loads(body) | frame)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ({"account": "999999999999"}, "account 999999999999"),
        ({"region": "eu-west-1"}, "region eu-west-1"),
    ],
)
def test_what_is_about_another_account_or_region_is_kept_with_its_reason(
    station: Station, frame: dict[str, str], says: str
) -> None:
    for body in (hook_event("drain"), SPOT, json.dumps(load("zone-manual-shift-started"))):
        station.desk.take(changed(body, **frame), station.now, home=HOME)
    assert station.ledger.open_incidents() == ()
    assert station.freezes.incidents() == ()
    assert len(station.ledger.ignored) == 3
    assert all(says in reason for _, reason in station.ledger.ignored)


@pytest.mark.parametrize(
    ("frame", "detail", "ours"),
    [
        ({"region": "us-west-2"}, {"eventRegion": "us-east-1", "backupEvent": "true"}, True),
        ({"region": "us-east-1"}, {"eventRegion": "global"}, True),
        ({"region": "us-east-1"}, {"eventRegion": "eu-west-1"}, False),
        # An organization's administrator hears of every account's.
        ({}, {"affectedAccount": "999999999999"}, False),
    ],
)
def test_a_health_event_counts_for_whom_and_where_it_happens(
    station: Station, frame: dict[str, str], detail: dict[str, str], ours: bool
) -> None:
    event = load("health-retirement")
    event["detail"] |= detail | {"affectedEntities": [{"entityValue": OLD}]}
    station.desk.take(json.dumps(event | frame), station.now, home=HOME)
    assert bool(station.ledger.open_incidents()) is ours


@pytest.mark.parametrize("arn", [None, "", "arn:aws:sqs", "arn:aws:sns:us-east-1:1:x", "::::::"])
def test_an_address_that_is_no_queues_says_nothing_about_home(arn: str | None) -> None:
    assert Home.from_queue_arn(arn) is None


def test_a_spot_warning_for_an_instance_that_is_not_spot_is_told_and_not_acted_on(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    known = station.cluster.instances[OLD]
    station.cluster.instances[OLD] = replace(known, market="on-demand")
    station.announce(hook_event("drain"))
    station.announce(SPOT)
    assert not station.incident().urgent
    assert "EC2 calls the instance on-demand" in pages(caplog)[0]
    station.cluster.instances[OLD] = replace(known, market="spot")
    station.announce(SPOT)
    assert station.incident().urgent


def test_a_warning_older_than_it_can_be_is_told_and_not_acted_on(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    station.now += 3600
    station.announce(SPOT)
    assert station.ledger.open_incidents() == ()
    assert "two minutes old at most" in pages(caplog)[0]


def test_an_issue_replayed_after_weeks_opens_nothing(station: Station) -> None:
    event = load("health-instance-issue")
    event["detail"]["affectedEntities"] = [{"entityValue": OLD}]
    station.now += 30 * 86_400
    station.announce(json.dumps(event))
    assert station.ledger.open_incidents() == ()


def test_a_refresh_that_failed_calls_a_person(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    station.announce(json.dumps(load("refresh-failed")))
    assert len(pages(caplog)) == 1


@pytest.mark.parametrize(
    ("due", "said_at", "opens"),
    [
        (START - 20 * DAY, START - 40 * DAY, False),
        (START + DAY, START - 40 * DAY, True),  # announced long before, as AWS does
        (START - DAY, START - 20 * DAY, True),  # late, and AWS may be late, too
        (START - 20 * DAY, START - DAY, True),  # AWS repeats it: it means it still
    ],
)
def test_a_schedule_replayed_weeks_after_its_date_is_told_and_not_acted_on(
    station: Station, due: float, said_at: float, *, opens: bool
) -> None:
    station.announce(health_event(due=due, said_at=said_at))
    assert bool(station.ledger.open_incidents()) is opens


def test_a_warning_that_cannot_be_true_calls_nobody_before_it_is_kept(
    station: Station, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object) -> None:
        raise StillwaterError("The ledger does not answer.")

    station.now += 3600  # older than a spot warning can be
    with monkeypatch.context() as patch:
        patch.setattr(station.ledger, "record_ignored", away)
        for _ in range(3):
            with pytest.raises(StillwaterError):
                station.desk.take(SPOT, station.now, home=HOME)
    assert pages(caplog) == []
    station.desk.take(SPOT, station.now, home=HOME)
    assert len(pages(caplog)) == 1
