"""Evidence of what was paid: by component, by owner, and the rows that could not be read."""

from __future__ import annotations

from spark.report import cells, plot
from spark.report.document import Cell, Column, Plot, ReportTable, Row, Section, first_rows
from spark.report.model import Monthless, Report, Share
from spark.report.words import cents, count, decimal_places
from spark.transforms.attribute import Attribution
from spark.transforms.classify import Component

OWNERS_SHOWN = 200
COLOURS = {
    Attribution.NODE_POOL: ("a Kafka node pool's", "--c1"),
    Attribution.CLUSTER: ("a cluster's as a whole", "--c2"),
    Attribution.NOBODY: ("unattributed", "--rest"),
}
MEANINGS = {
    Component.BROKER_COMPUTE: "EC2 hours of Kafka's nodes",
    Component.INSTANCES: "EC2 hours of instances that nothing says are Kafka's",
    Component.GP3_STORAGE: "gp3 volumes, per provisioned GB-month",
    Component.GP3_IOPS: "gp3 IOPS above the 3,000 included",
    Component.GP3_THROUGHPUT: "gp3 throughput above the 125 MiB/s included",
    Component.OTHER_VOLUMES: "EBS volumes of other types, with their IOPS",
    Component.SNAPSHOTS: "EBS snapshots, per GB-month",
    Component.INTER_AZ: "bytes between availability zones, billed on each side",
    Component.LOAD_BALANCER: "load balancer hours and capacity units",
    Component.PRIVATELINK: "interface endpoints by the hour and by the byte",
    Component.NAT_GATEWAY: "NAT gateways by the hour and by the byte",
    Component.CONTROL_PLANE: "EKS clusters by the hour, their capabilities and hybrid nodes",
    Component.REPORTS: "EMR Serverless, on which these reports run",
    Component.BETWEEN_REGIONS: "bytes between regions, as MirrorMaker's",
    Component.INTERNET: "bytes to the internet",
    Component.PUBLIC_IPV4: "public IPv4 addresses by the hour",
    Component.MANAGED_KAFKA: "Kafka that AWS runs: brokers, serverless clusters, storage, Connect",
    Component.SPLIT: "a pod's share of its node, a second view that costs nothing of its own",
    Component.OTHER: "all else on the bill: system nodes, taxes, credits, refunds and fees too",
    Component.UNREADABLE: "rows whose cost can be read but not their place",
}
METHOD = (
    "Billed is what the invoice asks for (unblended cost in CUR, BilledCost in FOCUS); the rows "
    "add up to it to the last digit. Amortised spreads savings plans and reservations over the "
    "hours they cover (EffectiveCost in FOCUS), so it may differ from the invoice of one month. "
    "In CUR an hour that a savings plan covers is billed at its on-demand price; the line that "
    "takes it back often names no resource, and is among the others then. "
    "Taxes, credits, refunds and fees belong to no component and are under other. Prices come from "
    "the bill itself."
)


def section(report: Report) -> Section:
    """Return what the money bought, and whose it is: Kafka's or, where none is known, all of it."""
    kafka = report.kafkas if report.has_kafka else report
    components, owners = kafka.components(), kafka.owners()
    tables = [components_table(kafka, components, "By component")]
    tables += [_owners(kafka, owners)] if report.has_kafka else []
    return Section(
        key="cost",
        title="What Kafka's money bought" if report.has_kafka else "What the money bought",
        sentences=(_adds_up(report),),
        plots=(_plot(components, report),) if components else (),
        tables=tuple(tables),
        method=METHOD,
    )


def unreadable(report: Report) -> Section | None:
    """Return the rows that could not be read, or None where all could."""
    if not report.unread_rows:
        return None
    places = decimal_places(report.billed, report.currency)
    rows = tuple(
        Row(
            (
                Cell(bad.reason),
                Cell("unknown") if bad.billed is None else cells.billed(bad.billed, places),
                Cell(bad.line),
            )
        )
        for bad in report.bad
    )
    columns = (
        Column("Why", is_text=True),
        Column("Billed", report.currency),
        Column("The row", is_text=True),
    )
    title = f"Rows that could not be read: {report.unread_rows:,}"
    table = ReportTable("", columns, rows, left_out=report.unread_rows - len(rows))
    return Section("unreadable", title, tuple(unread_sentences(report)), tables=(table,))


def unread_sentences(report: Report) -> list[str]:
    """Say how many rows could not be read, and what that leaves unknown."""
    said = []
    if report.bad_rows:
        sentence = f"{count(report.bad_rows, 'row')} could not be read"
        if report.rows_without_cost:
            sentence += f"; the cost of {report.rows_without_cost:,} is unknown and in no total"
        said.append(f"{sentence}.")
    if report.monthless:
        said.append(_of_no_month(report.monthless, report.currency))
    return said


def _of_no_month(some: Monthless, currency: str) -> str:
    """Say what is known of rows that may be of any month."""
    one = some.rows == 1
    rows = f"{count(some.rows, 'row')} of the bill name{'s' if one else ''} no month"
    places = f"{rows} that can be read and {'is' if one else 'are'} in no month's total"
    if some.rows_without_cost == some.rows:
        return f"{places}; what {'it costs' if one else 'they cost'} is unknown."
    unknown = f", the cost of {some.rows_without_cost:,} unknown" if some.rows_without_cost else ""
    return f"{places}: {cents(some.billed, currency)} {currency}{unknown}."


def _adds_up(report: Report) -> str:
    whose = "the bill's total" if report.is_whole else "the total of what can be read"
    both = report.has_kafka and report.others.lines
    where = ", Kafka's here and the others below," if both else ""
    which = f"{report.rows:,} rows of the {'month' if report.monthless else 'bill'}"
    return f"All {which} are counted once{where} and come to {whose} exactly."


def _plot(components: list[Share], report: Report) -> Plot:
    names = [share.name for share in components]
    parts = {
        colour: [float(share.by_attribution[attribution]) for share in components]
        for attribution, (_, colour) in COLOURS.items()
        if any(share.by_attribution[attribution] for share in components)
    }
    unit = f"billed cost, {report.currency}"
    svg = plot.bars("Billed cost by component", names, parts, unit)
    return Plot(svg, tuple((said, colour) for said, colour in COLOURS.values() if colour in parts))


def components_table(report: Report, components: list[Share], title: str) -> ReportTable:
    """Return what a part of a bill bought, with its sum as the foot."""
    meanings = {component.value: said for component, said in MEANINGS.items()}
    kind = "component" if title else "other"
    rows = tuple(
        Row(_cells(share, report, meanings.get(share.name, "")), key=cells.slug(kind, share.name))
        for share in components
    )
    everything = Share("Total", report.rows, report.billed, report.amortised, {})
    foot = _cells(everything, report, "")
    return ReportTable(title, _columns("Component", report), rows, foot=foot)


def _owners(report: Report, owners: list[Share]) -> ReportTable:
    rows = [Row(_cells(share, report, share.detail)) for share in owners]
    first, left_out = first_rows(rows, OWNERS_SHOWN)
    return ReportTable("Whose it is", _columns("Owner", report), first, left_out=left_out)


def _columns(what: str, report: Report) -> tuple[Column, ...]:
    return (
        Column(what, is_text=True),
        Column("Billed", report.currency),
        Column("Share"),
        Column("Amortised", report.currency, wide=True),
        Column("Rows", wide=True),
    )


def _cells(share: Share, report: Report, note: str) -> tuple[Cell, ...]:
    places = decimal_places(report.billed, report.currency)
    return (
        Cell(share.name, note=note),
        cells.billed(share.billed, places),
        cells.part(share.billed, report.billed),
        cells.billed(share.amortised, places),
        cells.number(share.charges),
    )
