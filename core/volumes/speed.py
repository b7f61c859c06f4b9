"""Decides whether a set of volumes must be faster, or may be slower again.

It rests on time in which a limit was exceeded: what is delivered is never more than the limit, so a
rate near it may be all that was wanted, or a tenth of it. Not faster where the instance is what
gives no more; slower after a quiet period, and only with modifications to spare. Before a rotation
a faster volume may be bought for the resync: it costs its price for the hours it stands, and two of
the four modifications of a day, once for all nodes of a set that a run takes one after another.
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from operator import attrgetter

from core.cost.pricing import HOURS_PER_MONTH, INSTANCE_HOUR, PriceBook
from core.ground import instances
from core.ground.instances import InstanceType
from core.volumes.sizing import (
    MIB,
    Performance,
    Policy,
    cents,
    change_usd,
    instance_ceiling,
    least_iops,
    lesser,
    most_iops,
    steps,
)
from core.volumes.views import WINDOW_SECONDS, BrokerAbsence, Hour, Load, VolumeSet, VolumeView

# What is measured of a throttled volume is its own limit; what it would take, nobody knows.
RAISE_FACTOR = 1.5
# An hour in which less time than this was measured is no whole one.
LEAST_SECONDS = 900.0


class ThrottleLimit(StrEnum):
    """Whose limit is exceeded."""

    VOLUME = "volume"
    INSTANCE = "instance"


def limited_by(load: Load, policy: Policy) -> ThrottleLimit | None:
    """Return whose limit a load exceeds; the instance's first, where a faster volume is no help."""
    if policy.grow_only:
        return None
    if _exceeds(load.instance_exceeded_share, policy):
        return ThrottleLimit.INSTANCE
    return ThrottleLimit.VOLUME if _exceeds(load.volume_exceeded_share, policy) else None


def _exceeds(share: float | None, policy: Policy) -> bool:
    return share is not None and share >= policy.exceeded_share


def next_step(
    asked: Performance,
    load: Load,
    floor: Performance,
    most: Performance,
    size_gib: int,
    margin: float,
) -> Performance | None:
    """Return the step above what is asked that helps a throttled volume; None where none does."""
    by_iops, by_throughput = _bounds(load, asked)
    wanted = Performance(
        math.ceil(max(asked.iops * RAISE_FACTOR, (load.iops_p999 or 0) * margin))
        if by_iops
        else asked.iops,
        math.ceil(
            max(
                asked.throughput_mib_per_s * RAISE_FACTOR,
                (load.bytes_per_s_p999 or 0) * margin / MIB,
            )
        )
        if by_throughput
        else asked.throughput_mib_per_s,
    )
    possible = [
        step
        for step in steps(floor, most)
        if step.covers(asked)
        and step.iops <= most_iops(size_gib)
        and (
            (by_iops and step.iops > asked.iops)
            or (by_throughput and step.throughput_mib_per_s > asked.throughput_mib_per_s)
        )
    ]
    covering = [step for step in possible if step.covers(wanted)]
    if covering:
        return min(covering, key=lambda s: (s.throughput_mib_per_s, s.iops))
    return max(possible, key=lambda s: _had_of(s, wanted), default=None)


def _had_of(step: Performance, wanted: Performance) -> tuple[float, int, int]:
    """Order steps that do not suffice: the shares of the wanted they give, then the price."""
    had = min(1.0, step.iops / wanted.iops) + min(
        1.0, step.throughput_mib_per_s / wanted.throughput_mib_per_s
    )
    return had, -step.throughput_mib_per_s, -step.iops


def _bounds(load: Load, asked: Performance) -> tuple[bool, bool]:
    """Say which of a volume's limits it ran into; both, where nobody measured which."""
    iops, rate = load.iops_p999, load.bytes_per_s_p999
    if iops is None or rate is None:
        return True, True
    near_iops = iops >= 0.9 * asked.iops
    near_rate = rate >= 0.9 * asked.throughput_mib_per_s * MIB
    return (near_iops, near_rate) if near_iops or near_rate else (True, True)


# Every raise that took back a lowering within this makes the next quiet period longer.
FLAP_WINDOW_SECONDS = 7 * WINDOW_SECONDS
LONGEST_BACKOFF = 8
HOUR_SECONDS = 3600.0
# A load is that of the last hour.
MEASURED_SECONDS = 3600.0
LETTERS = string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class Speed:
    """The performance a set should have and why; or why it cannot have it."""

    performance: Performance | None
    reason: str
    # instance or ceiling, where there is no performance that helps.
    refused_by: str = ""


def ceiling(set_: VolumeSet) -> Performance:
    """Return the most that a policy allows and every instance of a set sustains."""
    found = set_.policy.ceiling
    for instance in _instances(set_.volumes):
        found = lesser(found, instance, set_.beside, bursting=set_.policy.may_burst)
    return found


def faster(set_: VolumeSet, book: PriceBook, now: float) -> Speed | None:
    """Return what a throttled set should have; None where none of it is throttled."""
    asked = set_.asked.performance
    limits = [(v, limited_by(v.load, set_.policy)) for v in set_.volumes]
    bound = [v for v, limit in limits if limit is ThrottleLimit.INSTANCE]
    if bound:
        most = max(bound, key=lambda v: v.load.instance_exceeded_share or 0.0)
        return Speed(None, _instance_bound(most, book), "instance")
    if not asked.covers(set_.spec.performance):
        wanted = _greater(asked, set_.spec.performance)
        return Speed(wanted, f"the ClusterSpec asks for {set_.spec.performance}")
    throttled = [
        v for v, limit in limits if limit is ThrottleLimit.VOLUME and not _just_changed(v, now)
    ]
    if not throttled:
        return None
    volume = max(throttled, key=lambda v: v.load.volume_exceeded_share or 0.0)
    share = volume.load.volume_exceeded_share or 0.0
    better = next_step(
        asked,
        volume.load,
        set_.floor,
        _greater(ceiling(set_), set_.floor),
        set_.asked.size_gib,
        set_.policy.performance_margin,
    )
    why = f"{volume.claim} had demand above {asked} {share:.0%} of the time"
    if better is None:
        return _reached_limit(set_, volume, why, book)
    return Speed(better, why)


def _just_changed(volume: VolumeView, now: float) -> bool:
    """Say whether what was measured is, in part, of the volume as it was before."""
    latest = volume.history.latest
    if latest is None or (
        latest.original is not None and latest.original.performance == latest.target.performance
    ):
        return False
    return now - (latest.ended_at or latest.started_at) < MEASURED_SECONDS


def slower(set_: VolumeSet, now: float) -> Speed | None:
    """Return the performance that has sufficed all through the quiet period, if it is less."""
    asked, floor = set_.asked.performance, set_.floor
    if asked == floor or not set_.volumes or set_.policy.grow_only:
        return None
    quiet = quiet_seconds(set_, now)
    hours: list[Hour] = []
    for volume in set_.volumes:
        seen = [h for h in volume.load.hours if h.at > now - quiet - HOUR_SECONDS]
        covered = len({int(h.at // HOUR_SECONDS) for h in seen})
        if covered < quiet / HOUR_SECONDS or any(h.exceeded for h in seen):
            return None
        hours += seen
    margin = set_.policy.performance_margin
    needed = Performance(
        math.ceil(max(h.iops for h in hours) * margin),
        math.ceil(max(h.bytes_per_s for h in hours) * margin / MIB - 1e-9),
    )
    fitting = [s for s in steps(floor, asked) if s.covers(needed) and asked.covers(s)]
    least = min(fitting, key=lambda s: (s.throughput_mib_per_s, s.iops), default=asked)
    if least == asked:
        return None
    return Speed(least, f"for {quiet / HOUR_SECONDS:.0f} hours {needed} with its margin sufficed")


def quiet_seconds(set_: VolumeSet, now: float) -> float:
    """Return how long a set must be quiet: longer each time a lowering was regretted."""
    regretted = max((_regrets(v, now) for v in set_.volumes), default=0)
    return set_.policy.quiet_seconds * min(LONGEST_BACKOFF, 1 << regretted)


def _regrets(volume: VolumeView, now: float) -> int:
    kinds = [
        m.kind
        for m in volume.history.started_within(now, FLAP_WINDOW_SECONDS)
        if m.kind in {"raise", "lower"}
    ]
    return sum(1 for a, b in pairwise(kinds) if (a, b) == ("lower", "raise"))


def _reached_limit(set_: VolumeSet, volume: VolumeView, why: str, book: PriceBook) -> Speed:
    """Say what ends the raising: the instance, the policy, or the volume's size."""
    asked = set_.asked.performance
    bound_by = _instances([volume])
    bursting = set_.policy.may_burst
    sustained = instance_ceiling(bound_by[0], set_.beside, bursting=bursting) if bound_by else None
    if sustained is not None and set_.policy.ceiling.covers(sustained):
        return Speed(None, f"{why}, and {helps(volume.instance_type, book)}", "instance")
    if most_iops(set_.asked.size_gib) <= asked.iops < set_.policy.ceiling.iops:
        return Speed(
            None,
            f"{why}, and gp3 gives {set_.asked.size_gib} GiB no further IOPS; make it larger",
            "ceiling",
        )
    return Speed(
        None,
        f"{why}, and the policy allows no more than {set_.policy.ceiling}; raise max_iops or "
        "max_throughput_mib_per_s, or add a broker",
        "ceiling",
    )


def _instance_bound(volume: VolumeView, book: PriceBook) -> str:
    share, better = volume.load.instance_exceeded_share or 0.0, helps(volume.instance_type, book)
    return (
        f"the instance of {volume.pod} had demand above it gives its volumes {share:.0%} of the "
        f"time, so a faster volume brings nothing: {better}"
    )


def helps(instance_type: str | None, book: PriceBook) -> str:
    """Name the limit of an instance type, and the type that has more."""
    current = instances.table().types.get(instance_type or "")
    if current is None:
        return f"its instance type {instance_type or '(unknown)'} is in no table of ours"
    limit = f"{current.name} sustains {current.ebs_iops} IOPS and {current.ebs_mib_per_s} MiB/s"
    if current.bursts:
        limit += (
            f" ({current.ebs_burst_iops} and {current.ebs_burst_mib_per_s} for "
            f"{instances.BURST_SECONDS / 60:.0f} minutes in 24 hours)"
        )
    better = helping_type(current, book)
    if better is None:
        return f"{limit}, and no type on the price list with as much memory has more; add a broker"
    here, there = book.instance_hour_usd(current.name), book.instance_hour_usd(better.name)
    more = (
        f", for ${(there - here) * HOURS_PER_MONTH:.0f} more a month and broker"
        if here is not None and there is not None
        else ""
    )
    return f"{limit}; {better.name} sustains {better.ebs_iops} and {better.ebs_mib_per_s}{more}"


def helping_type(current: InstanceType, book: PriceBook) -> InstanceType | None:
    """Return the cheapest instance type that sustains half as much again and lacks nothing.

    Where no price is known, the smallest.
    """
    iops, mib_per_s = RAISE_FACTOR * current.ebs_iops, RAISE_FACTOR * current.ebs_mib_per_s
    # Of a thousand types most are out by their size: what takes longer is asked of the rest.
    fitting = [
        each
        for each in instances.table().types.values()
        if each.memory_mib >= current.memory_mib
        and each.vcpus >= current.vcpus
        and each.ebs_iops >= iops
        and each.ebs_mib_per_s >= mib_per_s
        and _replaces(each.name, current.name)
    ]
    priced = [
        (usd, t.name, t) for t in fitting if (usd := book.instance_hour_usd(t.name)) is not None
    ]
    if priced:
        return min(priced)[2]
    # Of types whose prices are all unknown the smallest is the likeliest to be the cheapest.
    known_prices = any(item.startswith(INSTANCE_HOUR) for item in book.prices)
    by_size = attrgetter("vcpus", "memory_mib", "name")
    return None if known_prices else min(fitting, key=by_size, default=None)


def _replaces(one: str, other: str) -> bool:
    """Say whether one type runs what is made for another, and is of no earlier generation."""
    generation, architecture = _generation_and_architecture(one)
    least, needed = _generation_and_architecture(other)
    return generation >= least and architecture == needed


@functools.cache
def _generation_and_architecture(instance_type: str) -> tuple[int, str]:
    """Return a type's generation and what its images are made for: m7g is Arm, m7i is not."""
    family = instance_type.partition(".")[0]
    attributes = family.lstrip(LETTERS)
    generation = attributes.rstrip(LETTERS)
    arm = attributes.removeprefix(generation).startswith("g")
    return int(generation or 0), "arm64" if arm else "x86_64"


def _instances(volumes: Iterable[VolumeView]) -> list[InstanceType]:
    known = instances.table().types
    names = {v.instance_type for v in volumes if v.instance_type}
    return [known[name] for name in sorted(names) if name in known]


def _greater(one: Performance, other: Performance) -> Performance:
    throughput = max(one.throughput_mib_per_s, other.throughput_mib_per_s)
    return Performance(max(one.iops, other.iops, least_iops(throughput)), throughput)


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


def bargain(set_: VolumeSet, book: PriceBook) -> Bargain | None:
    """Return the faster performance that pays best for a rotation; None where none pays.

    Without a price nobody knows whether one does.
    """
    rotation, worth = set_.rotation, set_.policy.usd_per_minute_saved
    if rotation is None or rotation.over or worth <= 0 or rotation.append_bytes_per_s <= 0:
        return None
    asked = set_.asked.performance
    backlog = rotation.append_bytes_per_s * rotation.away_seconds
    now = catch_up_seconds(asked, rotation.append_bytes_per_s, backlog)
    best: tuple[float, Bargain] | None = None
    for step in steps(set_.floor, ceiling(set_)):
        if not step.covers(asked) or step == asked or step.iops > most_iops(set_.asked.size_gib):
            continue
        then = catch_up_seconds(step, rotation.append_bytes_per_s, backlog)
        if then is None:
            continue
        usd = _price(set_, step, rotation.nodes * (rotation.away_seconds + then), book)
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


def _price(set_: VolumeSet, step: Performance, seconds: float, book: PriceBook) -> Decimal | None:
    """Return what a step costs more while it stands, over all volumes of the set."""
    asked = set_.asked
    each = change_usd(asked, type(asked)(asked.size_gib, step), book)
    if each is None:
        return None
    hours = max(LEAST_HOURS, seconds / 3600)
    return each * len(set_.volumes) * Decimal(repr(hours)) / HOURS_PER_MONTH
