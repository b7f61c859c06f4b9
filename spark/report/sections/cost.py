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
    Attribution.NODE_POOL: ("node pools", "--c1"),
    Attribution.CLUSTER: ("whole cluster", "--c2"),
    Attribution.NOBODY: ("unattributed", "--rest"),
}
MEANINGS = {
    Component.BROKER_COMPUTE: "EC2 hours of Kafka's nodes",
    Component.INSTANCES: "EC2 hours of instances without a Kafka tag",
    Component.GP3_STORAGE: "gp3 volumes, per provisioned GB-month",
    Component.GP3_IOPS: "gp3 IOPS above the 3,000 included",
    Component.GP3_THROUGHPUT: "gp3 throughput above the 125 MiB/s included",
    Component.OTHER_VOLUMES: "EBS volumes of other types and their IOPS",
    Component.SNAPSHOTS: "EBS snapshots, per GB-month",
    Component.INTER_AZ: "bytes between availability zones, billed on each side",
    Component.LOAD_BALANCER: "load balancer hours and capacity units",
    Component.PRIVATELINK: "interface endpoints by the hour and by the byte",
    Component.NAT_GATEWAY: "NAT gateways by the hour and by the byte",
    Component.CONTROL_PLANE: "EKS clusters by the hour, their capabilities and hybrid nodes",
    Component.REPORTS: "EMR Serverless that runs these reports",
    Component.BETWEEN_REGIONS: "bytes between regions, for example by MirrorMaker",
    Component.INTERNET: "bytes to the internet",
    Component.PUBLIC_IPV4: "public IPv4 addresses by the hour",
    Component.MANAGED_KAFKA: "Kafka that AWS runs: brokers, serverless clusters, storage, Connect",
    Component.SPLIT: "a pod's share of its node; a second view without a cost of its own",
    Component.OTHER: "all other charges: system nodes, taxes, credits, refunds, fees",
    Component.UNREADABLE: "rows with a cost and without a readable place",
}
METHOD = (
    "Billed is the amount on the invoice: unblended cost in CUR, BilledCost in FOCUS. The rows "
    "add up to it to the last digit. Amortised cost spreads savings plans and reservations over "
    "the hours that they cover (EffectiveCost in FOCUS). It may differ from the invoice of one "
    "month. CUR bills an hour under a savings plan at its on-demand price and takes it back on "
    "another line. That line often names no resource and then counts as unattributed. Taxes, "
    "credits, refunds and fees belong to the component other. Prices come from the bill."
)


def section(report: Report) -> Section:
    """Return the cost by component and by owner: Kafka's or, where none is known, the bill's."""
    kafka = report.kafkas if report.has_kafka else report
    components, owners = kafka.components(), kafka.owners()
    tables = [components_table(kafka, components, "Cost by component")]
    tables += [_owners(kafka, owners)] if report.has_kafka else []
    return Section(
        key="cost",
        title="Cost by component",
        sentences=tuple(_adds_up(report)),
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
        Column("Reason", is_text=True),
        Column("Billed", report.currency),
        Column("Row", is_text=True),
    )
    title = f"Unreadable rows: {report.unread_rows:,}"
    table = ReportTable("", columns, rows, left_out=report.unread_rows - len(rows))
    return Section("unreadable", title, tuple(unread_sentences(report)), tables=(table,))


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


def _monthless_sentences(some: Monthless, currency: str) -> list[str]:
    """Return how many rows name no month, and their cost as far as it is known."""
    rows = count(some.rows, "row of the bill names", "rows of the bill name")
    said = [f"{rows} no readable month and {'is' if some.rows == 1 else 'are'} in no total."]
    if some.rows_without_cost < some.rows:
        cost = "Its cost is" if some.rows == 1 else "Their cost is"
        if some.rows_without_cost:
            cost = "Their known cost is"
        said.append(f"{cost} {cents(some.billed, currency)} {currency}.")
    elif some.rows == 1:
        said.append("Its cost is unknown.")
    if some.rows_without_cost and some.rows > 1:
        said.append(f"The cost of {some.rows_without_cost:,} of these rows is unknown.")
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
    return ReportTable("Cost by owner", _columns("Owner", report), first, left_out=left_out)


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
