"""Zones are frozen and thawed as AWS says, however often and in whatever order it says it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from core.availability.zones import apply, freeze_of
from core.errors import Conflict
from handlers.store.freezes import LedgerFreezes
from tests.unit.handlers.memory_records import MemoryRecords

NOW = 1_795_168_800.0


@dataclass(frozen=True)
class Notice:
    zone_id: str = "use1-az1"
    zone: str | None = "us-east-1a"
    source: str = "autoshift"
    over: bool = False
    occurred_at: float | None = NOW
    until: float | None = None


def test_a_shift_freezes_its_zone_and_its_end_thaws_it() -> None:
    frozen = apply(Notice(), (), NOW)
    assert freeze_of("us-east-1a", frozen, NOW) == frozen[0]
    assert freeze_of("us-east-1b", frozen, NOW) is None
    assert apply(Notice(over=True, occurred_at=NOW + 60), frozen, NOW + 60) == ()


def test_a_freeze_with_an_end_ends_by_itself() -> None:
    frozen = apply(Notice(until=NOW + 60), (), NOW)
    assert freeze_of("us-east-1a", frozen, NOW + 59) is not None
    assert freeze_of("us-east-1a", frozen, NOW + 60) is None
    assert apply(Notice(zone_id="use1-az2", zone="us-east-1b"), frozen, NOW + 61)[0].zone == (
        "us-east-1b"
    )


def test_the_end_of_one_cause_leaves_another_in_force() -> None:
    frozen = apply(Notice(source="health"), apply(Notice(), (), NOW), NOW)
    left = apply(Notice(over=True, occurred_at=NOW + 1), frozen, NOW + 1)
    assert [freeze.source for freeze in left] == ["health"]


def test_an_end_that_is_older_than_the_freeze_changes_nothing() -> None:
    frozen = apply(Notice(), (), NOW)
    assert apply(Notice(over=True, occurred_at=NOW - 60), frozen, NOW + 1) == frozen


def test_a_duplicate_is_not_written_again() -> None:
    records = MemoryRecords()
    freezes = LedgerFreezes(records, "orders")
    assert freezes.note(Notice(), NOW) == freezes.note(Notice(), NOW + 5)
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
            other = replace(Notice(), zone_id=f"use1-az{self.times + 2}", zone=None)
            super().write(key, [_document(other)], version)
        super().write(key, document, version)


def _document(notice: Notice) -> dict[str, object]:
    (freeze,) = apply(notice, (), NOW)
    return {name: getattr(freeze, name) for name in freeze.__slots__}


def test_a_notice_is_added_to_what_others_wrote_meanwhile() -> None:
    freezes = LedgerFreezes(Contested(1), "orders")
    assert {f.zone_id for f in freezes.note(Notice(), NOW)} == {"use1-az1", "use1-az2"}


def test_a_notice_that_never_gets_in_is_not_lost_silently() -> None:
    with pytest.raises(Conflict):
        LedgerFreezes(Contested(99), "orders").note(Notice(), NOW)
