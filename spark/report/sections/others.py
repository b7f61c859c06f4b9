"""Evidence of what is not known to be Kafka's: tags to choose from, and everybody else's money."""

from __future__ import annotations

from core.cost.pricing import total
from spark.report import cells
from spark.report.document import Cell, Column, ReportTable, Row, Section
from spark.report.evidence import Evidence
from spark.report.model import Report
from spark.report.sections.cost import components_table
from spark.report.words import cents, count, enumeration, most
from spark.tag_keys import UNREAD_TAGS
from spark.transforms.easy import HOW, Easy

METHOD = (
    "Kafka's cost has the tag of Kafka (--cluster-tag, --pool-tag), a claim of a known cluster's "
    "pods, or an instance in the ledger. For all other cost the report keeps account and "
    "component, and no resource. Taxes, credits, support and commitments for a whole bill are "
    "here."
)
EASY_METHOD = (
    "Each row is a meter with its net, amortised cost in the month. An open month counts as far "
    "as AWS has billed it. A saving without 'at most' needs no further check. A saving 'at most' "
    "needs a check of what can go."
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


def _tags(currency: str, rows: list) -> ReportTable:  # type: ignore[type-arg] # rows of pyspark
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


def section(report: Report) -> Section | None:
    """Return everybody else's money by what it bought, or None where all is Kafka's or nothing."""
    rest = report.others
    if not report.has_kafka or not rest.lines:
        return None
    billed = total(line.billed for line in rest.lines)
    return Section(
        key="others",
        title="Cost not attributed to Kafka",
        sentences=(
            (
                f"{cents(billed, report.currency)} {report.currency} of the bill has no Kafka tag, "
                f"claim or known resource."
            ),
        ),
        tables=(components_table(rest, rest.components(), ""),),
        method=METHOD,
    )
