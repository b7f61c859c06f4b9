"""Makes the sections of cost: by component and owner, tags, savings, unreadable rows, others."""

from __future__ import annotations

from dataclasses import replace

from spark.report import document, plot
from spark.report.document import Cell, Plot, ReportTable, Section
from spark.report.evidence import Evidence, Report, Share
from spark.report.words import cents, count, decimal_places, enumeration, most
from spark.rows import Found
from spark.rules.meters import Attribution
from spark.tag_keys import UNREAD_TAGS
from spark.transforms.grain import EasySaving

OWNERS_SHOWN = 200
COLOURS = {
    Attribution.NODE_POOL: ("node pools", "--c1"),
    Attribution.CLUSTER: ("whole cluster", "--c2"),
    Attribution.NOBODY: ("unattributed", "--rest"),
}


def section(report: Report) -> Section:
    """Return the cost by component and by owner: Kafka's or, where none is known, the bill's."""
    kafka = report.kafkas if report.has_kafka else report
    components, owners = kafka.components(), kafka.owners()
    tables = [components_table(kafka, components, "Cost by component")]
    tables += [_owners(kafka, owners)] if report.has_kafka else []
    plots = [_plot(components, report)] if components else []
    return document.told("cost", _adds_up(report), tables, plots)


def unreadable(report: Report) -> Section | None:
    """Return the rows that could not be read, or None where all could."""
    if not report.unread_rows:
        return None
    places = decimal_places(report.billed, report.currency)

    def cells(bad: Found) -> tuple[Cell, ...]:
        billed = bad.billed_cost
        known = Cell("unknown") if billed is None else document.billed(billed, places)
        return (Cell(bad.reason), known, Cell(bad.line))

    table = document.table("unreadable", report.currency, report.bad, cells)
    table = replace(table, left_out=report.unread_rows - len(table.rows))
    made = document.told("unreadable", unread_sentences(report), [table])
    return replace(made, title=f"{made.title}: {report.unread_rows:,}")


def unread_sentences(report: Report) -> list[str]:
    """Return how many rows are unreadable, and which cost is unknown."""
    said = []
    if report.bad_rows:
        said.append(f"{count(report.bad_rows, 'row is', 'rows are')} unreadable.")
        if report.rows_without_cost:
            rows = count(report.rows_without_cost, "row")
            said.append(f"The cost of {rows} is unknown and in no total.")
    if report.monthless:
        said += _monthless_sentences(report.monthless, report.currency)
    return said


def _monthless_sentences(some: Found, currency: str) -> list[str]:
    """Return how many rows name no month, and their cost as far as it is known."""
    rows = count(some.lines, "row of the bill names", "rows of the bill name")
    said = [f"{rows} no readable month and {'is' if some.lines == 1 else 'are'} in no total."]
    if some.lines_without_cost < some.lines:
        cost = "Its cost is" if some.lines == 1 else "Their cost is"
        if some.lines_without_cost:
            cost = "Their known cost is"
        said.append(f"{cost} {cents(some.billed_cost, currency)} {currency}.")
    elif some.lines == 1:
        said.append("Its cost is unknown.")
    if some.lines_without_cost and some.lines > 1:
        said.append(f"The cost of {some.lines_without_cost:,} of these rows is unknown.")
    return said


def _adds_up(report: Report) -> list[str]:
    whose = "the bill's total" if report.is_whole else "the total of the readable rows"
    which = f"{report.rows:,} rows of the {'month' if report.monthless else 'bill'}"
    said = [f"All {which} count once and add up to {whose} exactly."]
    if report.has_kafka and report.others.lines:
        said.append("This section has Kafka's cost; the last section has all other cost.")
    return said


def _plot(components: list[Share], report: Report) -> Plot:
    names = [share.name for share in components]
    parts = {
        colour: [float(share.by_attribution[attribution]) for share in components]
        for attribution, (_, colour) in COLOURS.items()
        if any(share.by_attribution[attribution] for share in components)
    }
    unit = f"Billed, {report.currency}"
    svg = plot.bars("Cost by component", names, parts, unit)
    return Plot(svg, tuple((said, colour) for said, colour in COLOURS.values() if colour in parts))


def components_table(report: Report, components: list[Share], title: str) -> ReportTable:
    """Return what a part of a bill bought, with its sum as the foot."""
    meanings = document.TEXTS["components"]
    kind = "component" if title else "other"
    everything = Share("Total", report.rows, report.billed, report.amortised, {})
    table = document.table(
        "components",
        report.currency,
        components,
        lambda share: _cells(share, report, meanings.get(share.name, "")),
        key=lambda share: document.slug(kind, share.name),
        foot=_cells(everything, report, ""),
    )
    return replace(table, title=title)


def _owners(report: Report, owners: list[Share]) -> ReportTable:
    def cells(share: Share) -> tuple[Cell, ...]:
        return _cells(share, report, share.detail)

    return document.table("owners", report.currency, owners, cells, most=OWNERS_SHOWN)


def _cells(share: Share, report: Report, note: str) -> tuple[Cell, ...]:
    places = decimal_places(report.billed, report.currency)
    return (
        Cell(share.name, note=note),
        document.billed(share.billed, places),
        document.part(share.billed, report.billed),
        document.billed(share.amortised, places),
        _number(share.charges),
    )


def which_tag(evidence: Evidence) -> Section | None:
    """Return the tags of a bill on which nothing is known to be Kafka's, or None."""
    if evidence.report.has_kafka:
        return None
    found = sorted(evidence.tags, key=lambda row: (not row.names_kafka, -row.billed_cost, row.key))
    unread = next((row for row in found if row.key == UNREAD_TAGS), None)
    rows = [row for row in found if row is not unread]
    likely = [f"{row.key}={row.value}" for row in rows if row.names_kafka]
    said = ["The report found no charge with Kafka's tag on this bill."]
    if unread is not None:
        said.append(
            f"The tags of {count(unread.charges, 'row')} are unreadable, such as {unread.value}."
        )
        said.append("Write tags as JSON, as AWS delivers them.")
    if likely:
        said.append(f"{enumeration(likely[:3])} may be Kafka's tag.")
        said.append("Name Kafka's tag with --cluster-tag.")
    elif rows:
        said.append("No tag has a key or value like Kafka's.")
    elif unread is None:
        said += [
            "No line of the bill has a tag.",
            "Activate cost allocation tags in the Billing console and include them in the export.",
            "AWS does not back-fill tags.",
        ]
    return document.told("tags", said, [_tags(evidence.report.currency, rows)] if rows else [])


def _tags(currency: str, rows: list[Found]) -> ReportTable:
    def cells(row: Found) -> tuple[Cell, ...]:
        return (
            Cell(row.key),
            Cell(row.value, note="may be Kafka's tag" if row.names_kafka else ""),
            _number(row.different_values),
            Cell(cents(row.billed_cost, currency), document.exact(row.billed_cost)),
            _number(row.charges),
        )

    return document.table("tags", currency, rows, cells)


def _number(value: int) -> Cell:
    return document.figure(f"{value:,}", value)


def easy(evidence: Evidence) -> Section | None:
    """Return what is cheap to do without, Kafka's first, or None."""
    if not evidence.easy:
        return None
    currency = evidence.report.currency
    own = [each for each in evidence.easy if each.is_kafkas]
    said = [f"{count(len(own), 'finding belongs', 'findings belong')} to Kafka."]
    if len(own) < len(evidence.easy):
        strangers = count(len(evidence.easy) - len(own), "finding has", "findings have")
        said.append(f"{strangers} no Kafka tag.")

    def cells(each: EasySaving) -> tuple[Cell, ...]:
        saving = f"{most(each.at_most)}{cents(each.saving, currency)}"
        return (
            Cell(each.easy.value, note=document.TEXTS["easy"][each.easy]),
            Cell("Kafka" if each.is_kafkas else "not attributed to Kafka"),
            Cell(cents(each.usd, currency), document.exact(each.usd)),
            Cell(saving, document.exact(each.saving)),
        )

    table = document.table("easy", currency, evidence.easy, cells, key=easy_key)
    return document.told("easy", said, [table])


def easy_key(each: EasySaving) -> str:
    return f"easy-{each.easy.name.lower()}-{'kafka' if each.is_kafkas else 'others'}"


def others(report: Report) -> Section | None:
    """Return everybody else's money by what it bought, or None where all is Kafka's or nothing."""
    rest = report.others
    if not report.has_kafka or not rest.lines:
        return None
    said = (
        f"{cents(rest.billed, rest.currency)} {rest.currency} of the bill has no Kafka tag, claim "
        f"or known resource."
    )
    return document.told("others", [said], [components_table(rest, rest.components(), "")])
