"""Stores what is remembered of each volume, in the ledger's table: `volume#<id>`, `volume#plan`.

A volume's record is its modifications, and by the hour its fill and its load: what a forecast and a
quiet period are made of. Every write is over the version that was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.ground.fields import drop_keys, unread_keys
from core.volumes.views import (
    FillSample,
    History,
    Hour,
    ModificationState,
    end_modification,
    ledger_from_json,
    ledger_to_json,
)
from handlers.adapters.calls import known_shape
from handlers.store.table import Records

PLAN = "volume#plan"
HOUR_SECONDS = 3600.0
# Two weeks of hours for a trend, and one of quiet for a lowering put off time and again.
SAMPLES_KEPT = 14 * 24
HOURS_KEPT = 14 * 24
# So often a record is written though nothing has changed: a look has to be remembered, too.
LOOK_WRITTEN_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Memory:
    """A volume's record as read."""

    history: History = History()  # noqa: RUF009 - frozen
    samples: tuple[FillSample, ...] = ()
    hours: tuple[Hour, ...] = ()
    version: int = 0
    unread: Mapping[str, Any] = unread_keys()


@known_shape("The ledger's document of a volume")
def read(records: Records, volume_id: str) -> Memory:
    """Return what is known of a volume; of one never seen, nothing."""
    record = records.read(_key(volume_id))
    document: Mapping[str, Any] = record.document or {}
    return Memory(
        history=ledger_from_json(document.get("history")),
        samples=tuple(FillSample(at, used) for at, used, *_ in document.get("samples", ())),
        hours=tuple(
            Hour(at, iops, rate, exceeded=exceeded)
            for at, iops, rate, exceeded, *_ in document.get("hours", ())
        ),
        version=record.version,
        unread=drop_keys(document, "history", "samples", "hours"),
    )


def write(records: Records, volume_id: str, memory: Memory) -> Memory:
    """Write a record over the version it was read at; raises Conflict when somebody has."""
    document = {
        **memory.unread,
        "history": ledger_to_json(memory.history),
        "samples": [[s.at, s.used_bytes] for s in memory.samples],
        "hours": [[h.at, h.iops, h.bytes_per_s, h.exceeded] for h in memory.hours],
    }
    records.write(_key(volume_id), document, memory.version)
    return replace(memory, version=memory.version + 1)


def add_hour(memory: Memory, used_bytes: float | None, hour: Hour | None, now: float) -> Memory:
    """Return a record with this hour's fill and load, unless it has them."""
    this_hour = now - now % HOUR_SECONDS
    samples, hours = memory.samples, memory.hours
    if used_bytes is not None and (not samples or samples[-1].at < this_hour):
        samples = (*samples, FillSample(now, used_bytes))[-SAMPLES_KEPT:]
    if hour is not None and (not hours or hours[-1].at < hour.at):
        hours = (*hours, hour)[-HOURS_KEPT:]
    return replace(memory, samples=samples, hours=hours)


def worth_writing(before: Memory, after: Memory, now: float) -> bool:
    """Say whether a record has changed, or its last look is getting old."""
    if (before.samples, before.hours) != (after.samples, after.hours):
        return True
    if replace(before.history, looked_at=None) != replace(after.history, looked_at=None):
        return True
    looked = before.history.looked_at
    return looked is None or now - looked >= LOOK_WRITTEN_SECONDS


def close(records: Records, volume_id: str, state: ModificationState, at: float) -> bool:
    """Note that a volume's modification ended, as AWS announced; say whether that was news."""
    memory = read(records, volume_id)
    history = end_modification(memory.history, state, at)
    if memory.version == 0 or history == memory.history:
        return False
    write(records, volume_id, replace(memory, history=history))
    return True


def _key(volume_id: str) -> str:
    return f"volume#{volume_id}"
