"""The story, told before its evidence: what Kafka cost, what changed, what to do about it.

Kafka's is what a tag, a known resource or the ledger says is. The rest of a bill is not ours to
explain: it stands apart, and where nothing is known to be Kafka's the report says what it found and
asks.
"""

from __future__ import annotations

from spark.report import actions
from spark.report.cells import exact
from spark.report.document import Action, Document, Total, legible
from spark.report.evidence import Evidence, month_comparison
from spark.report.model import Report
from spark.report.sections import (
    changes,
    cost,
    economics,
    nodes,
    others,
    resync,
    storage,
    transfer,
    unit,
)
from spark.report.words import cents, count, dollars, enumeration, most, percent
from spark.transforms.attribute import Attribution
from spark.transforms.classify import Component

SIMULATED = "Simulated: written by the local twin for what it ran; nobody was charged"
PROVISIONAL = "Provisional: AWS may still correct this month"
CLUSTERS_NAMED = 5
BY_THE_MONTH = (
    "Every charge stands on the first day of its month, as in an export by the month: nothing is "
    "said of single days, of what a unit cost, or of a volume's size."
)
ENDS_EARLY = (
    "The last charge on this bill is of {}, though its month is over: either nothing was bought "
    "since, or the bill was exported before the month ended and holds a part of it."
)
UNNAMED = "system nodes, taxes, fees, and meters that this report does not tell apart"


def report_document(evidence: Evidence) -> Document:
    """Return the whole report of a month."""
    report = evidence.report
    todo = actions.chosen_actions(evidence)
    comparison = month_comparison(evidence)
    against = changes.against(comparison) if comparison else ""
    sections = [
        others.which_tag(evidence),
        changes.section(evidence),
        cost.section(report),
        nodes.section(evidence),
        transfer.section(evidence),
        storage.section(evidence),
        resync.section(evidence),
        economics.section(evidence),
        unit.section(evidence),
        others.easy(evidence),
        others.section(report),
        cost.unreadable(report),
    ]
    badges = [SIMULATED] if report.simulated else []
    badges += [PROVISIONAL] if report.provisional else []
    shown = report.kafkas if report.has_kafka else report
    document = Document(
        title="What Kafka cost" if report.has_kafka else "What is on the bill",
        label=report.label,
        today=f"{report.today}",
        total=Total(
            text=cents(shown.billed, report.currency),
            exact=exact(report.billed),
            currency=report.currency,
            against=against,
            kafka=exact(shown.billed) if report.has_kafka else "",
        ),
        badges=tuple(badges),
        story=(*sentences(report), *_more(evidence, todo)),
        actions=todo,
        sections=tuple(section for section in sections if section is not None),
    )
    return legible(document)


def sentences(report: Report) -> list[str]:
    """Return the first sentences: what it cost, on what, whose, and whether it adds up."""
    currency = report.currency
    months = enumeration(report.periods) or "an unknown month"
    # Of what an unread row costs nobody knows even the sign, of some not even the month.
    known = "" if report.is_whole else ", as far as it can be read"
    told = [f"The bill of {months} comes to {cents(report.billed, currency)} {currency}{known}."]
    told += _of_kafka(report) if report.has_kafka else _of_nobody(report)
    told += _run_by_aws(report.others)
    return told + cost.unread_sentences(report)


def _of_kafka(report: Report) -> list[str]:
    """Say what is Kafka's, by what, and that the rest is not ours to explain."""
    kafka, currency = report.kafkas, report.currency
    pools = kafka.attributed(Attribution.NODE_POOL)
    shared = kafka.attributed(Attribution.CLUSTER)
    told = [
        (
            f"{cents(kafka.billed, currency)} {currency} of it is Kafka's{_cluster_names(report)}: "
            f"{cents(pools, currency)} of its node pools, {cents(shared, currency)} of a cluster "
            f"as a whole."
        )
    ]
    told += _largest(kafka)
    rest = report.others
    if rest.billed:
        told.append(
            f"The other {cents(rest.billed, currency)} {currency} are not ours to explain: no tag "
            f"{report.tag}, claim or known resource says that they are Kafka's."
        )
    if cents(kafka.amortised, currency) != cents(kafka.billed, currency):
        told.append(
            f"Amortised, with savings plans and reservations spread over the hours that they "
            f"cover, Kafka cost {cents(kafka.amortised, currency)} {currency}."
        )
    return told


def _largest(kafka: Report) -> list[str]:
    """Say what most of it bought; what no meter names is larger at times, and has no name."""
    parts = {share.name: share for share in kafka.components() if share.billed > 0}
    unnamed = parts.pop(Component.OTHER.value, None)
    if not parts:
        return (
            [f"What it bought has no name here: it is under other ({UNNAMED})."] if unnamed else []
        )
    largest = max(parts.values(), key=lambda share: share.billed)
    # Beside credits and discounts a part may come to more than the whole.
    is_share = largest.billed <= kafka.billed
    share = f", {percent(largest.billed, kafka.billed)} of what Kafka cost" if is_share else ""
    amount = f"{cents(largest.billed, kafka.currency)} {kafka.currency}{share}"
    if unnamed is None or unnamed.billed <= largest.billed:
        return [f"The largest of Kafka's parts is {largest.name}: {amount}."]
    return [
        (
            f"Of the parts that have a name here the largest is {largest.name}: {amount}. More, "
            f"{cents(unnamed.billed, kafka.currency)} {kafka.currency}, is under other ({UNNAMED})."
        )
    ]


def _cluster_names(report: Report) -> str:
    names = report.clusters
    if not names:
        return ""
    more = len(names) - CLUSTERS_NAMED
    shown = names[:CLUSTERS_NAMED] + ([f"{more} more"] if more > 0 else [])
    return f" ({'cluster' if len(names) == 1 else 'clusters'} {enumeration(shown)})"


def _of_nobody(report: Report) -> list[str]:
    return [
        (
            f"Nothing on it is known to be Kafka's: no charge is seen to carry the tag "
            f"{report.tag}. Name the tag that means Kafka with --cluster-tag KEY or "
            f"--cluster-tag KEY=VALUE."
        )
    ]


def _run_by_aws(others: Report) -> list[str]:
    """Name Amazon MSK, which is Kafka as well."""
    parts = {share.name: share.billed for share in others.components()}
    billed = parts.get(Component.MANAGED_KAFKA.value)
    if not billed:
        return []
    amount = f"{cents(billed, others.currency)} {others.currency}"
    return [f"Of what no tag names {amount} are Amazon MSK's, Kafka that AWS runs itself."]


def _more(evidence: Evidence, todo: tuple[Action, ...]) -> list[str]:
    """Return what the other tables add to the story."""
    currency = evidence.report.currency
    told: list[str] = []
    rotated = resync.section(evidence)
    if rotated is not None:
        told += rotated.sentences[:2]
    counted = [each for each in todo if each.is_kafkas or not evidence.report.has_kafka]
    saved = actions.saving(counted)
    if saved.usd:
        one = "; of those that exclude each other one is counted" if saved.excluded else ""
        which = "The things to do below" if len(counted) == len(todo) else "Kafka's things to do"
        amount = f"{most(saved.at_most)}{dollars(saved.usd, currency)} {currency}"
        told.append(f"{which} would save {amount} a month{one}.")
    elif evidence.storage or evidence.transfer:
        told.append(f"Nothing was found that would save 1 {currency} a month or more.")
    strangers = [each for each in evidence.easy if not each.is_kafkas and each.saving >= 1]
    if strangers and evidence.report.has_kafka:
        dearest = max(strangers, key=lambda each: each.saving)
        told.append(
            f"Of what is not Kafka's {count(len(strangers), 'meter')} would be worth a look; the "
            f"dearest is {dearest.easy.value}, {dollars(dearest.usd, currency)} {currency}."
        )
    by_the_month = [BY_THE_MONTH] if evidence.is_by_the_month else []
    early = [ENDS_EARLY.format(evidence.ends_early)] if evidence.ends_early else []
    return [*told, *by_the_month, *early, *evidence.notes]
