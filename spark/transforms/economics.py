"""Finds what a bill charges per unit, and compares EBS with local disks at these prices.

A bill's own rates come first, since they hold the discount too; a price file adds what is on no
bill. A price is an addition, never a condition. What brokers hold and take in is measured where
samples are (STORAGE, RESYNC). The comparison is one row per design (core.cost.economics).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from core.cost import economics, pricing
from core.cost.economics import Brokers, Comparison, Design
from core.cost.price_list import BilledRate, checked_item_of
from core.cost.pricing import INSTANCE_HOUR, Price, PriceBook, total
from core.events.announcements import Kind
from core.rotation.estimate import AWAY_IN_PLACE_SECONDS
from core.settings.facts import Facts
from spark.rows import Found, grouped, row_from, summed
from spark.rules.line import is_discount
from spark.rules.meters import Component
from spark.tables import ECONOMICS
from spark.transforms.volumes import AWAY_SECONDS

BILL = "the bill itself"
DISCOUNTED = "the price file, less the discount of this bill's own instances"
_USED = ("Usage", "SavingsPlanCoveredUsage", "DiscountedUsage")
_RATE_PLACES = Decimal("1e-9")
# Of less a bill's rounding would be taken for a rate.
LEAST_COST = Decimal("0.01")


def billed_rates(usage: Iterable[Found]) -> list[BilledRate]:
    """Return the rate of every usage type of a bill's USAGE rows."""
    # Marketplace sells under AWS's own usage types; such a line is of no component of ours.
    own = (row for row in usage if row.component != Component.OTHER.value)
    return _rates((row for row in own if row.category == "Usage"), "billed_cost")


def cluster_book(usage: Iterable[Found], book: PriceBook, on: date) -> PriceBook:
    """Return the prices of one cluster: what its USAGE rows charged it, and beside that the book's.

    Net and amortised, so that private discounts and commitments are in, discounts written as lines
    of their own too. A type that is not on the bill is priced with the discount that the cluster's
    own types have on it.
    """
    own = (row for row in usage if row.category in _USED or is_discount(row.category))
    charged = {
        item: Price(item, rate.usd.quantize(_RATE_PLACES), BILL, on)
        for rate in _rates(own, "net_cost")
        if rate.cost >= LEAST_COST and (item := checked_item_of(rate.usage_type)) is not None
    }
    listed = {item: _less(price, charged, book) for item, price in book.prices.items()}
    return PriceBook(book.region, f"{BILL}, and {book.name}", {**listed, **charged})


def _less(price: Price, charged: Mapping[str, Price], book: PriceBook) -> Price:
    """Return an instance's list price with the discount that the bill's own instances have."""
    if not price.item.startswith(f"{INSTANCE_HOUR}:"):
        return price
    known = [
        (item, own.usd)
        for item, own in charged.items()
        if item.startswith(f"{INSTANCE_HOUR}:") and book.usd(item)
    ]
    listed = total(book.usd(item) or Decimal(0) for item, _ in known)
    if not listed:
        return price
    share = min(Decimal(1), total(usd for _, usd in known) / listed)
    if share == 1:
        return price
    return Price(price.item, (price.usd * share).quantize(_RATE_PLACES), DISCOUNTED, price.as_of)


def _rates(rows: Iterable[Found], cost: str) -> list[BilledRate]:
    known = grouped((row for row in rows if row.usage_type is not None), lambda r: r.usage_type)
    rates = (
        BilledRate(usage_type, summed(own, "quantity"), summed(own, cost))
        for usage_type, own in known.items()
    )
    return [rate for rate in rates if rate.quantity > 0]


DAYS_PER_MONTH = Decimal(pricing.HOURS_PER_MONTH) / 24
# From so many days on rotations are counted up to a month.
FEWEST_DAYS = 7
# What somebody asked for: the machine was well, and could have been kept.
PLANNED = frozenset({Kind.ROTATION.value})
_PLACES = Decimal("1e-6")


@dataclass(frozen=True, slots=True)
class Window:
    """The days that rotations were counted on."""

    first: date
    last: date

    @property
    def months(self) -> float:
        """Return how many months these days are; a few days say nothing of a month's rhythm."""
        days = (self.last - self.first).days + 1
        return days / float(DAYS_PER_MONTH) if days >= FEWEST_DAYS else 1.0


def economics_rows(
    volumes: Sequence[Found],
    rotations: Sequence[Found],
    facts: Facts,
    book: PriceBook,
    window: Window,
) -> list[Found]:
    """Return the ECONOMICS table of one cluster, from STORAGE and RESYNC; empty of nothing."""
    brokers = measured_brokers(volumes, rotations, facts, window)
    if brokers is None:
        return []
    made = economics.compare(brokers, book)
    return [_row(design, made, facts, book, window) for design in made.designs]


def measured_brokers(
    volumes: Sequence[Found], rotations: Sequence[Found], facts: Facts, window: Window
) -> Brokers | None:
    """Return the brokers as measured, or None where neither fill nor flow is known of any."""
    pool = next(iter(facts.brokers), None)
    if pool is None or not pool.volumes:
        return None
    by_node: Counter[tuple[str, int]] = Counter()
    for row in volumes:
        found = facts.pool_of(row.owner)
        if row.used_bytes is not None and found is not None and found.is_broker:
            by_node[row.owner, row.node_id] += row.used_bytes
    held = [float(used) for used in by_node.values()] or [
        float(row.held_bytes) for row in rotations if row.held_bytes is not None
    ]
    appends = [row.append_bytes_per_s for row in rotations if row.append_bytes_per_s is not None]
    if not held:
        return None
    downs = [row.down_seconds for row in rotations if row.down_seconds is not None]
    rates = [
        row.moved_bytes / row.catch_up_seconds
        for row in rotations
        if row.moved_bytes and row.catch_up_seconds
    ]
    append = statistics.fmean(appends) if appends else max(held) / facts.retention_seconds
    return Brokers(
        number=pool.nodes,
        zones=facts.zones,
        instance_type=pool.instance_type,
        volume_gib=sum(volume.size_gib for volume in pool.volumes),
        iops=sum(volume.iops for volume in pool.volumes),
        throughput_mib_per_s=sum(volume.throughput_mib_per_s for volume in pool.volumes),
        append_bytes_per_s=append,
        held_bytes=max(held),
        outage_seconds=statistics.median(downs) if downs else AWAY_SECONDS,
        rotations_per_month=len(rotations) / window.months,
        in_place_seconds=AWAY_IN_PLACE_SECONDS,
        planned_per_month=sum(row.kind in PLANNED for row in rotations) / window.months,
        # A short catch-up shows how little was missed, not how fast a copy could be.
        seen_bytes_per_s=max(rates) if rates and max(rates) > append * 2 else None,
    )


def _row(
    design: Design, comparison: Comparison, facts: Facts, book: PriceBook, window: Window
) -> Found:
    ends = not math.isinf(design.rotation_seconds)
    rotations = comparison.rotations
    fill, often = comparison.break_even_fill, comparison.break_even_rotations
    if design.name == economics.IN_PLACE:
        fill = economics.break_even_fill(comparison.ebs, design, book)
        often = economics.break_even_rotations(comparison.ebs, design)
    return row_from(
        ECONOMICS.schema,
        design,
        billing_period=f"{window.last:%Y-%m}",
        cluster=facts.cluster,
        design=design.name,
        instances_cost=design.instances_usd.quantize(_PLACES),
        storage_cost=design.storage_usd.quantize(_PLACES),
        rotation_cost=design.rotation_usd.quantize(_PLACES),
        rotation_seconds=design.rotation_seconds if ends else None,
        rotations_per_month=float(rotations),
        monthly_cost=design.monthly_usd(rotations).quantize(_PLACES),
        risk_hours=design.risk_hours(rotations) if ends else None,
        break_even_fill=fill,
        break_even_rotations=often,
        chosen=design is comparison.cheaper,
        region=book.region,
        prices_as_of=_oldest(book, design.instance_type),
    )


def _oldest(book: PriceBook, instance_type: str) -> date:
    items = ("gp3_gib_month", "inter_zone_gib", f"{pricing.INSTANCE_HOUR}:{instance_type}")
    return min(book.price(item).as_of for item in items)
