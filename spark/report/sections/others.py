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
    "Kafka's is what carries the tag that means Kafka (--cluster-tag, --pool-tag), what is "
    "claimed by a known cluster's pods, and what the ledger knows as its instances. Of everything "
    "else the report keeps what was bought by which account, and no resource: it is somebody "
    "else's to explain. Taxes, credits, support and commitments bought for a whole bill are here."
)
EASY_METHOD = (
    "By meter: net, amortised cost of the month, of an open one as far as it is billed. "
    "What is written without 'at most' buys nothing "
    "that would be missed; of the rest somebody has to say what can go."
)


def which_tag(evidence: Evidence) -> Section | None:
    """Return the tags of a bill on which nothing is known to be Kafka's, or None."""
    if evidence.report.has_kafka:
        return None
    found = sorted(evidence.tags, key=lambda row: (not row.names_kafka, -row.billed_cost, row.key))
    unread = next((row for row in found if row.key == UNREAD_TAGS), None)
    rows = [row for row in found if row is not unread]
    likely = [f"{row.key}={row.value}" for row in rows if row.names_kafka]
    said = ["No charge of this bill says that it is Kafka's, so none is called so."]
    if unread is not None:
        said.append(
            f"The tags of {count(unread.charges, 'row')} are written in a way that cannot be read, "
            f"such as {unread.value}: write them as JSON, as AWS delivers them."
        )
    if likely:
        said.append(f"Perhaps {enumeration(likely[:3])}; say which with --cluster-tag.")
    elif rows:
        said.append("No tag's key or value sounds like Kafka.")
    elif unread is None:
        said.append(
            "No tag was found on any line: activate cost allocation tags in the Billing console "
            "(they are not back-filled), and have the export include them."
        )
    return Section(
        key="tags",
        title="Which tag means Kafka?",
        sentences=tuple(said),
        tables=(_tags(evidence.report.currency, rows),) if rows else (),
        method="Tags as the bill carries them, those that sound like Kafka first, then by money.",
    )


def _tags(currency: str, rows: list) -> ReportTable:  # type: ignore[type-arg] # rows of pyspark
    columns = (
        Column("Tag", is_text=True),
        Column("One of its values", is_text=True),
        Column("Values"),
        Column("Billed", currency),
        Column("Rows", wide=True),
    )
    listed = tuple(
        Row(
            (
                Cell(row.key),
                Cell(row.value, note="may mean Kafka" if row.names_kafka else ""),
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
    said = f"{count(len(own), 'finding is', 'findings are')} Kafka's" if own else "None is Kafka's"
    rows = tuple(
        Row(
            (
                Cell(each.easy.value, note=HOW[each.easy]),
                Cell("Kafka's" if each.is_kafkas else "not known to be Kafka's"),
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
        Column("Paid for", is_text=True),
        Column("Whose", is_text=True),
        Column("Paid", f"{currency}, net and amortised"),
        Column("To save", currency),
    )
    return Section(
        key="easy",
        title="Cheap to do without",
        sentences=(f"{said}; the others are for whoever they belong to.",),
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
        title="Not ours to explain",
        sentences=(
            (
                f"{cents(billed, report.currency)} {report.currency} of the bill are not known to "
                f"be Kafka's; by what they bought:"
            ),
        ),
        tables=(components_table(rest, rest.components(), ""),),
        method=METHOD,
    )
