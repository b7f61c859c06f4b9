"""Reads what the tables hold of one month, as the plain values that a report is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from operator import attrgetter

from spark import tables
from spark.arrow_rows import rows_of
from spark.months import UNKNOWN_PERIOD, is_of_its_month, last_complete_day
from spark.report.evidence import DayCost
from spark.report.model import BAD_ROWS_SHOWN, Report
from spark.rows import Found, grouped, row_type, summed
from spark.rules.names import Attribution
from spark.tables import Store
from spark.transforms.node_shares import AMOUNTS

# What a report lists of nodes, over all of them and all days.
LISTED = ("cluster", "kind", "namespace", "workload_type", "workload", "currency")
Workload = row_type([*LISTED, "pods", "nodes", *AMOUNTS])


def report_of(
    store: Store,
    month: str,
    paid: Iterable[Found],
    deliveries: Mapping[str, Found],
    today: date,
) -> Report:
    """Return what a month's bill came to, and the rows that may be of any month beside it.

    `paid` are COST rows, of the month and perhaps of others.
    """
    note, monthless = deliveries[month], deliveries.get(UNKNOWN_PERIOD)
    if monthless is not None and monthless.bill != note.bill:
        monthless = None
    unread = [month, UNKNOWN_PERIOD] if note.quarantined or monthless else []
    lines = [row for row in paid if row.billing_period == month]
    return Report(
        label=f"{note.bill}, {month}",
        currency=currency_of(lines),
        today=today,
        simulated=note.simulated == "true",
        lines=lines,
        rows=note.lines,
        bad_rows=note.quarantined,
        rows_without_cost=note.lines_without_cost,
        bad=rows_of(store.table(tables.QUARANTINE, unread).slice(0, BAD_ROWS_SHOWN)),
        monthless=monthless,
    )


def currency_of(paid: Iterable[Found]) -> str:
    """Return the currency of COST rows of one month."""
    return next((row.currency for row in paid if row.currency), "USD")


def last_complete(paid: Iterable[Found], deliveries: Mapping[str, Found]) -> date | None:
    """Return the last complete day of COST rows; `deliveries` say when each month was read."""
    last = max((row.day for row in paid if is_of_its_month(row)), default=None)
    if last is None:
        return None
    note = deliveries.get(f"{last:%Y-%m}")
    return last_complete_day(last, note.ingested_at.date() if note is not None else None)


def daily_costs(paid: Iterable[Found]) -> list[DayCost]:
    """Return what each component cost on each day of COST rows."""

    def key(row: Found) -> tuple[date, str, bool]:
        return row.day, row.component, row.attribution != Attribution.NOBODY.value

    days = grouped((row for row in paid if is_of_its_month(row)), key)
    return [
        DayCost(day, component, summed(rows, "billed_cost"), is_kafkas)
        for (day, component, is_kafkas), rows in days.items()
    ]


def workload_totals(shares: Iterable[Found]) -> list[Found]:
    """Return what a report shows of some months: sums per workload, and of how many pods."""
    key = attrgetter(*LISTED)
    return [
        Workload(
            *known,
            len({row.pod for row in rows} - {None}),
            len({row.instance_id for row in rows}),
            *(summed(rows, name) for name in AMOUNTS),
        )
        for known, rows in grouped(shares, key).items()
    ]
