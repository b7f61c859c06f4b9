"""Makes the section of unusual days and of changes to last month."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from spark.months import FEWEST_BEFORE
from spark.report import document, plot
from spark.report.document import Cell, Plot, ReportTable, Section
from spark.report.evidence import Comparison, Evidence, month_comparison
from spark.report.words import (
    cents,
    change,
    count,
    decimal_places,
    money,
    sentence_start,
    smallest_places,
)
from spark.rows import Found

# The dearest components have a colour of their own; the others share one.
COLOURED = ("--c1", "--c2", "--c3", "--c4", "--c5")


def section(evidence: Evidence) -> Section | None:
    """Return the changes, or None of a bill of a day or two."""
    comparison = month_comparison(evidence)
    own = {each.day for each in evidence.days if f"{each.day:%Y-%m}" == evidence.month}
    if comparison is None and len(own) < 3:
        return None
    tables = [_table(comparison, evidence)] if comparison else []
    if evidence.anomalies:
        tables.append(_anomalies(evidence))
    return document.told("changes", _sentences(comparison, evidence), tables, [_plot(evidence)])


def _sentences(comparison: Comparison | None, evidence: Evidence) -> list[str]:
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


def _table(comparison: Comparison, evidence: Evidence) -> ReportTable:
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


def _plot(evidence: Evidence) -> Plot:
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
