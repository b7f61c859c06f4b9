"""The document of the zones' incidents, and what shifts and their end do."""

from dataclasses import replace
from typing import Any

import pytest

from core.availability.consent import HEALTH_ISSUE
from core.ground.errors import Conflict, StillwaterError
from core.zones.incident import LostZone
from handlers.incidents.shifts import pending
from handlers.store.documents import Freezes
from handlers.store.ledger import SHIFT_MESSAGE
from tests.every_case import every_case
from tests.unit.core.zones.health_issues import issue
from tests.unit.handlers.announced import zone_event
from tests.unit.handlers.failing import fail, meanwhile
from tests.unit.handlers.fakes import OLD, group_of
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.in_memory import MemoryRecords
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import leaders

NOW = 1_795_168_800.0
SHIFT = LostZone("use1-az1", "us-east-1a", source="autoshift", occurred_at=NOW)
DAY = 86_400.0


def old_document(**changed: Any) -> list[dict[str, Any]]:
    """Return what versions before keys kept."""
    known = {"zone_id": "use1-az1", "zone": "us-east-1a", "since": NOW, "until": None}
    return [{**known, "source": HEALTH_ISSUE, **changed}]


def stored(document: object) -> Freezes:
    records = MemoryRecords()
    records.write("freezes#orders", document, 0)
    return Freezes(records, "orders")


def test_a_duplicate_is_not_written_again() -> None:
    records = MemoryRecords()
    freezes = Freezes(records, "orders")
    assert freezes.note(SHIFT, NOW) == freezes.note(SHIFT, NOW + 5)
    assert records.writes == 1
    assert freezes.current(NOW + 10)[0].since == NOW


class Contested(MemoryRecords):
    """Somebody else writes between every read and write, `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def write(self, key: str, document: object, version: int) -> None:
        if self.times:
            self.times -= 1
            other = replace(SHIFT, zone_id=f"use1-az{self.times + 2}", zone=None)
            records = MemoryRecords()
            Freezes(records, "orders").note(other, NOW)
            super().write(key, records.read(key).document, version)
        super().write(key, document, version)


def test_a_notice_is_added_to_what_others_wrote_meanwhile() -> None:
    freezes = Freezes(Contested(1), "orders")
    assert {f.zone_id for f in freezes.note(SHIFT, NOW)} == {"use1-az1", "use1-az2"}


def test_a_notice_that_never_gets_in_is_not_lost_silently() -> None:
    with pytest.raises(Conflict):
        Freezes(Contested(99), "orders").note(SHIFT, NOW)


def test_what_was_stored_before_freezes_had_keys_is_still_a_freeze_and_ends_by_age() -> None:
    freezes = stored(old_document())
    assert [f.zone for f in freezes.current(NOW + 60)] == ["us-east-1a"]
    assert freezes.current(NOW + DAY) == ()


def test_an_old_freeze_with_an_end_of_its_own_keeps_it() -> None:
    assert stored(old_document(until=NOW + 60)).current(NOW + 60) == ()


def test_a_lost_zone_that_was_stored_before_lasts_until_it_is_seen_again() -> None:
    freezes = stored(old_document(source="lost"))
    assert freezes.current(NOW + 30 * DAY)
    assert freezes.note(LostZone("use1-az1", "us-east-1a", over=True), NOW + 31 * DAY) == ()


@every_case(
    "document",
    [
        None,
        [],
        {},
        "frozen",
        [7, {"zone_id": None}, {"zone_id": "use1-az1", "since": "x"}],
        {"v": 9, "incidents": [None, {"key": "x"}, {"state": "melted"}]},
    ],
    ids=repr,
)
def test_what_makes_no_sense_in_the_document_stops_nobody(document: object) -> None:
    freezes = stored(document)
    assert freezes.current(NOW) == ()
    assert len(freezes.note(SHIFT, NOW)) == 1


def test_a_field_of_a_later_version_is_left_out() -> None:
    records = MemoryRecords()
    Freezes(records, "orders").note(SHIFT, NOW)
    document = records.read("freezes#orders").document
    document["incidents"][0]["mood"] = "grim"
    assert len(stored(document).current(NOW)) == 1


GROUP = group_of("us-east-1a")
AUTOSHIFT = LostZone("use1-az4", "us-east-1a", source="autoshift")


def shifted(station: Station) -> Station:
    station.freezes.note(AUTOSHIFT, station.now)
    station.loop.turn(SHIFT_MESSAGE, station.now)
    return station


def thawed(station: Station) -> Station:
    station.now += 600
    station.freezes.note(replace(AUTOSHIFT, over=True), station.now)
    station.loop.turn(SHIFT_MESSAGE, station.now)
    return station


def test_leaders_leave_a_frozen_zone_once_and_come_back(station: Station) -> None:
    shifted(station)
    assert leaders(station) == {20}
    assert pending(station.freezes, station.records, "orders", station.now)
    reordered, writes = list(station.cluster.reordered), station.records.writes
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert (station.cluster.reordered, station.records.writes) == (reordered, writes)
    thawed(station)
    assert station.cluster.kafka == healthy_kafka()
    assert not pending(station.freezes, station.records, "orders", station.now)


def test_a_zone_known_by_its_id_alone_is_named_first(station: Station) -> None:
    station.freezes.note(replace(AUTOSHIFT, zone=None), station.now)
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert leaders(station) == {20}
    assert station.freezes.current(station.now)[0].zone == "us-east-1a"


def test_a_frozen_zones_instances_are_protected_until_it_thaws(station: Station) -> None:
    shifted(station)
    assert station.cluster.groups[GROUP].protected == {OLD}
    assert station.cluster.groups[group_of("us-east-1b")].protected == frozenset()
    station.cluster.add_instance("i-0d", "us-east-1a")
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert station.cluster.groups[GROUP].protected == {OLD, "i-0d"}
    thawed(station)
    assert station.cluster.groups[GROUP].protected == frozenset()


def test_a_turn_protects_nothing_that_another_has_just_freed(station: Station) -> None:
    def free() -> None:
        station.freezes.thaw("use1-az4", station.now, "ada", "it is well")
        station.shifts.turn(station.now)

    shifted(station).now += 1
    meanwhile(station.cluster, "groups_of", free, at=2)
    with pytest.raises(Conflict):
        station.shifts.turn(station.now)
    assert station.cluster.groups[GROUP].protected == frozenset()


def test_a_turn_moves_no_leaders_that_another_has_just_given_back(station: Station) -> None:
    shifted(station)
    meanwhile(station.cluster, "read", lambda: station.leadership.restore("zone:us-east-1a"))
    with pytest.raises(Conflict):
        station.leadership.avoid("zone:us-east-1a", {10})
    assert station.cluster.kafka == healthy_kafka()


def test_what_somebody_else_has_protected_stays_so(station: Station) -> None:
    station.cluster.protect(GROUP, [OLD], protected=True)
    thawed(shifted(station))
    assert station.cluster.groups[GROUP].protected == {OLD}


def test_a_thaw_kafka_does_not_hear_of_is_finished_later(station: Station) -> None:
    shifted(station)
    moved, station.cluster.kafka = station.cluster.kafka, None
    thawed(station)
    assert pending(station.freezes, station.records, "orders", station.now)
    station.cluster.kafka = moved
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert station.cluster.kafka == healthy_kafka()


@pytest.mark.parametrize("dies_at", ["reorder", "elect"])
def test_an_original_order_survives_a_crash(station: Station, dies_at: str) -> None:
    fail(station.cluster, dies_at, StillwaterError("killed"), times=1)
    shifted(station)
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert leaders(station) == {20}
    fail(station.cluster, dies_at, StillwaterError("killed"), times=1)
    thawed(station)
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert station.cluster.kafka == healthy_kafka()


def test_two_causes_keep_a_broker_from_leading_until_both_are_over(station: Station) -> None:
    shifted(station)
    station.leadership.avoid("drill", [10, 20])
    assert leaders(station) == {30}
    station.leadership.restore("drill")
    assert leaders(station) == {20}
    thawed(station)
    assert station.cluster.kafka == healthy_kafka()


def test_an_announced_shift_asks_for_a_turn(station: Station) -> None:
    station.announce(zone_event("use1-az4", said_at=station.now))
    assert (SHIFT_MESSAGE, 0.0) in station.ticks.sent
    station.tick()
    assert leaders(station) == {20}
    station.ticks.sent.clear()
    station.sweep(60)
    assert (SHIFT_MESSAGE, 0.0) in station.ticks.sent


@pytest.mark.parametrize(
    ("detail", "frozen"),
    [
        ({"entities": [{"entityValue": "us-east-1a"}]}, ["us-east-1a"]),
        ({"text": "Power is lost in us-east-1a."}, ["us-east-1a"]),
        ({"availabilityZone": "us-east-1a"}, ["us-east-1a"]),
        # Another account's zone of that name is another zone.
        ({"text": "Power is lost in us-east-1a.", "eventScopeCode": "PUBLIC"}, []),
        ({"availabilityZone": "use1-az4", "eventScopeCode": "PUBLIC"}, ["us-east-1a"]),
    ],
)
def test_a_zone_may_be_called_by_our_own_name_in_what_is_told_to_us_alone(
    station: Station, detail: dict[str, Any], frozen: list[str]
) -> None:
    told = {"text": "Trouble.", "eventScopeCode": "ACCOUNT_SPECIFIC"} | detail
    station.cluster.add_node(OLD, ready=False)
    station.announce(issue(**told))
    station.loop.turn(SHIFT_MESSAGE, station.now)
    assert [f.zone for f in station.freezes.current(station.now)] == frozen
