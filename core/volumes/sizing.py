"""Sizes a volume: capacity from its fill, performance from its load and from a resync.

One rule for two readers: the advisor asks it what a volume lacks, the storage report what it has
too much. Nothing here knows what AWS allows when; that is the ledger's business.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from core.cost import pricing
from core.cost.pricing import PriceBook
from core.volumes.limits import (
    INCLUDED,
    IOPS_PER_GIB,
    LARGEST_GIB,
    LEAST_IOPS,
    SMALLEST_GIB,
    UNLIMITED,
    Gp3,
    Performance,
    step_for,
)

GIB, MIB = 1024**3, 1024**2
CENT = Decimal("0.01")
GP3_ITEMS = ("gp3_gib_month", "gp3_iops_month", "gp3_gibps_month")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What was measured of a volume; None is what nobody measured, and asks for nothing."""

    used_bytes: int
    # Of the fill, a day: a forecast's high quantile where there is one. It may be negative.
    growth_bytes_per_day: float = 0.0
    iops_p999: float | None = None
    throughput_p999_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resync:
    """A broker that was away and must be in sync again within a stated time.

    What is appended to its replicas while it is away is its backlog, and while it catches up the
    same rate goes on.
    """

    append_bytes_per_s: float
    away_seconds: float
    within_seconds: float

    @property
    def write_bytes_per_s(self) -> float:
        """The rate at which the backlog is gone in time: T = W·D / (R - W), solved for R."""
        return self.append_bytes_per_s * (1 + self.away_seconds / self.within_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """How much more than the measured a volume should have."""

    # Days of growth that must fit, and the share that stays free beyond them: a broker whose volume
    # is full stops, and the file system slows before.
    headroom_days: float = 14.0
    free_share: float = 0.15
    # Sizes are multiples of this.
    step_gib: int = 10
    # Of the time's 99.9th percentile; above it comes the spike nobody sampled.
    performance_margin: float = 1.2
    floor: Performance = INCLUDED
    # What the instance sustains for this volume, or what a policy allows.
    ceiling: Performance = UNLIMITED
    largest_gib: int = LARGEST_GIB


@dataclass(frozen=True, slots=True)
class Sizing:
    """What a volume should be, what that costs more or less a month, and why."""

    current: Gp3
    wanted: Gp3
    reasons: tuple[str, ...]
    # None where the price book does not know.
    monthly_usd_change: Decimal | None
    # What was asked beyond the ceiling; None where all of it is within.
    beyond: Performance | None = None


def right_size(
    current: Gp3,
    use: Use,
    book: PriceBook,
    goals: Goals | None = None,
    resync: Resync | None = None,
) -> Sizing:
    """Return what a volume should be by what was measured of it."""
    goals = goals or Goals()
    size_gib = wanted_size(use, goals)
    needed, why = needed_performance(use, goals, resync)
    largest = max(size_gib, current.size_gib)
    wanted = Gp3(size_gib, step_for(needed, goals.floor, goals.ceiling, largest))
    beyond = None if goals.ceiling.covers(needed) else needed
    if wanted.iops > IOPS_PER_GIB * size_gib and wanted.iops > LEAST_IOPS:
        # The ratio makes the volume larger than its data.
        size_gib = math.ceil(wanted.iops / IOPS_PER_GIB)
        wanted = wanted.of_size(size_gib)
    reasons = [_why_size(current, wanted, use, goals), _why_performance(current, wanted, why)]
    if beyond is not None:
        reasons.append(f"{beyond} are asked and {goals.ceiling} are the most there is here")
    change = change_usd(current, wanted, book)
    return Sizing(
        current, wanted, tuple(reasons), None if change is None else cents(change), beyond
    )


def wanted_size(use: Use, goals: Goals) -> int:
    """Return the size that holds what is used, the growth of the days ahead, and the free share."""
    ahead = use.used_bytes + max(0.0, use.growth_bytes_per_day) * goals.headroom_days
    gib = ahead / (1 - goals.free_share) / GIB
    stepped = math.ceil(gib / goals.step_gib - 1e-9) * goals.step_gib
    return max(SMALLEST_GIB, goals.step_gib, min(goals.largest_gib, stepped))


def needed_performance(
    use: Use, goals: Goals, resync: Resync | None = None
) -> tuple[Performance, str]:
    """Return the performance that is needed, before any ceiling, and what asks for it."""
    iops = math.ceil((use.iops_p999 or 0.0) * goals.performance_margin)
    measured = (use.throughput_p999_bytes_per_s or 0.0) * goals.performance_margin
    why = f"p99.9 with a margin of {goals.performance_margin - 1:.0%}"
    catching_up = resync.write_bytes_per_s if resync else 0.0
    if resync and catching_up > measured:
        why = (
            f"a broker away for {resync.away_seconds:.0f} s is in sync again within "
            f"{resync.within_seconds:.0f} s"
        )
    return Performance(iops, math.ceil(max(measured, catching_up) / MIB - 1e-9)), why


def monthly_usd(volume: Gp3, book: PriceBook) -> Decimal:
    """Return what a volume costs a month at list price, exactly.

    Raises InvalidInput where a price is unknown.
    """
    return (
        volume.size_gib * book.price("gp3_gib_month").usd
        + pricing.billed_iops(volume.iops) * book.price("gp3_iops_month").usd
        + pricing.billed_gib_per_s(volume.throughput_mib_per_s) * book.price("gp3_gibps_month").usd
    )


def change_usd(now: Gp3, to: Gp3, book: PriceBook) -> Decimal | None:
    """Return what a volume costs a month more as `to` than as `now`; None where nobody knows."""
    if now == to:
        return Decimal(0)
    if any(book.find(item) is None for item in GP3_ITEMS):
        return None
    return monthly_usd(to, book) - monthly_usd(now, book)


def cents(amount: Decimal) -> Decimal:
    """Return dollars rounded to the cent, as a bill prints them."""
    return amount.quantize(CENT, ROUND_HALF_UP)


def _why_size(current: Gp3, wanted: Gp3, use: Use, goals: Goals) -> str:
    said = (
        f"{use.used_bytes / GIB:.1f} GiB used and {use.growth_bytes_per_day / GIB:+.2f} GiB a day "
        f"want {wanted.size_gib} GiB for {goals.headroom_days:g} days with "
        f"{goals.free_share:.0%} free"
    )
    if wanted.size_gib < current.size_gib:
        return (
            f"{said}; it has {current.size_gib} GiB, and EBS never shrinks a volume: a new pool "
            f"with smaller ones does"
        )
    return said


def _why_performance(current: Gp3, wanted: Gp3, why: str) -> str:
    if wanted.performance == current.performance:
        return f"{current.performance} suffice"
    return f"{wanted.performance} instead of {current.performance}: {why}"
