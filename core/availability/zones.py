"""Which availability zones are given up for a while, and what that forbids.

A freeze begins when AWS shifts traffic out of a zone, when Health reports trouble there that our
own nodes bear out, when every Kafka node of the zone is lost, or when a person asks for it; it ends
with whoever began it, or by its age. core.zones remembers why, handlers.store.freezes keeps the
record, core.incidents asks it before planned work. Every function here is pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.window import clock

# Sources that say more than "leave it alone": the zone, or all of it that is ours, is in trouble.
HEALTH_ISSUE = "health_issue"
LOST_ZONE = "lost"


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


def freeze_of(zone: str | None, freezes: Sequence[Freeze], now: float) -> Freeze | None:
    """Return the freeze in force in a zone, by its name."""
    return next((f for f in freezes if zone is not None and f.zone == zone and f.holds(now)), None)
