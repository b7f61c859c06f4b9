"""Decides whether volumes that are too large are worth replacing, and when that has paid.

EBS never shrinks a volume. What does is a new node pool with smaller ones, onto which Cruise
Control moves the replicas: every byte crosses from zone to zone, and until the last one has, both
pools are paid for. So it is advice, with its price and the months until that is saved again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from core.cost import economics
from core.cost.pricing import HOURS_PER_MONTH, PriceBook, fetch_command
from core.volumes.forecast import FillForecast
from core.volumes.limits import IOPS_PER_GIB, Gp3
from core.volumes.policy import goals_of
from core.volumes.sizing import GP3_ITEMS, MIB, Use, cents, monthly_usd, wanted_size
from core.volumes.views import VolumeSet

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


def smaller(of: VolumeSet, book: PriceBook) -> str | None:
    """Return the advice to replace a set's volumes by smaller ones; None where it does not pay."""
    if of.policy.votes:
        # The quorum is static (Strimzi 1.2): no pool of voters is ever added or replaced.
        return None
    held = [v.forecast for v in of.volumes if v.forecast is not None]
    if len(held) < len(of.volumes) or any(f.span_seconds < LEAST_SPAN_SECONDS for f in held):
        return None
    most = max(f.used_in(of.policy.headroom_days * 24 * 3600) for f in held)
    holding = wanted_size(Use(used_bytes=int(most)), goals_of(of.policy))
    size = max(holding, math.ceil(of.asked.iops / IOPS_PER_GIB))
    if size > WORTH_SHRINKING * of.asked.size_gib:
        return None
    if not _is_priced(book):
        return (
            f"{_would_hold(of, size)}: a new pool with smaller volumes would, and whether moving "
            f"the data pays is not known without a price (`{fetch_command(book.region)}`)"
        )
    return _saving_sentence(of, held, size, book)


def _saving_sentence(
    of: VolumeSet, held: Sequence[FillForecast], size: int, book: PriceBook
) -> str | None:
    types = {v.instance_type for v in of.volumes}
    each = [
        payback(of.asked, of.asked.of_size(size), f.used_bytes, next(iter(types)), book)
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
        f"{_would_hold(of, size)}: a new pool with smaller volumes "
        f"saves ${cents(Decimal(monthly))} a month and costs ${cents(Decimal(once))} once, copying "
        f"between zones and {max(one.hours for one in found):.0f} h of both pools, so it pays "
        f"after {months:.1f} months"
    )


def _is_priced(book: PriceBook) -> bool:
    return all(book.find(item) is not None for item in (*GP3_ITEMS, "inter_zone_gib"))


def _would_hold(of: VolumeSet, size: int) -> str:
    return (
        f"{size} GiB would hold the fullest of them for {of.policy.headroom_days:g} days, and EBS "
        f"shrinks none of the {of.asked.size_gib} GiB they have"
    )
