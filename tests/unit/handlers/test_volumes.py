"""λ volumes over days: what it sends to EC2, through the pool, the operator and the EBS driver."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from core.cost.pricing import PriceBook
from core.volumes.sizing import Performance
from core.volumes.views import Load, ModificationState
from handlers.store import volume_records
from handlers.store.table import Record
from handlers.store.volume_records import PLAN
from handlers.volume.steward import Lookout
from tests.unit.handlers.one_volume import (
    DAY,
    GIB,
    HOUR,
    LOOK,
    MIB,
    MINUTE,
    OneVolume,
    desk,
)

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_filling_volume_is_grown_through_its_pool_alone() -> None:
    at = desk(OneVolume(used=95.0 * GIB))
    decision = at.first()
    assert (decision["kind"], decision["applied"]) == ("grow", True)
    assert at.world.asked.size_gib == decision["target"][0] > 100
    assert at.world.sent == []
    memory = volume_records.read(at.records, "vol-0a")
    assert [m.state for m in memory.history.modifications] == [ModificationState.REQUESTED]


def test_advice_changes_nothing() -> None:
    at = desk(OneVolume(used=95.0 * GIB), applies=False)
    decision = at.first()
    assert (decision["kind"], decision["applied"]) == ("grow", False)
    assert at.world.writes == 0


def test_a_dry_run_changes_nothing_and_keeps_no_plan() -> None:
    at = desk(OneVolume(used=95.0 * GIB))
    assert at.first(dry_run=True)["kind"] == "grow"
    assert at.world.writes == 0
    assert at.records.read(PLAN).document is None


def test_the_plan_is_kept_for_people() -> None:
    at = desk(OneVolume())
    shown = at.look()
    assert at.records.read(PLAN).document == shown


def test_a_pool_changed_meanwhile_gets_its_slot_back() -> None:
    at = desk(OneVolume(used=95.0 * GIB, conflicts=1))
    assert at.first()["applied"] is False
    assert volume_records.read(at.records, "vol-0a").history.modifications == ()
    at.world.now += LOOK
    assert at.first()["applied"] is True


def test_two_functions_at_once_use_one_slot() -> None:
    at = desk(OneVolume(used=95.0 * GIB))
    seen = at.steward.lookout.look(at.world.now)
    other = volume_records.read(at.records, "vol-0a")
    volume_records.write(at.records, "vol-0a", other)
    of = seen.sets[0]
    (decision,) = at.steward.turn(at.world.now, dry_run=True)["decisions"]
    assert decision["kind"] == "grow"
    late = replace(at.steward, lookout=_Stale(seen, at.steward.lookout))  # type: ignore[arg-type]
    assert late.turn(at.world.now)["decisions"][0]["applied"] is False
    assert at.world.writes == 0
    assert of.pool == "broker-a"


class _Stale:
    """A lookout whose reading is already old."""

    def __init__(self, seen: Any, real: Lookout) -> None:
        self._seen, self.settings = seen, real.settings
        self.records, self.claims = real.records, real.claims

    def look(self, now: float) -> Any:
        return self._seen


def test_a_frozen_pool_waits() -> None:
    at = desk(OneVolume(used=95.0 * GIB, frozen="audit"))
    assert at.first()["refused_by"] == "frozen"


def test_a_budget_is_kept() -> None:
    at = desk(OneVolume(used=95.0 * GIB), budget=Decimal(1))
    assert at.first()["refused_by"] == "budget"
    assert at.world.writes == 0


def test_an_announced_end_closes_the_ledgers_entry() -> None:
    world = OneVolume(used=95.0 * GIB, optimizing_seconds=5 * HOUR)
    at = desk(world)
    at.run(LOOK)
    at.look()
    assert volume_records.read(at.records, "vol-0a").history.under_way is not None
    assert volume_records.close(at.records, "vol-0a", ModificationState.COMPLETED, world.now)
    assert volume_records.read(at.records, "vol-0a").history.under_way is None
    assert not volume_records.close(at.records, "vol-0a", ModificationState.COMPLETED, world.now)


def test_a_throttled_volume_is_raised_and_lowered_after_a_quiet_day() -> None:
    world = OneVolume(
        load=Load(
            volume_exceeded_share=0.5,
            instance_exceeded_share=0.0,
            iops_p999=500.0,
            bytes_per_s_p999=125.0 * MIB,
        )
    )
    at = desk(world)
    at.run(HOUR)
    assert world.actual.performance == Performance(3000, 250)
    world.load = Load(
        volume_exceeded_share=0.0,
        instance_exceeded_share=0.0,
        iops_p999=200.0,
        bytes_per_s_p999=20.0 * MIB,
    )
    at.run(20 * HOUR)
    assert world.actual.performance == Performance(3000, 250)
    at.run(8 * HOUR)
    assert world.actual.performance == Performance()
    assert world.refused == []


@pytest.mark.parametrize("optimizing", [10 * MINUTE, 7 * HOUR])
def test_a_fifth_modification_in_24_hours_is_never_sent(optimizing: float) -> None:
    """Four days in which ten modifications a day are wanted: room for hours only, load in waves."""
    world = OneVolume(optimizing_seconds=optimizing)
    at = desk(world, act_days=0.05, headroom_days=0.1, step_gib=1)
    wild = Load(
        volume_exceeded_share=0.9,
        instance_exceeded_share=0.0,
        iops_p999=9000.0,
        bytes_per_s_p999=240.0 * MIB,
    )
    for hour in range(4 * 24):
        world.used = min(world.used + 6 * GIB, world.actual.size_gib * GIB)
        world.load = wild if hour % 2 else Load(volume_exceeded_share=0.0)
        at.run(HOUR)
    assert len(world.sent) > 8
    assert world.refused == []
    times = [sent for sent, _ in world.sent]
    for begin in times:
        assert sum(1 for t in times if begin <= t < begin + DAY) <= 4


def test_an_end_that_aws_announces_during_a_look_stays_closed() -> None:
    world = OneVolume(used=95.0 * GIB, optimizing_seconds=5 * HOUR)
    at = desk(world)
    at.run(LOOK)
    at.look()
    seen = at.records.read("volume#vol-0a")
    read = at.records.read

    def announced_meanwhile(key: str) -> Record:
        # The look has its reading, and is about to write.
        if key == "volume#vol-0a" and at.records.read is announced_meanwhile:
            at.records.read = read  # type: ignore[method-assign]
            volume_records.close(at.records, "vol-0a", ModificationState.COMPLETED, world.now)
            return seen
        return read(key)

    at.records.read = announced_meanwhile  # type: ignore[method-assign]
    world.now += 20 * MINUTE
    at.look(dry_run=True)
    assert volume_records.read(at.records, "vol-0a").history.under_way is None


def test_where_no_price_is_known_disks_are_watched_all_the_same() -> None:
    at = desk(OneVolume(used=95.0 * GIB))
    unpriced = replace(at.steward, book=PriceBook("eu-west-1", "The shipped price file"))
    shown = unpriced.turn(at.world.now)
    assert shown["decisions"][0]["applied"] is True
    assert (shown["planned_usd"], shown["decisions"][0]["monthly_usd_change"]) == (None, None)
    assert "stillwater prices fetch --region eu-west-1" in shown["unpriced"]
