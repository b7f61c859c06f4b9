"""Sizes a gp3 volume: what it may be, what it should be by its use, what that costs.

Capacity follows from fill, performance from load and from a resync. The ClusterSpec's checks, the
advisor (what a volume lacks) and the storage report (what it has too much) ask here. `Policy` is
the ClusterSpec's `volume_policy`, rendered once for λ volumes and the report alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal

from core.cost import pricing
from core.cost.pricing import GP3_INCLUDED_IOPS, GP3_INCLUDED_MIB_PER_S, PriceBook
from core.ground.instances import InstanceType

# EC2 API, ModifyVolume and CreateVolume; before 2025 the maxima were 16 TiB, 16,000 and 1,000, and
# outposts and some partitions still have those.
SMALLEST_GIB, LARGEST_GIB = 1, 65_536
LEAST_IOPS, MOST_IOPS = GP3_INCLUDED_IOPS, 80_000
LEAST_MIB_PER_S, MOST_MIB_PER_S = GP3_INCLUDED_MIB_PER_S, 2000
IOPS_PER_GIB = 500
IOPS_PER_MIB_PER_S = 4

# A change of performance is a VolumeAttributesClass that exists beforehand, so there are few; an
# instance's own limit joins them as the last.
IOPS_STEPS = (
    *(3000, 4000, 6000, 8000, 12_000, 16_000),
    *(20_000, 24_000, 32_000, 40_000, 48_000, 64_000, MOST_IOPS),
)
MIB_PER_S_STEPS = (125, 187, 250, 375, 500, 750, 1000, 1500, MOST_MIB_PER_S)


@dataclass(frozen=True, slots=True)
class Performance:
    """What a volume does in a second."""

    iops: int = LEAST_IOPS
    throughput_mib_per_s: int = LEAST_MIB_PER_S

    def __str__(self) -> str:
        return f"{self.iops} IOPS and {self.throughput_mib_per_s} MiB/s"

    def covers(self, other: Performance) -> bool:
        """Say whether nothing of another performance is missing here."""
        return self.iops >= other.iops and self.throughput_mib_per_s >= other.throughput_mib_per_s


UNLIMITED = Performance(MOST_IOPS, MOST_MIB_PER_S)
INCLUDED = Performance()


@dataclass(frozen=True, slots=True)
class Gp3:
    """One gp3 volume."""

    size_gib: int
    performance: Performance = INCLUDED

    @property
    def iops(self) -> int:
        return self.performance.iops

    @property
    def throughput_mib_per_s(self) -> int:
        return self.performance.throughput_mib_per_s

    def resized(self, size_gib: int) -> Gp3:
        return replace(self, size_gib=size_gib)


def refusals(volume: Gp3) -> list[str]:
    """Return what EC2 would refuse of a volume, a sentence each, with the remedy."""
    return [
        *_outside("size_gib", volume.size_gib, SMALLEST_GIB, LARGEST_GIB),
        *_outside("iops", volume.iops, LEAST_IOPS, MOST_IOPS),
        *_outside(
            "throughput_mib_per_s", volume.throughput_mib_per_s, LEAST_MIB_PER_S, MOST_MIB_PER_S
        ),
        *ratios(volume),
    ]


def ratios(volume: Gp3) -> Iterator[str]:
    """Return where a volume's IOPS exceed its size, or its throughput its IOPS."""
    if volume.iops > most_iops(volume.size_gib):
        yield (
            f"iops {volume.iops} exceeds gp3's {IOPS_PER_GIB} per GiB "
            f"({IOPS_PER_GIB * volume.size_gib} for {volume.size_gib} GiB); raise size_gib or "
            f"lower iops"
        )
    if least_iops(volume.throughput_mib_per_s) > max(volume.iops, LEAST_IOPS):
        yield (
            f"throughput_mib_per_s {volume.throughput_mib_per_s} exceeds gp3's "
            f"{1 / IOPS_PER_MIB_PER_S} per IOPS ({volume.iops / IOPS_PER_MIB_PER_S:.0f} for "
            f"{volume.iops} IOPS); raise iops or lower it"
        )


def _outside(setting: str, value: int, least: int, most: int) -> list[str]:
    if least <= value <= most:
        return []
    return [f"{setting} {value} is outside gp3's {least} to {most}; choose one within"]


def most_iops(size_gib: int) -> int:
    """Return the IOPS a volume of this size may have; every one has the included ones."""
    return max(LEAST_IOPS, min(MOST_IOPS, IOPS_PER_GIB * size_gib))


def least_iops(throughput_mib_per_s: int) -> int:
    """Return the IOPS that must be provisioned for a throughput."""
    return max(LEAST_IOPS, IOPS_PER_MIB_PER_S * throughput_mib_per_s)


def instance_ceiling(
    instance: InstanceType, others: Iterable[Performance] = (), *, bursting: bool = False
) -> Performance:
    """Return what an instance gives one volume, beside the other volumes of its node.

    Its baseline; its burst, which may end while a broker still catches up, only where somebody
    accepts that. What gp3 includes costs nothing and cannot be lowered, so no ceiling is below it.
    """
    beside = list(others)
    iops = instance.ebs_burst_iops if bursting else instance.ebs_iops
    throughput = instance.ebs_burst_mib_per_s if bursting else instance.ebs_mib_per_s
    return Performance(
        max(LEAST_IOPS, min(MOST_IOPS, iops - sum(o.iops for o in beside))),
        max(
            LEAST_MIB_PER_S,
            min(MOST_MIB_PER_S, throughput - sum(o.throughput_mib_per_s for o in beside)),
        ),
    )


def lesser(
    allowed: Performance,
    instance: InstanceType | None,
    others: Iterable[Performance] = (),
    *,
    bursting: bool = False,
) -> Performance:
    """Return the most that is allowed and an instance gives; of one not known, the allowed."""
    if instance is None:
        return allowed
    sustained = instance_ceiling(instance, others, bursting=bursting)
    return Performance(
        min(allowed.iops, sustained.iops),
        min(allowed.throughput_mib_per_s, sustained.throughput_mib_per_s),
    )


def steps(floor: Performance, ceiling: Performance) -> tuple[Performance, ...]:
    """Return every performance between two that this project asks for, the least first.

    The two are among them; one with less IOPS than its throughput needs is not.
    """
    return tuple(
        Performance(iops, throughput)
        for throughput in _steps_between(
            MIB_PER_S_STEPS, floor.throughput_mib_per_s, ceiling.throughput_mib_per_s
        )
        for iops in _steps_between(IOPS_STEPS, floor.iops, ceiling.iops)
        if iops >= least_iops(throughput)
    )


def _steps_between(known: tuple[int, ...], least: int, most: int) -> list[int]:
    return sorted({least, max(least, most), *(step for step in known if least < step < most)})


def step_for(
    wanted: Performance, floor: Performance, ceiling: Performance, size_gib: int
) -> Performance:
    """Return the least step that covers what is wanted, or the most there is.

    A volume too small for the IOPS gets those it may have, and the throughput they carry.
    """
    most = most_iops(size_gib)
    possible = [each for each in steps(floor, ceiling) if each.iops <= most] or [floor]
    covering = [each for each in possible if each.covers(wanted)]
    if covering:
        return min(covering, key=lambda each: (each.throughput_mib_per_s, each.iops))
    return max(possible, key=lambda each: _gain_order(each, wanted))


def _gain_order(each: Performance, wanted: Performance) -> tuple[int, int, int, int]:
    """Order performances that do not suffice: what is had of the wanted, then the less to pay."""
    return (
        min(each.throughput_mib_per_s, wanted.throughput_mib_per_s),
        min(each.iops, wanted.iops),
        -each.throughput_mib_per_s,
        -each.iops,
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
        wanted = wanted.resized(size_gib)
    reasons = [_why_size(current, wanted, use, goals), _why_performance(current, wanted, why)]
    if beyond is not None:
        reasons.append(f"{beyond} are wanted and {goals.ceiling} are the limit here")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may be done to a pool's volumes by itself."""

    # Without it, decisions are only told.
    apply: bool = False
    # Volumes are grown when this many days fit no more, until so many fit.
    act_days: float = 3.0
    headroom_days: float = 14.0
    # What stays free at the end of them.
    free_share: float = 0.15
    step_gib: int = 10
    largest_gib: int = LARGEST_GIB
    # As far as performance may be raised; a pool's instances may sustain less.
    ceiling: Performance = UNLIMITED
    performance_margin: float = 1.2
    # Share of the last minutes in which more was asked than there is.
    exceeded_share: float = 0.1
    quiet_seconds: float = 24 * 3600.0
    # Modifications that only an emergency may use.
    reserved_slots: int = 1
    # For which a rotation's shorter resync is bought; 0 buys none.
    usd_per_minute_saved: float = 0.0
    # Controllers' volumes: a metadata log fills a volume and never keeps it busy.
    grow_only: bool = False
    # Its nodes are voters of the quorum, so no other pool can take their place.
    votes: bool = False
    # Volumes may together ask for what their instance gives for half an hour a day.
    may_burst: bool = False


def goals_of(
    policy: Policy, instance: InstanceType | None = None, beside: Iterable[Performance] = ()
) -> Goals:
    """Return what volumes under a policy should have, on an instance beside other volumes."""
    return Goals(
        headroom_days=policy.headroom_days,
        free_share=policy.free_share,
        step_gib=policy.step_gib,
        performance_margin=policy.performance_margin,
        ceiling=lesser(policy.ceiling, instance, beside, bursting=policy.may_burst),
        largest_gib=policy.largest_gib,
    )
