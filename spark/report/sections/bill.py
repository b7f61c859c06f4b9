"""Makes the sections of a bill's money: components, owners, tags, savings, nodes, flows, others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from core.cost.pricing import total
from spark.report import document, plot
from spark.report.document import (
    DASH,
    Cell,
    Plot,
    ReportTable,
    Section,
    cents,
    count,
    decimal_places,
    enumeration,
    money,
    most,
    percent,
    size,
    smallest_places,
)
from spark.report.evidence import Evidence, Report, Share
from spark.rows import Found
from spark.rules.meters import Attribution, Certainty, Component
from spark.tag_keys import UNREAD_TAGS
from spark.transforms.grain import EasySaving
from spark.transforms.node_shares import ShareKind

OWNERS_SHOWN = 200
COLOURS = {
    Attribution.NODE_POOL: ("node pools", "--c1"),
    Attribution.CLUSTER: ("whole cluster", "--c2"),
    Attribution.NOBODY: ("unattributed", "--rest"),
}


def cost_section(report: Report) -> Section:
    """Return the cost by component and by owner: Kafka's or, where none is known, the bill's."""
    kafka = report.kafkas if report.has_kafka else report
    components, owners = kafka.components(), kafka.owners()
    tables = [components_table(kafka, components, "Cost by component")]
    tables += [_owners(kafka, owners)] if report.has_kafka else []
    plots = [_cost_plot(components, report)] if components else []
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


def _cost_plot(components: list[Share], report: Report) -> Plot:
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
        lambda share: _share_cells(share, report, meanings.get(share.name, "")),
        key=lambda share: document.slug(kind, share.name),
        foot=_share_cells(everything, report, ""),
    )
    return replace(table, title=title)


def _owners(report: Report, owners: list[Share]) -> ReportTable:
    def cells(share: Share) -> tuple[Cell, ...]:
        return _share_cells(share, report, share.detail)

    return document.table("owners", report.currency, owners, cells, most=OWNERS_SHOWN)


def _share_cells(share: Share, report: Report, note: str) -> tuple[Cell, ...]:
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


WORKLOADS_SHOWN = 40


def nodes_section(evidence: Evidence) -> Section | None:
    """Return what ran on the nodes, how to find out, or None of a bill without Kafka's nodes."""
    if not evidence.nodes:
        has_nodes = any(
            line.component == Component.BROKER_COMPUTE and line.attribution == Attribution.NODE_POOL
            for line in evidence.report.lines
        )
        missing = document.told("nodes", document.TEXTS["missing"]["nodes"])
        return replace(missing, method="") if has_nodes else None
    rows, currency = evidence.nodes, evidence.report.currency
    return document.told("nodes", _nodes_sentences(rows, currency), [_nodes_table(rows, currency)])


def _nodes_sentences(rows: Sequence[Found], currency: str) -> list[str]:
    allocated = [row for row in rows if row.kind != ShareKind.NOT_ALLOCATED.value]
    whole = total(_whole_cost(row) for row in rows)
    places = decimal_places(whole, currency)
    kafka = _split_cost(row for row in allocated if row.kind == ShareKind.KAFKA.value)
    others = _split_cost(row for row in allocated if row.kind != ShareKind.KAFKA.value)
    idle = total(row.unused_cost for row in allocated)
    told = [
        f"Kafka's nodes cost {money(whole, places)} {currency}, amortised.",
        f"Kafka's pods used {percent(kafka, whole)} of this cost.",
        f"Daemon sets and other pods used {percent(others, whole)}.",
        f"{percent(idle, whole)} was idle.",
    ]
    rest = whole - kafka - others - idle
    # AWS writes ten places of a share: less than this is rounding.
    if abs(rest) >= Decimal("0.01"):
        told.append(
            f"{money(rest, places)} {currency} has no split line, for example hours before "
            f"split cost allocation data was on."
        )
    return told


def _split_cost(rows: Iterable[Found]) -> Decimal:
    return total(row.split_cost for row in rows)


def _whole_cost(row: Found) -> Decimal:
    return Decimal(row.split_cost + row.unused_cost)


def _nodes_table(rows: Sequence[Found], currency: str) -> ReportTable:
    order = {kind.value: place for place, kind in enumerate(ShareKind)}
    ranked = sorted(rows, key=lambda row: (order[row.kind], -_whole_cost(row), _workload_name(row)))
    whole = total(_whole_cost(row) for row in rows)
    places = decimal_places(whole, currency)
    several = len({row.cluster for row in rows}) > 1

    def halves(name: str, note: str, split: Decimal, unused: Decimal) -> tuple[Cell, ...]:
        both = split + unused
        return (
            Cell(name, note=note),
            *(document.billed(amount, places) for amount in (split, unused, both)),
            document.part(both, whole),
        )

    def cells(row: Found) -> tuple[Cell, ...]:
        return halves(
            _workload_name(row),
            _workload_note(row, several=several),
            row.split_cost,
            row.unused_cost,
        )

    def key(row: Found) -> str:
        return document.slug(
            "node", f"{row.cluster} {row.kind} {row.namespace} {_workload_name(row)}"
        )

    foot = halves("Total", "", _split_cost(rows), total(row.unused_cost for row in rows))
    return document.table(
        "nodes", currency, ranked, cells, key=key, foot=foot, most=WORKLOADS_SHOWN
    )


def _workload_name(row: Found) -> str:
    if row.kind == ShareKind.KAFKA.value:
        return "Kafka"
    if row.kind == ShareKind.NOT_ALLOCATED.value:
        return "No split line"
    return str(row.workload or "pods without a controller")


def _workload_note(row: Found, *, several: bool) -> str:
    parts = [str(row.cluster)] if several else []
    if row.kind != ShareKind.NOT_ALLOCATED.value:
        kind = "" if row.kind == ShareKind.KAFKA.value else f"{row.workload_type or row.kind}, "
        where = f" in {row.namespace}" if row.namespace else ""
        parts.append(f"{kind}{count(row.pods, 'pod')}{where}")
    return ", ".join(parts)


def transfer_section(evidence: Evidence) -> Section | None:
    """Return the flows of the month, or None of a bill without any."""
    rows = [row for row in evidence.transfer if row.cluster is not None]
    flows = by_flow(rows)
    if not flows:
        return None
    currency = evidence.report.currency
    billed = total(flow.billed for flow in flows)
    largest = max(flows, key=lambda flow: flow.billed)
    said = [
        f"Kafka's traffic costs {money(billed, smallest_places(currency))} {currency}.",
        f"The largest flow is {largest.name} with {percent(largest.billed, billed)} of this cost.",
    ]
    said += _own_zone(flows, currency)
    if all(row.certainty == "billed" for row in rows):
        said.append("The report needs the brokers' counters (--metrics) to divide traffic by flow.")
    return document.told("transfer", said, [_flow_table(flows, billed, currency)])


def _own_zone(flows: Sequence[FlowCost], currency: str) -> list[str]:
    """Return the saving of reads in the own zone, and how well it is known."""
    saving = total(flow.saving for flow in flows)
    if not saving:
        return []
    figure = f"{money(saving, smallest_places(currency))} {currency}"
    if all(flow.is_known for flow in flows if flow.saving):
        return [
            f"Reads in the consumer's own zone save {figure}.",
            "The brokers do not allow such reads yet.",
        ]
    return [
        f"Reads in the consumer's own zone save at most {figure}.",
        "The brokers' counters do not show which consumers read in their own zone already.",
    ]


class FlowCost:
    """One flow over the month."""

    def __init__(self, name: str, rows: Sequence[Found]) -> None:
        self.name = name
        self.certainty = ", ".join(sorted({row.certainty for row in rows}))
        self.billed_bytes = sum(row.billed_bytes or 0 for row in rows)
        self.billed = total(row.billed_cost for row in rows)
        self.saving = total(row.rack_aware_saving or Decimal(0) for row in rows)
        self.is_known = all(row.certainty != Certainty.AT_MOST.value for row in rows)


def by_flow(rows: Sequence[Found]) -> list[FlowCost]:
    """Return the flows, the dearest first."""
    names = dict.fromkeys(row.flow for row in rows)
    flows = [FlowCost(name, [row for row in rows if row.flow == name]) for name in names]
    return sorted(flows, key=lambda flow: (-flow.billed, flow.name))


def _flow_saving(flow: FlowCost, places: int) -> str:
    return f"{most(not flow.is_known)}{money(flow.saving, places)}" if flow.saving else DASH


def _flow_table(flows: list[FlowCost], billed: Decimal, currency: str) -> ReportTable:
    places = smallest_places(currency)

    def cells(flow: FlowCost) -> tuple[Cell, ...]:
        return (
            Cell(flow.name, note=flow.certainty),
            document.figure(size(flow.billed_bytes), flow.billed_bytes),
            document.billed(flow.billed, places),
            document.part(flow.billed, billed),
            Cell(_flow_saving(flow, places), document.exact(flow.saving)),
        )

    return document.table(
        "transfer", currency, flows, cells, key=lambda flow: document.slug("flow", flow.name)
    )
