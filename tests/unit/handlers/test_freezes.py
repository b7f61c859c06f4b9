"""The document of the zones' incidents: written once, kept against others, of any version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.availability.consent import HEALTH_ISSUE
from core.ground.errors import Conflict
from core.zones.incident import LostZone
from handlers.store.documents import Freezes
from tests.every_case import every_case
from tests.unit.handlers.memory_records import MemoryRecords

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
