"""Decides whether faster volumes earn their money while a broker catches up after a rotation.

What is bought is time with one replica less. The rate of a resync is no more than the volume's, so
it is faster by as much as the volume is, and the modification costs its price for the hours it
stands; two of the four modifications of a day are spent on it, once for all nodes of a set that a
run takes one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from core.cost.pricing import HOURS_PER_MONTH, PriceBook
from core.volumes.limits import Performance, most_iops, steps
from core.volumes.sizing import MIB, cents, change_usd
from core.volumes.speed import ceiling
from core.volumes.views import BrokerAbsence, VolumeSet

# Raised before, lowered after, and one left for an emergency.
SLOTS_NEEDED = 3
# A performance takes minutes to hours to be there, and EC2 lets no other change start before; the
# price is reckoned for this long at least.
LEAST_HOURS = 6.0


@dataclass(frozen=True, slots=True)
class Bargain:
    """A faster volume for one rotation: what it saves and what it costs."""

    performance: Performance
    minutes_saved: float
    # None: without it the broker would never catch up.
    minutes_now: float | None
    usd: Decimal
    bytes_moved: float
    # On what the absence rests, in words.
    away: str

    @property
    def reason(self) -> str:
        moved = f"{self.bytes_moved / 1024**3:.1f} GiB are caught up"
        if self.minutes_now is None:
            return (
                f"{moved}, which at today's throughput would never end; it costs ${self.usd} "
                f"({self.away})"
            )
        return (
            f"{moved} {self.minutes_saved:.0f} minutes sooner than in {self.minutes_now:.0f}, "
            f"for ${self.usd} ({self.away})"
        )


def bargain(of: VolumeSet, book: PriceBook) -> Bargain | None:
    """Return the faster performance that pays best for a rotation; None where none pays.

    Without a price nobody knows whether one does.
    """
    rotation, worth = of.rotation, of.policy.usd_per_minute_saved
    if rotation is None or rotation.over or worth <= 0 or rotation.append_bytes_per_s <= 0:
        return None
    asked = of.asked.performance
    backlog = rotation.append_bytes_per_s * rotation.away_seconds
    now = catch_up_seconds(asked, rotation.append_bytes_per_s, backlog)
    best: tuple[float, Bargain] | None = None
    for step in steps(of.floor, ceiling(of)):
        if not step.covers(asked) or step == asked or step.iops > most_iops(of.asked.size_gib):
            continue
        then = catch_up_seconds(step, rotation.append_bytes_per_s, backlog)
        if then is None:
            continue
        usd = _price(of, step, rotation.nodes * (rotation.away_seconds + then), book)
        if usd is None:
            # A bargain is a comparison with its price.
            return None
        saved = float("inf") if now is None else rotation.nodes * (now - then) / 60
        gain = saved * worth - float(usd) if now is not None else 1e9 - float(usd)
        if gain > 0 and (best is None or gain > best[0]):
            moved = rotation.nodes * (backlog + rotation.append_bytes_per_s * then)
            minutes_now = None if now is None else rotation.nodes * now / 60
            best = gain, Bargain(step, saved, minutes_now, cents(usd), moved, _away(rotation))
    return None if best is None else best[1]


def catch_up_seconds(
    performance: Performance, append_bytes_per_s: float, backlog_bytes: float
) -> float | None:
    """Return how long a broker catches up, B / (R - W); None where it never does."""
    left = performance.throughput_mib_per_s * MIB - append_bytes_per_s
    return backlog_bytes / left if left > 0 else None


def _away(rotation: BrokerAbsence) -> str:
    nodes = "one node" if rotation.nodes == 1 else f"{rotation.nodes} nodes, each"
    known = (
        f"measured of {rotation.measured} earlier departures" if rotation.measured else "assumed"
    )
    return f"{nodes} away for {rotation.away_seconds:.0f} s, {known}"


def describe(found: Bargain) -> str:
    return f"{found.performance} for the rotation: {found.reason}"


def _price(of: VolumeSet, step: Performance, seconds: float, book: PriceBook) -> Decimal | None:
    """Return what a step costs more while it stands, over all volumes of the set."""
    asked = of.asked
    each = change_usd(asked, type(asked)(asked.size_gib, step), book)
    if each is None:
        return None
    hours = max(LEAST_HOURS, seconds / 3600)
    return each * len(of.volumes) * Decimal(repr(hours)) / HOURS_PER_MONTH
