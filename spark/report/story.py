"""The story, told before its evidence: what it cost, what changed, what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from core.naming import CLUSTER_TAG, POOL_TAG
from spark.report import actions
from spark.report.document import Action, Document, Section, Total
from spark.report.evidence import Evidence, compared
from spark.report.model import Report
from spark.report.sections import changes, cost, economics, nodes, resync, storage, transfer, unit
from spark.report.words import change, dollars, headline_places, listed, money, percent
from spark.transforms.attribute import Attribution
from spark.transforms.classify import Component

SIMULATED = "Simulated: written by the local twin for what it ran; nobody was charged"
PROVISIONAL = "Provisional: AWS may still correct this month"


def told(evidence: Evidence) -> Document:
    """Return the whole report of a month."""
    report = evidence.report
    todo = actions.chosen(evidence)
    comparison = compared(evidence)
    against = ""
    if comparison is not None:
        before, after = comparison.totals
        against = f"{change(after, before)} against the month before, day for day"
    sections = [
        changes.section(evidence),
        cost.section(report),
        nodes.section(evidence),
        transfer.section(evidence),
        storage.section(evidence),
        resync.section(evidence),
        economics.section(evidence),
        unit.section(evidence),
        cost.unreadable(report),
    ]
    return _document(
        report,
        (*sentences(report), *_more(evidence, todo)),
        tuple(section for section in sections if section is not None),
        todo,
        against,
    )


def of_cost(report: Report) -> Document:
    """Return the report of a bill alone."""
    sections = (cost.section(report), cost.unreadable(report))
    chosen = tuple(section for section in sections if section is not None)
    return _document(report, tuple(sentences(report)), chosen)


def _document(
    report: Report,
    story: tuple[str, ...],
    sections: tuple[Section, ...],
    todo: tuple[Action, ...] = (),
    against: str = "",
) -> Document:
    badges = [SIMULATED] if report.simulated else []
    badges += [PROVISIONAL] if report.provisional else []
    return Document(
        title="What it cost",
        label=report.label,
        today=f"{report.today}",
        total=Total(
            text=money(report.billed, headline_places(report.billed)),
            exact=cost.exact(report.billed),
            currency=report.currency,
            against=against,
        ),
        badges=tuple(badges),
        story=story,
        actions=todo,
        sections=sections,
    )


def sentences(report: Report) -> list[str]:
    """Return the first sentences: what it cost, on what, whose, and whether it adds up."""
    places = headline_places(report.billed)

    def said(amount: Decimal) -> str:
        return f"{money(amount, places)} {report.currency}"

    months = listed(report.periods) or "an unknown month"
    told = [f"The bill of {months} comes to {said(report.billed)}."]
    known = [s for s in report.components() if s.name != Component.OTHER.value and s.billed > 0]
    if known:
        largest = max(known, key=lambda share: share.billed)
        told.append(
            f"The largest of Kafka's parts is {largest.name}: {said(largest.billed)}, "
            f"{percent(largest.billed, report.billed)} of it."
        )
    told.append(_attribution(report, said))
    if report.bad_rows:
        told.append(cost.unread(report))
    return told


def _attribution(report: Report, said: Callable[[Decimal], str]) -> str:
    if all(line.attribution is Attribution.NOBODY for line in report.lines):
        return (
            f"No charge carries the tag {CLUSTER_TAG}, so whose it is remains unknown; activate "
            f"{CLUSTER_TAG} and {POOL_TAG} as cost allocation tags."
        )
    pools = report.attributed(Attribution.NODE_POOL)
    shared = report.attributed(Attribution.CLUSTER)
    nobody = report.attributed(Attribution.NOBODY)
    rest = f"{said(nobody)} to nobody that a tag names" if nobody else "nothing is unattributed"
    return (
        f"{said(pools)} belongs to Kafka's node pools and {said(shared)} to a cluster as a whole; "
        f"{rest}."
    )


def _more(evidence: Evidence, todo: tuple[Action, ...]) -> list[str]:
    """Return what the other tables add to the story."""
    currency = evidence.report.currency
    told: list[str] = []
    rotated = resync.section(evidence)
    if rotated is not None:
        told += rotated.sentences[:2]
    saved = actions.saving(todo)
    if saved:
        told.append(f"The things to do below would save {dollars(saved)} {currency} a month.")
    elif evidence.storage or evidence.transfer:
        told.append("Nothing was found that would save a dollar a month or more.")
    return [*told, *evidence.notes]
