"""Which availability zones are given up for a while, and what that forbids.

A freeze begins when AWS shifts traffic out of a zone, when Health reports trouble there, or when
every Kafka node of the zone is lost; it ends with the word that began it. handlers.store.freezes
keeps the record, core.incidents asks it before planned work. Every function here is pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.window import clock

# Sources that say more than "leave it alone": the zone, or all of it that is ours, is in trouble.
HEALTH_ISSUE = "health_issue"
LOST_ZONE = "lost"
# A rehearsal says nothing about the zone's health, and freezes nothing.
REHEARSAL = "practice_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """One zone in which nothing is planned until further notice."""

    zone_id: str  # use1-az2: the same physical zone in every account
    zone: str | None  # us-east-1a: this account's name for it; None until EC2 was asked
    since: float  # epoch seconds
    until: float | None  # when it ends by itself; None: when it is called off
    source: str  # who says so, for instance "autoshift"

    def holds(self, now: float) -> bool:
        """Say whether the freeze is in force."""
        return self.until is None or now < self.until

    @property
    def sentence(self) -> str:
        named = self.zone or self.zone_id
        return f"Zone {named} is frozen since {clock(self.since)} ({self.source})."


class ZoneNotice(Protocol):
    """An announcement that a zone is to be left alone, or that it no longer is."""

    @property
    def zone_id(self) -> str: ...
    @property
    def zone(self) -> str | None: ...
    @property
    def source(self) -> str: ...
    @property
    def over(self) -> bool: ...
    @property
    def occurred_at(self) -> float | None: ...
    @property
    def until(self) -> float | None: ...


def apply(notice: ZoneNotice, freezes: Sequence[Freeze], now: float) -> tuple[Freeze, ...]:
    """Return the freezes in force after a notice; an older word never overrules a newer one."""
    if notice.source == REHEARSAL:
        return tuple(freezes)
    at = now if notice.occurred_at is None else min(notice.occurred_at, now)
    key = (notice.zone_id, notice.source)
    kept = tuple(f for f in freezes if f.holds(now) and (f.zone_id, f.source) != key)
    present = next((f for f in freezes if (f.zone_id, f.source) == key), None)
    if notice.over:
        newer = present is not None and present.since > at
        return (*kept, present) if newer and present is not None else kept
    since = at if present is None else min(present.since, at)
    renewed = Freeze(
        zone_id=notice.zone_id,
        zone=notice.zone or (present.zone if present else None),
        since=since,
        until=notice.until,
        source=str(notice.source),
    )
    return (*kept, renewed) if renewed.holds(now) else kept


def freeze_of(zone: str | None, freezes: Sequence[Freeze], now: float) -> Freeze | None:
    """Return the freeze in force in a zone, by its name."""
    return next((f for f in freezes if zone is not None and f.zone == zone and f.holds(now)), None)
