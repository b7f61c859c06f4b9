"""Assembles the report: its total, its summary, its actions, and the sections behind them.

Kafka's is what a tag, a known resource or the ledger says is. The rest of a bill is not ours to
explain: it stands apart, and where nothing is known to be Kafka's the report says what it found and
asks.
"""

from __future__ import annotations

from datetime import date

from spark.report import actions
from spark.report.document import Action, Document, Total, exact, legible
from spark.report.evidence import Evidence, Report, month_comparison
from spark.report.sections import (
    changes,
    cost,
    economics,
    nodes,
    resync,
    storage,
    transfer,
    unit,
)
from spark.report.words import cents, count, dollars, enumeration, most, percent
from spark.rules.meters import Attribution, Component

SIMULATED = "Simulated: the local twin wrote this bill; AWS charges nothing"
PROVISIONAL = "Provisional: AWS may still correct this month"
CLUSTERS_NAMED = 5
BY_THE_MONTH = (
    "Every charge is on the first day of its month, so the report has no days, unit costs or "
    "volume sizes."
)
ENDS_EARLY = (
    "The last charge on this bill is of {}, before the end of its month; the export may be "
    "incomplete."
)
UNNAMED = "system nodes, taxes, fees and unknown meters"


def report_document(evidence: Evidence) -> Document:
    """Return the whole report of a month."""
    report = evidence.report
    todo = actions.chosen_actions(evidence)
    comparison = month_comparison(evidence)
    against = changes.against(comparison, report.currency) if comparison else ""
    sections = [
        cost.which_tag(evidence),
        changes.section(evidence),
        cost.section(report),
        nodes.section(evidence),
        transfer.section(evidence),
        storage.section(evidence),
        resync.section(evidence),
        economics.section(evidence),
        unit.section(evidence),
        cost.easy(evidence),
        cost.others(report),
        cost.unreadable(report),
    ]
    badges = [SIMULATED] if report.simulated else []
    badges += [PROVISIONAL] if report.provisional else []
    shown = report.kafkas if report.has_kafka else report
    document = Document(
        title=f"{'Kafka' if report.has_kafka else 'AWS'} cost report, {_months(report)}",
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


def _months(report: Report) -> str:
    """Return the months of a bill by name."""
    named = [f"{date.fromisoformat(f'{period}-01'):%B %Y}" for period in report.periods]
    return enumeration(named) or "unknown month"


def sentences(report: Report) -> list[str]:
    """Return the first sentences: what it cost, on what, whose, and whether it adds up."""
    currency = report.currency
    months = enumeration(report.periods) or "an unknown month"
    # The cost of an unread row may have either sign and belong to any month.
    known = "" if report.is_whole else " in its readable rows"
    told = [f"The bill of {months} is {cents(report.billed, currency)} {currency}{known}."]
    told += _of_kafka(report) if report.has_kafka else _of_nobody(report)
    told += _run_by_aws(report.others)
    return told + cost.unread_sentences(report)


def _of_kafka(report: Report) -> list[str]:
    """Say what is Kafka's, by what, and that the rest is not ours to explain."""
    kafka, currency = report.kafkas, report.currency
    pools = kafka.attributed(Attribution.NODE_POOL)
    shared = kafka.attributed(Attribution.CLUSTER)
    told = [
        f"Kafka costs {cents(kafka.billed, currency)} {currency}{_cluster_names(report)}.",
        (
            f"Node pools cost {cents(pools, currency)} {currency}; charges of a whole cluster cost "
            f"{cents(shared, currency)} {currency}."
        ),
    ]
    told += _largest(kafka)
    rest = report.others
    if rest.billed:
        told.append(
            f"{cents(rest.billed, currency)} {currency} is not attributed to Kafka: no tag "
            f"{report.tag}, claim or known resource."
        )
    if cents(kafka.amortised, currency) != cents(kafka.billed, currency):
        told.append(
            f"Kafka's amortised cost, with savings plans and reservations, is "
            f"{cents(kafka.amortised, currency)} {currency}."
        )
    return told


def _largest(kafka: Report) -> list[str]:
    """Say what most of it bought; what no meter names is larger at times, and has no name."""
    parts = {share.name: share for share in kafka.components() if share.billed > 0}
    unnamed = parts.pop(Component.OTHER.value, None)
    if not parts:
        return [f"All of Kafka's cost is in the component other ({UNNAMED})."] if unnamed else []
    largest = max(parts.values(), key=lambda share: share.billed)
    # Beside credits and discounts a part may come to more than the whole.
    is_share = largest.billed <= kafka.billed
    share = f" ({percent(largest.billed, kafka.billed)} of Kafka's cost)" if is_share else ""
    amount = f"{cents(largest.billed, kafka.currency)} {kafka.currency}{share}"
    if unnamed is None or unnamed.billed <= largest.billed:
        return [f"The largest component is {largest.name} with {amount}."]
    return [
        f"The largest named component is {largest.name} with {amount}.",
        (
            f"The component other ({UNNAMED}) is larger: {cents(unnamed.billed, kafka.currency)} "
            f"{kafka.currency}."
        ),
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
        f"No charge has Kafka's tag {report.tag}.",
        "Name Kafka's tag with --cluster-tag KEY or --cluster-tag KEY=VALUE.",
    ]


def _run_by_aws(others: Report) -> list[str]:
    """Name Amazon MSK, which is Kafka as well."""
    parts = {share.name: share.billed for share in others.components()}
    billed = parts.get(Component.MANAGED_KAFKA.value)
    if not billed:
        return []
    amount = f"{cents(billed, others.currency)} {others.currency}"
    return [f"Amazon MSK costs {amount} without a Kafka tag."]


def _more(evidence: Evidence, todo: tuple[Action, ...]) -> list[str]:
    """Return what the other tables add to the story."""
    currency = evidence.report.currency
    told: list[str] = []
    rotated = resync.section(evidence)
    if rotated is not None:
        told += rotated.sentences[:3]
    counted = [each for each in todo if each.is_kafkas or not evidence.report.has_kafka]
    saved = actions.saving(counted)
    if saved.usd:
        which = "The actions save" if len(counted) == len(todo) else "Kafka's actions save"
        amount = f"{most(saved.at_most)}{dollars(12 * saved.usd, currency)} {currency}"
        told.append(f"{which} {amount} a year.")
        if saved.excluded:
            told.append("This sum counts one of the actions that exclude each other.")
    elif evidence.storage or evidence.transfer:
        told.append(f"No action saves 1 {currency} a month or more.")
    strangers = [each for each in evidence.easy if not each.is_kafkas and each.saving >= 1]
    if strangers and evidence.report.has_kafka:
        dearest = max(strangers, key=lambda each: each.saving)
        told.append(
            f"{count(len(strangers), 'meter has', 'meters have')} possible savings outside Kafka."
        )
        told.append(
            f"The largest of them is {dearest.easy.value} with {dollars(dearest.usd, currency)} "
            f"{currency}."
        )
    by_the_month = [BY_THE_MONTH] if evidence.is_by_the_month else []
    early = [ENDS_EARLY.format(evidence.ends_early)] if evidence.ends_early else []
    return [*told, *by_the_month, *early, *evidence.notes]
