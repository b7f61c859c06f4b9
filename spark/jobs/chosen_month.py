"""Chooses which month a report is about, of those that the tables hold, and names the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from core.ground.errors import InvalidInput
from spark import tables
from spark.jobs import restated
from spark.months import first_day_after, month_before
from spark.report.words import cents, enumeration
from spark.rows import Found
from spark.tables import Store

MONTHS_NAMED = 12


@dataclass(frozen=True, slots=True)
class Chosen:
    """The month to report on, and what was noted of it and of the others as they were read."""

    month: str
    today: date
    deliveries: Mapping[str, Found]

    @classmethod
    def of(cls, store: Store, asked: str | None, today: date | None) -> Chosen:
        """Return the month asked for, or the best one of those that the tables hold."""
        deliveries = {row.billing_period: row for row in store.rows(tables.DELIVERIES)}
        today = today or datetime.now(UTC).date()
        return cls(month_to_report(asked, deliveries, today), today, deliveries)

    @property
    def note(self) -> Found:
        return self.deliveries[self.month]

    @property
    def compared(self) -> list[str]:
        return compared_months(self.month, self.deliveries)

    def notes(self, currency: str) -> list[str]:
        """Say what other months there are, what bills could not say, and what AWS restated."""
        return [
            *others(self.month, self.deliveries, currency),
            *(self.note.notes or "").splitlines(),
            *not_compared(self.month, self.deliveries),
            *restated.notes(self.month, self.deliveries, currency, self.today),
        ]


def month_to_report(asked: str | None, deliveries: Mapping[str, Found], today: date) -> str:
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


def compared_months(month: str, deliveries: Mapping[str, Found]) -> list[str]:
    """Return a month and the one before it, which is left out where its currency is another."""
    before, known = deliveries.get(month_before(month)), deliveries[month].currency
    was = before.currency if before is not None else None
    return [month] if None not in (known, was) and known != was else [month_before(month), month]


def not_compared(month: str, deliveries: Mapping[str, Found]) -> list[str]:
    """Say where the month before is billed in another currency."""
    if len(compared_months(month, deliveries)) > 1:
        return []
    before = deliveries[month_before(month)]
    sentence = (
        f"{before.billing_period} is billed in {before.currency}: nothing of it is compared with "
        f"{month}, in {deliveries[month].currency}."
    )
    return [sentence]


def others(month: str, deliveries: Mapping[str, Found], currency: str) -> list[str]:
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
