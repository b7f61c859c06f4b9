"""Checks the price book against AWS: its rows' age, and what a bill says instead.

A bill's own rate is its money over its quantity, of plain usage alone: what a commitment or a
credit covers is priced elsewhere on it. A difference is a price that moved, or a private one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from core.cost.pricing import INSTANCE_HOUR, Price, PriceBook

# Quantities are rounded on a bill: a rate of few units is not to be taken at its last digit.
TOLERANCE = Decimal("0.005")
# AWS changes prices now and then; after so long somebody should look.
OLD_DAYS = 180
# Usage types without their region's prefix -> the row of the book.
_ITEMS = (
    (r"BoxUsage:(?P<type>[\w.-]+)", INSTANCE_HOUR),
    (r"EBS:VolumeUsage\.gp3", "gp3_gib_month"),
    (r"EBS:VolumeP-IOPS\.gp3", "gp3_iops_month"),
    (r"EBS:VolumeP-Throughput\.gp3", "gp3_gibps_month"),
    (r"EBS:VolumeUsage\.gp2", "gp2_gib_month"),
    (r"EBS:SnapshotUsage", "snapshot_gib_month"),
    (r"DataTransfer-Regional-Bytes", "inter_zone_gib"),
    (r"AmazonEKS-Hours:perCluster", "eks_cluster_hour"),
    (r"AmazonEKS-Hours:extendedSupport", "eks_extended_support_hour"),
    (r"NatGateway-Hours", "nat_hour"),
    (r"VpcEndpoint-Hours", "interface_endpoint_hour"),
    (r"PublicIPv4:InUseAddress", "public_ipv4_hour"),
)


@dataclass(frozen=True, slots=True)
class BilledRate:
    """What a bill charges for one usage type, the region's prefix left out."""

    usage_type: str
    quantity: Decimal
    cost: Decimal

    @property
    def usd(self) -> Decimal:
        return self.cost / self.quantity


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row of the book and what the bill says in its place; `price` None: the book lacks it."""

    item: str
    price: Price | None
    billed: BilledRate

    @property
    def sentence(self) -> str:
        """Say what to do about it."""
        said = self.billed.usd.normalize()
        where = f"over {self.billed.quantity.normalize():f} units of {self.billed.usage_type}"
        if self.price is None:
            return f"{self.item} has no price; the bill charges {said:.6f} USD {where}."
        change = (self.billed.usd - self.price.usd) / self.price.usd if self.price.usd else 1
        return (
            f"{self.item} is {self.price.usd} USD (read on {self.price.as_of}); the bill charges "
            f"{said:.6f} {where}, {change:+.1%}."
        )


def item_of(usage_type: str) -> str | None:
    """Return the book's row for a usage type, or None for what the book does not price."""
    for pattern, item in _ITEMS:
        found = re.fullmatch(pattern, usage_type)
        if found:
            return f"{item}:{found['type']}" if item == INSTANCE_HOUR else item
    return None


def disagreements(book: PriceBook, rates: Iterable[BilledRate]) -> list[Disagreement]:
    """Return every row that a bill contradicts or the book lacks, those of most money first."""
    found = list(_disagreeing(book, rates))
    return sorted(found, key=lambda each: (-each.billed.cost, each.item))


def _disagreeing(book: PriceBook, rates: Iterable[BilledRate]) -> Iterator[Disagreement]:
    for rate in rates:
        item = item_of(rate.usage_type)
        if item is None or rate.quantity <= 0 or rate.cost <= 0:
            continue
        price = book.prices.get(item)
        if price is None or abs(rate.usd - price.usd) > TOLERANCE * price.usd:
            yield Disagreement(item, price, rate)


def outdated_prices(book: PriceBook, today: date, days: int = OLD_DAYS) -> list[Price]:
    """Return the prices read longer ago than so many days, the oldest first."""
    aged = [price for price in book.prices.values() if (today - price.as_of).days > days]
    return sorted(aged, key=lambda price: (price.as_of, price.item))
