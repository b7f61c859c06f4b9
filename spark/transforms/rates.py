"""Finds what a bill charges per unit: by usage type, and as a cluster's own price book.

A bill's own rates come first, since they hold the discount too; a price file adds what is on no
bill. A price is an addition, never a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.cost.price_list import BilledRate, checked_item_of
from core.cost.pricing import INSTANCE_HOUR, Price, PriceBook, total
from spark.schemas import MONEY
from spark.transforms.classify import Component
from spark.transforms.daily import is_discount

BILL = "the bill itself"
DISCOUNTED = "the price file, less the discount of this bill's own instances"
_USED = ("Usage", "SavingsPlanCoveredUsage", "DiscountedUsage")
_PLACES = Decimal("1e-9")
# Of less a bill's rounding would be taken for a rate.
LEAST_COST = Decimal("0.01")


def billed_rates(usage: DataFrame) -> list[BilledRate]:
    """Return the rate of every usage type of a bill; the table is small once it is summed."""
    # Marketplace sells under AWS's own usage types; such a line is of no component of ours.
    is_ours = F.col("component") != Component.OTHER.value
    return _rates(usage.where((F.col("category") == "Usage") & is_ours), F.sum("billed_cost"))


def of_cluster(usage: DataFrame, cluster: str, book: PriceBook, on: date) -> PriceBook:
    """Return the prices of one cluster: what its bill charged it, and beside that the book's.

    Net and amortised, so that private discounts and commitments are in, discounts written as lines
    of their own too. A type that is not on the bill is priced with the discount that the cluster's
    own types have on it.
    """
    is_counted = F.col("category").isin(*_USED) | is_discount()
    own = usage.where((F.col("cluster") == cluster) & is_counted)
    charged = {
        item: Price(item, rate.usd.quantize(_PLACES), BILL, on)
        for rate in _rates(own, F.sum("net_cost").cast(MONEY))
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
    return Price(price.item, (price.usd * share).quantize(_PLACES), DISCOUNTED, price.as_of)


def _rates(plain: DataFrame, cost: Column) -> list[BilledRate]:
    rows = (
        plain.where(F.col("usage_type").isNotNull())
        .groupBy("usage_type")
        .agg(F.sum("quantity").alias("quantity"), cost.alias("cost"))
        .where("quantity > 0")
        .collect()
    )
    return [BilledRate(row.usage_type, row.quantity, row.cost) for row in rows]
