"""Evidence of what changed: this month against as many days of the one before, and day by day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from spark.report import cells, plot
from spark.report.document import Cell, Column, Plot, ReportTable, Row, Section
from spark.report.evidence import Comparison, Evidence, month_comparison
from spark.report.words import change, count, decimal_places, money, smallest_places
from spark.transforms.stand_out import FEWEST_BEFORE

# The dearest components have a colour of their own; the others share one.
COLOURED = ("--c1", "--c2", "--c3", "--c4", "--c5")
METHOD = (
    "Only complete days are compared: AWS bills with a day's delay, so the last day of an open "
    "month is left out, and of the month before as many days are taken; a month that is over is "
    "compared whole. A day stands out when it "
    "is more than 4 robust standard deviations (1.4826 x the median absolute deviation) from the "
    "median of the 14 days before, by at least 20 % and 1 of the bill's currency."
)


def section(evidence: Evidence) -> Section | None:
    """Return what changed, or None of a bill of a day or two."""
    comparison = month_comparison(evidence)
    own = [each for each in evidence.days if f"{each.day:%Y-%m}" == evidence.month]
    if comparison is None and len({each.day for each in own}) < 3:
        return None
    tables = [_table(comparison, evidence)] if comparison else []
    if evidence.anomalies:
        tables.append(_anomalies(evidence))
    return Section(
        key="changes",
        title="What changed",
        sentences=tuple(_sentences(comparison, evidence)),
        plots=(_plot(evidence),),
        tables=tuple(tables),
        method=METHOD,
    )


def _sentences(comparison: Comparison | None, evidence: Evidence) -> list[str]:
    said = []
    if comparison is not None:
        places = decimal_places(comparison.totals[1], evidence.report.currency)
        said.append(_totals_text(comparison, evidence.report.currency))
        said += [
            f"{name} {'rose' if now > was else 'fell'} most: {money(was, places)} to "
            f"{money(now, places)}."
            for name, was, now in moves(comparison)[:1]
            if now != was
        ]
    return [*said, _odd_days(evidence)]


def _totals_text(comparison: Comparison, currency: str) -> str:
    before, after = comparison.totals
    places = decimal_places(after, currency)
    now, was = money(after, places), money(before, places)
    if comparison.days == comparison.days_before:
        return (
            f"The first {count(comparison.days, 'day')} were billed {now} {currency}, "
            f"{change(after, before)} against the same days of the month before ({was})."
        )
    a_day = change(after / comparison.days, before / comparison.days_before)
    return (
        f"The {count(comparison.days, 'day')} of the month were billed {now} {currency}, "
        f"{change(after, before)} against the {count(comparison.days_before, 'day')} of the month "
        f"before ({was}), and {a_day} a day."
    )


def against(comparison: Comparison) -> str:
    """Return the change that stands beside the headline."""
    before, after = comparison.totals
    days, was = comparison.days, comparison.days_before
    how = "day for day" if days == was else f"{count(days, 'day')} against {was}"
    return f"{change(after, before)} against the month before, {how}"


def _odd_days(evidence: Evidence) -> str:
    """Say which days stand out; of too few, or of nobody's known to be Kafka's, none can be."""
    stand_out = len(evidence.anomalies)
    if stand_out:
        return f"{count(stand_out, 'day stands', 'days stand')} out; each is listed with why."
    if not evidence.report.has_kafka:
        return "Whether a day stands out is looked for in Kafka's charges alone."
    if len({each.day for each in evidence.days}) <= FEWEST_BEFORE:
        return f"With {FEWEST_BEFORE} days or fewer none can be said to stand out."
    return "No day stands out."


def moves(comparison: Comparison) -> list[tuple[str, Decimal, Decimal]]:
    """Return what each component cost before and now, the one that moved furthest first."""
    before, after, nothing = comparison.before, comparison.after, Decimal(0)
    names = {**before, **after}
    both = [(name, before.get(name, nothing), after.get(name, nothing)) for name in names]
    return sorted(both, key=lambda each: (-abs(each[2] - each[1]), each[0]))


def _table(comparison: Comparison, evidence: Evidence) -> ReportTable:
    before, after = comparison.totals
    currency = evidence.report.currency
    places = decimal_places(after, currency)

    def moved(name: str, was: Decimal, is_now: Decimal) -> tuple[Cell, ...]:
        return (
            Cell(name),
            *(cells.billed(amount, places) for amount in (was, is_now, is_now - was)),
            Cell(change(is_now, was), cells.exact(is_now - was)),
        )

    rows = tuple(Row(moved(*each)) for each in moves(comparison))
    columns = (
        Column("Component", is_text=True),
        Column("Month before", currency),
        Column("This month", currency),
        Column("Difference", currency),
        Column("Change", wide=True),
    )
    days, was = comparison.days, comparison.days_before
    title = f"The first {count(days, 'day')} of both months"
    if days != was:
        title = f"The month's {count(days, 'day')}, and the {was} of the one before"
    return ReportTable(title, columns, rows, foot=moved("Total", before, after))


def _anomalies(evidence: Evidence) -> ReportTable:
    currency = evidence.report.currency
    places = smallest_places(currency)
    columns = (
        Column("Day", is_text=True),
        Column("Component", is_text=True),
        Column("Cost", f"{currency}, net and amortised"),
        Column("Usual", currency),
        Column("Excess", currency),
        Column("Why", is_text=True),
    )
    ordered = sorted(evidence.anomalies, key=lambda row: -abs(row.excess))
    rows = tuple(
        Row(
            (
                Cell(f"{row.day}", f"{row.day}"),
                Cell(row.component, note=row.cluster or "no cluster"),
                *(cells.billed(amount, places) for amount in (row.cost, row.usual, row.excess)),
                Cell(row.reason),
            ),
            key=f"anomaly-{row.day}-{index}",
        )
        for index, row in enumerate(ordered)
    )
    return ReportTable("Days that stand out", columns, rows)


def _plot(evidence: Evidence) -> Plot:
    when, parts, legend = daily_parts(evidence)
    marked = sorted({row.day for row in evidence.anomalies})
    unit = f"billed, {evidence.report.currency} a day"
    svg = plot.days("Billed cost per day", when, parts, unit, marked)
    caption = "A triangle marks a day whose net, amortised cost stands out." if marked else ""
    return Plot(svg, legend, caption)


def daily_parts(
    evidence: Evidence,
) -> tuple[Sequence[date], dict[str, list[float]], tuple[tuple[str, str], ...]]:
    """Return the days, a series per colour, and what each colour is."""
    sums: dict[str, Decimal] = {}
    for each in evidence.days:
        sums[each.component] = sums.get(each.component, Decimal(0)) + abs(each.billed)
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
        legend.append(("all else", "--rest"))
    return when, parts, tuple(legend)
