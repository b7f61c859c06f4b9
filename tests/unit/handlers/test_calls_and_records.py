"""A person is called once for one matter, and not never: whatever fails beside the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.errors import Conflict
from handlers.incidents.lost_zone import freeze
from tests.announcements import BODIES
from tests.unit.handlers.fakes import group_of
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_notices import add_volume, announce


@pytest.fixture
def station() -> Station:
    return Station()


def pages(station: Station, key: str) -> int:
    return sum(page["page"] == key for page in station.ticks.pages)


def busy(*_: Any, **__: Any) -> None:
    raise Conflict("Somebody else was first.")


def refresh_failed(station: Station) -> None:
    body = BODIES["refresh-failed"].replace("test-orders-broker-a", group_of("us-east-1a"))
    station.announce(body)


def volume_harmed(station: Station) -> None:
    add_volume(station, instance_id=None)
    announce(station, "volume-attach-failed")


@pytest.mark.parametrize(("said", "page"), [(refresh_failed, "refresh"), (volume_harmed, "volume")])
def test_an_announcement_that_is_delivered_until_it_can_be_recorded_calls_once(
    station: Station,
    monkeypatch: pytest.MonkeyPatch,
    said: Callable[[Station], None],
    page: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(station.ledger, "record_event", busy)
        for _ in range(3):
            with pytest.raises(Conflict):
                said(station)
    said(station)
    assert pages(station, page) == 1


def test_a_lost_zone_is_told_though_its_freeze_was_noted_by_who_died_over_it(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        freeze("us-east-1a", "Lost.", station.cluster, station.freezes, station.ticks, station.now)

    with monkeypatch.context() as patch:
        patch.setattr(station.ticks, "send", busy)
        with pytest.raises(Conflict):
            lost()
    lost()
    lost()
    assert pages(station, "zone_lost") == 1
