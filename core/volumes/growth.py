"""Decides whether a set of volumes must grow, and how far, or is worth replacing by smaller ones.

Growth is by forecast, in steps worth a slot. EBS never shrinks a volume: what does is a new node
pool with smaller ones, onto which Cruise Control moves the replicas. Every byte crosses from zone
to zone, and until the last one has, both pools are paid for; so it is advice, with its price and
the months until that is saved again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from core.cost import economics
from core.cost.pricing import HOURS_PER_MONTH, PriceBook, fetch_command
from core.volumes.sizing import (
    GIB,
    GP3_ITEMS,
    IOPS_PER_GIB,
    MIB,
    Gp3,
    Policy,
    Use,
    cents,
    goals_of,
    monthly_usd,
    wanted_size,
)
from core.volumes.views import FillForecast, VolumeSet, VolumeView

DAY_SECONDS = 24 * 3600.0
# A modification may take hours before the next may start: what is full sooner cannot wait.
EMERGENCY_SECONDS = 6 * 3600.0
# A growth shorter than this share would need the next slot too soon.
LEAST_GROWTH_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Growth:
    """The size a set should have, whether it is short of it by hours, and why."""

    size_gib: int
    emergency: bool
    reason: str
    # It should be larger than the policy's or EBS's largest.
    capped: bool


def growth(set_: VolumeSet) -> Growth | None:
    """Return what the fullest volume of a set asks for; None where all have room enough."""
    found = [each for volume in set_.volumes if (each := _volume_growth(set_, volume)) is not None]
    if set_.asked.size_gib < set_.spec.size_gib:
        found.append(
            Growth(
                set_.spec.size_gib,
                emergency=False,
                reason=f"the ClusterSpec asks for {set_.spec.size_gib} GiB",
                capped=False,
            )
        )
    return max(found, key=lambda each: (each.emergency, each.size_gib), default=None)


def _volume_growth(set_: VolumeSet, volume: VolumeView) -> Growth | None:
    if volume.forecast is None:
        return None
    return room(volume.claim, volume.forecast, set_.asked.size_gib, set_.policy)


def room(name: str, forecast: FillForecast, size_gib: int, policy: Policy) -> Growth | None:
    """Return how far one volume must grow; None where what is ahead fits.

    The advisor asks for one it may change, the storage report for one on a bill.
    """
    size_bytes = size_gib * GIB
    level = size_bytes * (1 - policy.free_share)
    until_level = forecast.seconds_until(level)
    if until_level is None or until_level > policy.act_days * DAY_SECONDS:
        return None
    until_full = forecast.seconds_until(size_bytes)
    emergency = until_full is not None and until_full <= EMERGENCY_SECONDS
    emergency = emergency or forecast.used_bytes > size_bytes * (1 - policy.free_share / 2)
    size = min(_target(forecast, size_gib, policy), policy.largest_gib)
    return Growth(
        size,
        emergency=emergency,
        reason=_why(name, forecast, until_level, until_full, policy.free_share),
        capped=size <= size_gib,
    )


def _target(forecast: FillForecast, size_gib: int, policy: Policy) -> int:
    # What the trend with its spread holds then, given as a growth, so that one rule sizes it.
    ahead = forecast.used_in(policy.headroom_days * DAY_SECONDS) - forecast.used_bytes
    use = Use(
        used_bytes=int(forecast.used_bytes), growth_bytes_per_day=ahead / policy.headroom_days
    )
    least = size_gib * (1 + LEAST_GROWTH_SHARE)
    stepped = math.ceil(least / policy.step_gib) * policy.step_gib
    return max(wanted_size(use, goals_of(policy)), stepped)


def _why(
    name: str,
    forecast: FillForecast,
    until_level: float,
    until_full: float | None,
    free_share: float,
) -> str:
    if until_level == 0:
        said = f"{name} has less than {free_share:.0%} free"
    else:
        said = f"{name} has less than {free_share:.0%} free in {_span(until_level)}"
    if until_full is not None:
        said += f" and is full {'now' if until_full == 0 else 'in ' + _span(until_full)}"
    rate = max(forecast.long_rate, 0.0) * DAY_SECONDS / GIB
    return f"{said} ({forecast.used_bytes / GIB:.1f} GiB used, {rate:+.1f} GiB a day)"


def _span(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"


# Not for the odd gigabyte.
WORTH_SHRINKING = 0.8
# What does not pay within so long is not worth moving a broker's whole data for.
MOST_MONTHS = 24
# Moving replicas is throttled to this share of the volume's throughput: clients come first.
MOVING_SHARE = 0.5
# A volume that was looked at for less may be emptier than it usually is.
LEAST_SPAN_SECONDS = 13 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Payback:
    """Volumes replaced by smaller ones: what that costs once, saves a month, and when it pays."""

    once_usd: Decimal
    monthly_usd: Decimal
    # In which both pools run.
    hours: float

    @property
    def months(self) -> float:
        return float(self.once_usd / self.monthly_usd)


def payback(
    now: Gp3, to: Gp3, used_bytes: float, instance_type: str | None, book: PriceBook
) -> Payback | None:
    """Return what it takes to replace one volume; None where nothing is saved by it.

    None as well where a price is unknown: nobody can say whether it pays.
    """
    if not _is_priced(book):
        return None
    saved = monthly_usd(now, book) - monthly_usd(to, book)
    if saved <= 0:
        return None
    rate = min(now.throughput_mib_per_s, to.throughput_mib_per_s) * MIB * MOVING_SHARE
    hours = used_bytes / rate / 3600
    # An instance that is on no price list is left out of the price.
    instance_usd = book.instance_hour_usd(instance_type) or Decimal(0)
    both = monthly_usd(to, book) / HOURS_PER_MONTH + instance_usd
    once = economics.crossing_usd(used_bytes, book) + both * Decimal(repr(hours))
    return Payback(once, saved, hours)


def more_brokers(set_: VolumeSet, book: PriceBook) -> str:
    """Say what it takes to share a zone's data with more brokers: bytes, hours, dollars a month.

    As many as leave the policy's share free; without a forecast of each volume, one.
    """
    held = [volume.forecast.used_bytes for volume in set_.volumes if volume.forecast is not None]
    number, size_bytes = len(set_.volumes), set_.asked.size_gib * GIB
    needed = math.ceil(sum(held) / (size_bytes * (1 - set_.policy.free_share)))
    more = max(1, needed - number)
    said = f"raise nodes_per_zone by {more} and run `stillwater grow`"
    if len(held) < number:
        return said
    moved_bytes = sum(held) * more / (number + more)
    hours = moved_bytes / (set_.asked.throughput_mib_per_s * MIB * MOVING_SHARE * more) / 3600
    said += f": {moved_bytes / GIB:,.0f} GiB move in each zone, in {hours:.1f} h"
    hour = book.instance_hour_usd(next(iter({v.instance_type for v in set_.volumes})))
    if hour is None or not _is_priced(book):
        return said
    usd = more * (hour * HOURS_PER_MONTH + monthly_usd(set_.asked, book))
    return f"{said}, for ${cents(usd)} a month in each zone"


def smaller(set_: VolumeSet, book: PriceBook) -> str | None:
    """Return the advice to replace a set's volumes by smaller ones; None where it does not pay."""
    if set_.policy.votes:
        # The quorum is static (Strimzi 1.2): no pool of voters is ever added or replaced.
        return None
    held = [v.forecast for v in set_.volumes if v.forecast is not None]
    if len(held) < len(set_.volumes) or any(f.span_seconds < LEAST_SPAN_SECONDS for f in held):
        return None
    most = max(f.used_in(set_.policy.headroom_days * 24 * 3600) for f in held)
    holding = wanted_size(Use(used_bytes=int(most)), goals_of(set_.policy))
    size = max(holding, math.ceil(set_.asked.iops / IOPS_PER_GIB))
    if size > WORTH_SHRINKING * set_.asked.size_gib:
        return None
    if not _is_priced(book):
        return (
            f"{_would_hold(set_, size)}: a new pool with smaller volumes would, and whether moving "
            f"the data pays is not known without a price (`{fetch_command(book.region)}`)"
        )
    return _saving_sentence(set_, held, size, book)


def _saving_sentence(
    set_: VolumeSet, held: Sequence[FillForecast], size: int, book: PriceBook
) -> str | None:
    types = {v.instance_type for v in set_.volumes}
    each = [
        payback(set_.asked, set_.asked.resized(size), f.used_bytes, next(iter(types)), book)
        for f in held
    ]
    found = [one for one in each if one is not None]
    if len(found) < len(each):
        return None
    once, monthly = sum(one.once_usd for one in found), sum(one.monthly_usd for one in found)
    months = float(once / monthly)
    if months > MOST_MONTHS:
        return None
    return (
        f"{_would_hold(set_, size)}: a new pool with smaller volumes saves "
        f"${cents(Decimal(monthly))} a month. It costs ${cents(Decimal(once))} once, for copying "
        f"between zones and {max(one.hours for one in found):.0f} h of both pools, and pays after "
        f"{months:.1f} months"
    )


def _is_priced(book: PriceBook) -> bool:
    return all(book.find(item) is not None for item in (*GP3_ITEMS, "inter_zone_gib"))


def _would_hold(set_: VolumeSet, size: int) -> str:
    return (
        f"{size} GiB would hold the fullest of them for {set_.policy.headroom_days:g} days, and "
        f"EBS shrinks none of the {set_.asked.size_gib} GiB they have"
    )
