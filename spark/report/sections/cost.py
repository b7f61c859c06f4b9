"""Makes the sections of cost: by component and owner, tags, savings, unreadable rows, others."""

from __future__ import annotations

from spark.report import cells, plot
from spark.report.document import Cell, Column, Plot, ReportTable, Row, Section, first_rows
from spark.report.evidence import Evidence
from spark.report.model import Report, Share
from spark.report.words import cents, count, decimal_places, enumeration, most
from spark.rows import Found
from spark.rules.names import Attribution, Component, Easy
from spark.tag_keys import UNREAD_TAGS
from spark.transforms.easy import HOW

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
OTHERS_METHOD = (
    "Kafka's cost has Kafka's tag (--cluster-tag, --pool-tag), a claim of known pods, or an "
    "instance in the ledger. For all other cost the report keeps account and component, and no "
    "resource. Taxes, credits, support and commitments for a whole bill are here."
)
EASY_METHOD = (
    "Each row is a meter with its net, amortised cost in the month. An open month counts as far "
    "as AWS has billed it. A saving without 'at most' needs no further check. A saving 'at most' "
    "needs a check of what can go."
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
                Cell("unknown")
                if bad.billed_cost is None
                else cells.billed(bad.billed_cost, places),
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
    return Section(
        key="tags",
        title="Tags on the bill",
        sentences=tuple(said),
        tables=(_tags(evidence.report.currency, rows),) if rows else (),
        method="Likely tags of Kafka come first, then the other tags by cost.",
    )


def _tags(currency: str, rows: list[Found]) -> ReportTable:
    columns = (
        Column("Tag", is_text=True),
        Column("Example value", is_text=True),
        Column("Values"),
        Column("Billed", currency),
        Column("Rows", wide=True),
    )
    listed = tuple(
        Row(
            (
                Cell(row.key),
                Cell(row.value, note="may be Kafka's tag" if row.names_kafka else ""),
                cells.number(row.different_values),
                Cell(cents(row.billed_cost, currency), cells.exact(row.billed_cost)),
                cells.number(row.charges),
            )
        )
        for row in rows
    )
    return ReportTable("", columns, listed)


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
    rows = tuple(
        Row(
            (
                Cell(each.easy.value, note=HOW[each.easy]),
                Cell("Kafka" if each.is_kafkas else "not attributed to Kafka"),
                Cell(cents(each.usd, currency), cells.exact(each.usd)),
                Cell(
                    f"{most(each.at_most)}{cents(each.saving, currency)}",
                    cells.exact(each.saving),
                ),
            ),
            key=f"easy-{Easy(each.easy).name.lower()}-{'kafka' if each.is_kafkas else 'others'}",
        )
        for each in evidence.easy
    )
    columns = (
        Column("Meter", is_text=True),
        Column("Owner", is_text=True),
        Column("Cost", f"{currency}, net and amortised"),
        Column("Saving", currency),
    )
    return Section(
        key="easy",
        title="Savings",
        sentences=tuple(said),
        tables=(ReportTable("", columns, rows),),
        method=EASY_METHOD,
    )


def others(report: Report) -> Section | None:
    """Return everybody else's money by what it bought, or None where all is Kafka's or nothing."""
    rest = report.others
    if not report.has_kafka or not rest.lines:
        return None
    return Section(
        key="others",
        title="Cost not attributed to Kafka",
        sentences=(
            (
                f"{cents(rest.billed, rest.currency)} {rest.currency} of the bill has no Kafka "
                f"tag, claim or known resource."
            ),
        ),
        tables=(components_table(rest, rest.components(), ""),),
        method=OTHERS_METHOD,
    )
