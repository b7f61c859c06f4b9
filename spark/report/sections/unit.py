"""Makes the section of unit costs and their forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

from core.cost.economics import Backtest, backtest, forecast
from core.cost.pricing import total
from spark.report import document, plot
from spark.report.document import Cell, Plot, Section
from spark.report.evidence import Evidence
from spark.report.words import count, dollars
from spark.rows import Found

# The columns of UNIT that the table has, and of one that is no sum of days its weight.
UNITS = {
    "cost_per_produced_gib": "produced_gib",
    "cost_per_retained_gib_month": None,
    "cost_per_partition_month": None,
    "cost_per_broker_month": None,
}
DAYS_AHEAD = 30


def section(evidence: Evidence) -> Section | None:
    """Return the unit costs of each cluster, or None of a bill without one or without days."""
    if evidence.is_by_the_month:
        return None
    by_day = sorted(evidence.unit, key=lambda row: row.day)
    clusters = sorted({row.cluster for row in by_day})
    told = [(name, [row for row in by_day if row.cluster == name]) for name in clusters]
    if not told:
        return None
    currency = evidence.report.currency
    plots = [made for _, rows in told[:3] if (made := _plot(rows, currency))]
    said = [each for name, rows in told for each in _sentences(name, rows, currency)]
    cells = partial(_cells, currency=currency)
    table = document.table("unit", currency, told, cells, key=lambda each: f"unit-{each[0]}")
    return document.told("unit", said, [table], plots)


def _sentences(name: str, rows: list[Found], currency: str) -> list[str]:
    said = []
    per_gib = average(rows, "cost_per_produced_gib", "produced_gib")
    if per_gib is not None:
        said.append(f"{name}: 1 GiB produced costs {dollars(per_gib, currency)} {currency}.")
    ahead = month_ahead(rows)
    if ahead is not None:
        said += _ahead(ahead, currency)
    elif not any(row.complete for row in rows):
        said.append(f"{name}: this bill has no complete day, so the report has no forecast.")
    return said


def _ahead(ahead: MonthAhead, currency: str) -> list[str]:
    expected, low, high = (
        dollars(Decimal(repr(round(value, 6))), currency)
        for value in (ahead.expected, ahead.low, ahead.high)
    )
    said = [
        (
            f"{ahead.cluster}: the forecast for the {DAYS_AHEAD} days after {ahead.last_day} is "
            f"{expected} {currency}."
        ),
        f"The 80% interval is {low} to {high} {currency}.",
    ]
    if ahead.past is not None:
        said.append(
            f"On {count(ahead.past.forecasts, 'known day')} the forecast was off by "
            f"{ahead.past.mape:.1%} on average; the interval held on {ahead.past.coverage:.0%}."
        )
    return said


def average(rows: Sequence[Found], column: str, weight: str) -> Decimal | None:
    """Return a unit cost over all days that have it, weighted by their units."""
    known = [row for row in rows if getattr(row, column) is not None and getattr(row, weight)]
    units = sum(getattr(row, weight) for row in known)
    if not units:
        return None
    return Decimal(repr(sum(getattr(row, column) * getattr(row, weight) for row in known) / units))


def _cells(told: tuple[str, list[Found]], currency: str) -> tuple[Cell, ...]:
    name, every = told
    complete = [row for row in every if row.complete]
    means = [_mean(complete, column, weight) for column, weight in UNITS.items()]
    paid = total(row.cost for row in complete)
    amounts = (document.paid(amount, currency) for amount in (*means, paid))
    return (Cell(name, note=_days(complete)), *amounts)


def _days(rows: Sequence[Found]) -> str:
    """Return which days a figure is of: those of the month before are among them."""
    ends = f", {rows[0].day} to {rows[-1].day}" if rows else ""
    return f"{count(len(rows), 'complete day')}{ends}"


def _mean(rows: list[Found], column: str, weight: str | None) -> Decimal | None:
    if weight is not None:
        return average(rows, column, weight)
    known = [getattr(row, column) for row in rows if getattr(row, column) is not None]
    return Decimal(repr(sum(known) / len(known))) if known else None


def _plot(rows: list[Found], currency: str) -> Plot | None:
    points = points_of(rows, "cost")
    if len(points) < 3:
        return None
    known = [(date.fromordinal(int(x)), y) for x, y in points]
    ahead = []
    for step in range(1, DAYS_AHEAD + 1, 3):
        told = forecast(points, points[-1][0] + step)
        if told is not None:
            ahead.append(
                (known[-1][0] + timedelta(days=step), told.expected, max(0.0, told.low), told.high)
            )
    name = rows[0].cluster
    unit = f"Cost, {currency} a day"
    svg = plot.band(f"Cost per day of {_plain(name)}", known, ahead, unit)
    legend = (("Cost", "--c1"), ("forecast with 80% interval", "--c2"))
    return Plot(svg, legend, f"{name}, complete days")


def _plain(name: str) -> str:
    """Return a name with nothing in it that means something in a page."""
    return "".join(letter for letter in name if letter.isalnum() or letter in "-_. ")


@dataclass(frozen=True, slots=True)
class MonthAhead:
    """What a cluster should cost in the thirty days after the last complete one."""

    cluster: str
    last_day: date
    expected: float
    low: float
    high: float
    past: Backtest | None


def month_ahead(rows: Sequence[Found]) -> MonthAhead | None:
    """Return one cluster's forecast from its complete days, or None of too few.

    Days scatter on their own, so the interval of a sum of days is that of the mean day: the line's,
    at the middle of the days ahead, times their number.
    """
    points = points_of(rows, "cost")
    if not points:
        return None
    last = max(x for x, _ in points)
    told = forecast(points, last + DAYS_AHEAD / 2)
    if told is None:
        return None
    return MonthAhead(
        cluster=rows[0].cluster,
        last_day=date.fromordinal(round(last)),
        expected=told.expected * DAYS_AHEAD,
        low=max(0.0, told.low * DAYS_AHEAD),
        high=told.high * DAYS_AHEAD,
        past=backtest(points),
    )


def points_of(rows: Sequence[Found], column: str) -> list[tuple[float, float]]:
    """Return a column of the complete days, by day number."""
    return [
        (float(row.day.toordinal()), float(getattr(row, column)))
        for row in rows
        if row.complete and getattr(row, column) is not None
    ]
