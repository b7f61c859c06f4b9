"""Finds what a bill charges per unit: by usage type, and as a cluster's own price book.

A bill's own rates come first, since they hold the discount too; a price file adds what is on no
bill. A price is an addition, never a condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal

from core.cost.price_list import BilledRate, checked_item_of
from core.cost.pricing import INSTANCE_HOUR, Price, PriceBook, total
from spark.rows import Found, grouped, summed
from spark.rules.line import is_discount
from spark.rules.names import Component

BILL = "the bill itself"
DISCOUNTED = "the price file, less the discount of this bill's own instances"
_USED = ("Usage", "SavingsPlanCoveredUsage", "DiscountedUsage")
_PLACES = Decimal("1e-9")
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
        item: Price(item, rate.usd.quantize(_PLACES), BILL, on)
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
    return Price(price.item, (price.usd * share).quantize(_PLACES), DISCOUNTED, price.as_of)


def _rates(rows: Iterable[Found], cost: str) -> list[BilledRate]:
    known = grouped((row for row in rows if row.usage_type is not None), lambda r: r.usage_type)
    rates = (
        BilledRate(usage_type, summed(own, "quantity"), summed(own, cost))
        for usage_type, own in known.items()
    )
    return [rate for rate in rates if rate.quantity > 0]
