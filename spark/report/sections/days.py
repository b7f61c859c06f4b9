"""Makes the sections of days: the unusual, changes to last month, unit costs and their forecast."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

from core.cost.economics import Backtest, backtest, forecast
from core.cost.pricing import total
from spark.months import FEWEST_BEFORE
from spark.report import document, plot
from spark.report.document import (
    Cell,
    Plot,
    ReportTable,
    Section,
    cents,
    change,
    count,
    decimal_places,
    dollars,
    money,
    sentence_start,
    smallest_places,
)
from spark.report.evidence import Comparison, Evidence, month_comparison
from spark.rows import Found

# The dearest components have a colour of their own; the others share one.
COLOURED = ("--c1", "--c2", "--c3", "--c4", "--c5")


def changes_section(evidence: Evidence) -> Section | None:
    """Return the changes, or None of a bill of a day or two."""
    comparison = month_comparison(evidence)
    own = {each.day for each in evidence.days if f"{each.day:%Y-%m}" == evidence.month}
    if comparison is None and len(own) < 3:
        return None
    tables = [_months_table(comparison, evidence)] if comparison else []
    if evidence.anomalies:
        tables.append(_anomalies(evidence))
    return document.told(
        "changes", _changes_sentences(comparison, evidence), tables, [_days_plot(evidence)]
    )


def _changes_sentences(comparison: Comparison | None, evidence: Evidence) -> list[str]:
    said = []
    if comparison is not None:
        places = decimal_places(comparison.totals[1], evidence.report.currency)
        said += _totals_sentences(comparison, evidence.report.currency)
        said += [
            f"{sentence_start(name)} {'rose' if now > was else 'fell'} most, from "
            f"{money(was, places)} to {money(now, places)} {evidence.report.currency}."
            for name, was, now in moves(comparison)[:1]
            if now != was
        ]
    return [*said, _odd_days(evidence)]


def _totals_sentences(comparison: Comparison, currency: str) -> list[str]:
    before, after = comparison.totals
    places = decimal_places(after, currency)
    now, was = money(after, places), money(before, places)
    if comparison.days == comparison.days_before:
        return [
            f"The first {count(comparison.days, 'day')} of the month cost {now} {currency}.",
            f"The same days of last month cost {was} {currency}.",
        ]
    a_day = change(after / comparison.days, before / comparison.days_before)
    return [
        f"The {count(comparison.days, 'day')} of the month cost {now} {currency}.",
        f"The {count(comparison.days_before, 'day')} of last month cost {was} {currency}.",
        f"The cost per day changed by {a_day}.",
    ]


def against(comparison: Comparison, currency: str) -> str:
    """Return the change to last month, as money and in percent."""
    before, after = comparison.totals
    days, was = comparison.days, comparison.days_before
    how = f"same {count(days, 'day')}" if days == was else f"{count(days, 'day')} against {was}"
    sign = "+" if after >= before else ""
    amount = f"{sign}{cents(after - before, currency)} {currency}"
    return f"{amount} ({change(after, before)}) to last month, {how}"


def _odd_days(evidence: Evidence) -> str:
    """Return how many days are unusual, or why no day can be."""
    stand_out = len(evidence.anomalies)
    if stand_out:
        return f"{count(stand_out, 'day is', 'days are')} unusual."
    if not evidence.report.has_kafka:
        return "The report looks for unusual days in Kafka's charges only."
    if len({each.day for each in evidence.days}) <= FEWEST_BEFORE:
        return f"An unusual day needs more than {FEWEST_BEFORE} days to compare with."
    return "No day is unusual."


def moves(comparison: Comparison) -> list[tuple[str, Decimal, Decimal]]:
    """Return what each component cost before and now, the one that moved furthest first."""
    before, after, nothing = comparison.before, comparison.after, Decimal(0)
    names = {**before, **after}
    both = [(name, before.get(name, nothing), after.get(name, nothing)) for name in names]
    return sorted(both, key=lambda each: (-abs(each[2] - each[1]), each[0]))


def _months_table(comparison: Comparison, evidence: Evidence) -> ReportTable:
    currency = evidence.report.currency
    places = decimal_places(comparison.totals[1], currency)
    days, was = comparison.days, comparison.days_before
    title = f"First {count(days, 'day')} of both months"
    if days != was:
        title = f"{count(days, 'day')} of this month and {was} of last month"

    def moved(row: tuple[str, Decimal, Decimal]) -> tuple[Cell, ...]:
        name, was, is_now = row
        return (
            Cell(name),
            *(document.billed(amount, places) for amount in (was, is_now, is_now - was)),
            Cell(change(is_now, was), document.exact(is_now - was)),
        )

    foot = moved(("Total", *comparison.totals))
    table = document.table("changes", currency, moves(comparison), moved, foot=foot)
    return replace(table, title=title)


def _anomalies(evidence: Evidence) -> ReportTable:
    currency = evidence.report.currency
    places = smallest_places(currency)
    ordered = sorted(evidence.anomalies, key=lambda row: -abs(row.excess))

    def cells(row: Found) -> tuple[Cell, ...]:
        return (
            Cell(f"{row.day}", f"{row.day}"),
            Cell(row.component, note=row.cluster or "no cluster"),
            *(document.billed(amount, places) for amount in (row.cost, row.usual, row.excess)),
            Cell(row.reason),
        )

    def key(row: Found) -> str:
        return f"anomaly-{row.day}-{ordered.index(row)}"

    return document.table("anomalies", currency, ordered, cells, key=key)


def _days_plot(evidence: Evidence) -> Plot:
    when, parts, legend = daily_parts(evidence)
    marked = sorted({row.day for row in evidence.anomalies})
    unit = f"billed, {evidence.report.currency} a day"
    svg = plot.days("Cost per day by component", when, parts, unit, marked)
    caption = "A triangle marks an unusual day." if marked else ""
    return Plot(svg, legend, caption)


def daily_parts(
    evidence: Evidence,
) -> tuple[Sequence[date], dict[str, list[float]], tuple[tuple[str, str], ...]]:
    """Return the days, a series per colour, and what each colour is."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for each in evidence.days:
        sums[each.component] += abs(each.billed)
    ranked = sorted(sums, key=lambda name: (-sums[name], name))
    colours = dict(zip(ranked, COLOURED, strict=False))
    when = sorted({each.day for each in evidence.days})
    index = {day: position for position, day in enumerate(when)}
    parts = {colour: [0.0] * len(when) for colour in dict.fromkeys(colours.values())}
    rest = [0.0] * len(when)
    for each in evidence.days:
        parts.get(colours.get(each.component, ""), rest)[index[each.day]] += float(each.billed)
    legend = list(colours.items())
    if any(rest):
        parts["--rest"] = rest
        legend.append(("all other components", "--rest"))
    return when, parts, tuple(legend)


# The columns of UNIT that the table has, and of one that is no sum of days its weight.
UNITS = {
    "cost_per_produced_gib": "produced_gib",
    "cost_per_retained_gib_month": None,
    "cost_per_partition_month": None,
    "cost_per_broker_month": None,
}
DAYS_AHEAD = 30


def unit_section(evidence: Evidence) -> Section | None:
    """Return the unit costs of each cluster, or None of a bill without one or without days."""
    if evidence.is_by_the_month:
        return None
    by_day = sorted(evidence.unit, key=lambda row: row.day)
    clusters = sorted({row.cluster for row in by_day})
    told = [(name, [row for row in by_day if row.cluster == name]) for name in clusters]
    if not told:
        return None
    currency = evidence.report.currency
    plots = [made for _, rows in told[:3] if (made := _unit_plot(rows, currency))]
    said = [each for name, rows in told for each in _unit_sentences(name, rows, currency)]
    cells = partial(_unit_cells, currency=currency)
    table = document.table("unit", currency, told, cells, key=lambda each: f"unit-{each[0]}")
    return document.told("unit", said, [table], plots)


def _unit_sentences(name: str, rows: list[Found], currency: str) -> list[str]:
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


def _unit_cells(told: tuple[str, list[Found]], currency: str) -> tuple[Cell, ...]:
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


def _unit_plot(rows: list[Found], currency: str) -> Plot | None:
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
