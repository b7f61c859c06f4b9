"""Which month a report is about, of those that the tables hold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from pyspark.sql import Row

from core.errors import InvalidInput
from spark import tables
from spark.months import first_day_after, month_before
from spark.report.words import cents, enumeration

MONTHS_NAMED = 12


def month_to_report(asked: str | None, deliveries: Mapping[str, Row], today: date) -> str:
    """Return the month asked for; without one the last whole one, or that with most of the bill.

    A month that is over counts as whole where it holds half of what the dearest does: an export's
    last days spill into a month of their own. Where every month gave back, every one is whole.
    Raises InvalidInput for a month that is not there.
    """
    known = sorted(period for period in deliveries if period != tables.UNKNOWN_PERIOD)
    if not known:
        raise InvalidInput(["The tables hold no bill yet; name one with --bill."])
    if asked is not None:
        if asked not in known:
            raise InvalidInput([f"The tables hold no bill of {asked}, only of {', '.join(known)}."])
        return asked
    currencies = [deliveries[period].currency for period in known if deliveries[period].currency]
    known = [p for p in known if deliveries[p].currency in (None, *currencies[-1:])]
    most = max(deliveries[period].billed_cost for period in known)
    whole = [
        period
        for period in known
        if first_day_after(period) <= today
        and (deliveries[period].billed_cost * 2 >= most or most <= 0)
    ]
    if whole:
        return whole[-1]
    return max(known, key=lambda period: (deliveries[period].billed_cost, period))


def compared_months(month: str, deliveries: Mapping[str, Row]) -> list[str]:
    """Return a month and the one before it, which is left out where its currency is another."""
    before, known = deliveries.get(month_before(month)), deliveries[month].currency
    was = before.currency if before is not None else None
    return [month] if None not in (known, was) and known != was else [month_before(month), month]


def not_compared(month: str, deliveries: Mapping[str, Row]) -> list[str]:
    """Say where the month before is billed in another currency."""
    if len(compared_months(month, deliveries)) > 1:
        return []
    before = deliveries[month_before(month)]
    sentence = (
        f"{before.billing_period} is billed in {before.currency}: nothing of it is compared with "
        f"{month}, in {deliveries[month].currency}."
    )
    return [sentence]


def others(month: str, deliveries: Mapping[str, Row], currency: str) -> list[str]:
    """Name the other months that there are."""
    held = sorted(p for p in deliveries if p not in {month, tables.UNKNOWN_PERIOD})
    if not held:
        return []
    named = [
        f"{p} ({cents(deliveries[p].billed_cost, known)} {known})"
        for p in held[-MONTHS_NAMED:]
        for known in [deliveries[p].currency or currency]
    ]
    return [f"This is {month}; there is also {enumeration(named)}: name one with --month."]
