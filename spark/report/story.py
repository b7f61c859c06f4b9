"""Assembles the report: its total, its summary, its actions, and the sections behind them.

Kafka's is what a tag, a known resource or the ledger says is. The rest of a bill is not ours to
explain: it stands apart, and where nothing is known to be Kafka's the report says what it found and
asks.

At most three actions are chosen: findings by their saving, then missing inputs. Savings are a
month's, at list price or at the bill's own; each names the rows it is made of. What has no figure
comes last and says so: a report that always finds three things is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from core.cost.economics import EBS, IN_PLACE
from core.cost.pricing import total
from core.ground.naming import CLUSTER_TAG, POOL_TAG, REPLICA_SELECTOR
from spark.months import first_day_after
from spark.report.document import (
    TEXTS,
    Action,
    Document,
    Total,
    cents,
    count,
    dollars,
    enumeration,
    exact,
    legible,
    most,
    percent,
    slug,
)
from spark.report.evidence import Evidence, Report, month_comparison
from spark.report.sections import bill, cluster, days
from spark.report.sections.bill import easy_key
from spark.rows import Found
from spark.rules.meters import Attribution, Certainty, Component, Easy
from spark.transforms.grain import EasySaving
from spark.transforms.transfer import MEASURED
from spark.transforms.volumes import Finding

SHOWN = 3
# Less is not worth the hour it takes to do.
LEAST_USD = Decimal(1)
NAMED = 3

VOLUMES_OR_SNAPSHOTS = frozenset({Easy.GP2_VOLUMES, Easy.OLD_VOLUMES, Easy.SNAPSHOTS})

# On local disks there is no volume left to change.
VOLUMES, LOCAL_DISKS = "volumes", "local disks"
_CHANGED = {Finding.MOVE_TO_GP3, Finding.SMALLER, Finding.SLOWER}

_CLIENT_RACK = (
    "set client.rack to the availability zone in every consumer without it. The brokers' "
    "selector is rack-aware already"
)
_SELECTOR = (
    f"remove {REPLICA_SELECTOR} from the ClusterSpec's kafka.config, so that brokers choose by "
    f"rack. Set client.rack to the availability zone in every consumer"
)


@dataclass(frozen=True, slots=True)
class Saving:
    """What several things to do save together; `excluded` where some stand for the same money."""

    usd: Decimal
    at_most: bool
    excluded: bool


def chosen_actions(evidence: Evidence) -> tuple[Action, ...]:
    """Return the things to do, at most three: Kafka's, then what blinds us, then others'.

    What is not known to be Kafka's is never the first of them.
    """
    found = [
        *_of_volumes(evidence.storage, evidence.report.currency),
        *_of_flows(evidence),
        *_of_design(evidence),
        *_easy(evidence, is_kafkas=True),
    ]
    ours = [*_rank(found), *_blind_spots(evidence)]
    others = _rank(_easy(evidence, is_kafkas=False)) if ours else []
    return tuple([*ours, *others][:SHOWN])


def _rank(actions: Iterable[Action]) -> list[Action]:
    worth = [action for action in actions if (action.usd_per_month or 0) >= LEAST_USD]
    return sorted(worth, key=lambda action: (-(action.usd_per_month or 0), action.title))


def saving(actions: Sequence[Action]) -> Saving:
    """Return what they save together: of ways that exclude each other the one that saves most."""
    worth = [action for action in actions if action.usd_per_month]
    ways: dict[str, list[Action]] = {}
    for action in worth:
        ways.setdefault(action.way, []).append(action)
    free = ways.pop("", [])
    best = max(ways.values(), key=lambda way: total(_usd(a) for a in way), default=[])
    counted = [*free, *best]
    return Saving(
        usd=total(_usd(action) for action in counted),
        at_most=any(action.at_most for action in counted),
        excluded=len(ways) > 1,
    )


def _usd(action: Action) -> Decimal:
    return action.usd_per_month or Decimal(0)


def _easy(evidence: Evidence, *, is_kafkas: bool) -> Iterator[Action]:
    """Yield what is paid for and cheap to do without (spark.transforms.grain)."""
    judged = {row.finding for row in evidence.storage}
    currency = evidence.report.currency
    month, so_far = evidence.month, evidence.days_so_far
    whole = 30 if month is None else (first_day_after(month) - timedelta(days=1)).day
    for each in evidence.easy:
        # Kafka's own volumes are judged one by one where the cluster is known.
        known = is_kafkas and judged and each.easy in VOLUMES_OR_SNAPSHOTS
        if each.is_kafkas != is_kafkas or known:
            continue
        whose = "Kafka pays" if is_kafkas else "the bill has, without a Kafka tag,"
        when, rate = "in this month", ""
        if so_far is not None:
            when, rate = (
                f"in {count(so_far, 'day')}",
                ". The figure assumes the same cost for the other days",
            )
        yield Action(
            title=f"Look at {each.easy.value}",
            why=f"{whose} {dollars(each.usd, currency)} {currency} for them {when}. "
            f"{_saving_text(each)}{rate}",
            how=TEXTS["easy"][each.easy],
            evidence=easy_key(each),
            usd_per_month=each.saving if so_far is None else each.saving * whole / so_far,
            is_kafkas=is_kafkas,
            at_most=each.at_most,
        )


def _saving_text(each: EasySaving) -> str:
    """Return the part of its cost that it saves."""
    if each.saving == each.usd:
        return f"The saving is {most(each.at_most)}this amount"
    return f"The saving is {most(each.at_most)}{percent(each.saving, each.usd)} of this amount"


def _of_volumes(storage: Sequence[Found], currency: str) -> Iterator[Action]:
    for found, texts in TEXTS["findings"].items():
        finding = Finding(found)
        rows = [row for row in storage if row.finding == finding.value and row.monthly_saving]
        if not rows:
            continue
        dearest = sorted(rows, key=lambda row: (-row.monthly_saving, row.resource_id))
        noun = "snapshot" if finding is Finding.ORPHAN_SNAPSHOT else "volume"
        yield Action(
            title=texts["title"].format(count(len(rows), noun)),
            why=_why(dearest, currency),
            how=texts["how"],
            evidence=slug("volume", dearest[0].resource_id),
            usd_per_month=total(row.monthly_saving for row in rows),
            way=VOLUMES if finding in _CHANGED else "",
            usd_once=total(row.one_off_cost for row in rows) or None,
        )


def _why(rows: Sequence[Found], currency: str) -> str:
    named = [
        f"{row.resource_id} ({dollars(12 * row.monthly_saving, currency)} {currency} a year)"
        for row in rows[:NAMED]
    ]
    if len(rows) > NAMED:
        named.append(f"{len(rows) - NAMED} more")
    # A sentence begins with a capital, an id never does.
    return f"the rows are {enumeration(named)}"


def _of_flows(evidence: Evidence) -> Iterator[Action]:
    flows = [row for row in evidence.transfer if row.cluster is not None]
    rows = [row for row in flows if row.rack_aware_saving]
    if not rows:
        return
    # On other days nobody counted, and nothing is known of who fetched from where.
    counted = {flow.value for flow in MEASURED}
    length = len({row.day for row in flows if row.flow in counted}) or 30
    saved = total(row.rack_aware_saving for row in rows)
    is_known = all(row.certainty != Certainty.AT_MOST.value for row in rows)
    currency = evidence.report.currency
    yield Action(
        title="Let consumers read from their own zone",
        why=f"consumers read from other zones for {most(not is_known)}{dollars(saved, currency)} "
        f"{currency} in {count(length, 'counted day')}",
        how=_SELECTOR if is_known else _CLIENT_RACK,
        evidence=slug("flow", "consume"),
        usd_per_month=saved * 30 / length,
        at_most=not is_known,
    )


def _of_design(evidence: Evidence) -> Iterator[Action]:
    ebs = next((row for row in evidence.economics if row.design == EBS), None)
    nvme = next((row for row in evidence.economics if row.design != EBS and row.chosen), None)
    if ebs is None or nvme is None:
        return
    way = "Rotations need another procedure"
    if nvme.design == IN_PLACE:
        way = "Plan rotations in place (`stillwater rotate start --in-place`)"
    yield Action(
        title=f"Consider {nvme.brokers} {nvme.instance_type} with local disks",
        why=f"at {ebs.rotations_per_month:.1f} rotations a month the volumes cost more than the "
        f"copies on local disks",
        how="compare it with the hours a month in which partitions miss a replica. It needs a new "
        f"pool. {way}",
        evidence=slug("design", nvme.design),
        usd_per_month=ebs.monthly_cost - nvme.monthly_cost,
        way=LOCAL_DISKS,
    )


def _blind_spots(evidence: Evidence) -> Iterator[Action]:
    """Yield what keeps the report from saying more."""
    if not evidence.report.has_kafka:
        likely = [f"{row.key}={row.value}" for row in evidence.tags if row.names_kafka]
        yield Action(
            title="Name Kafka's tag",
            why="no charge on this bill has Kafka's tag"
            + (f". {enumeration(likely[:NAMED])} may be Kafka's tag" if likely else ""),
            how="pass --cluster-tag KEY or --cluster-tag KEY=VALUE"
            if evidence.tags
            else f"activate {CLUSTER_TAG} and {POOL_TAG} in the Billing console. AWS does not "
            f"back-fill them",
            evidence="tags",
        )
    unmeasured = [row for row in evidence.storage if row.finding == Finding.NOT_MEASURED.value]
    if unmeasured:
        yield Action(
            title="Give the report samples of Prometheus",
            why=f"{count(len(unmeasured), 'volume has', 'volumes have')} no samples",
            how="export a range query and pass it with --metrics",
            evidence="storage",
        )
    largest = sorted(evidence.anomalies, key=lambda row: -abs(row.excess))[:1]
    for row in largest:
        way, currency = ("above" if row.excess > 0 else "below"), evidence.report.currency
        yield Action(
            title=f"Look at {row.component} on {row.day}",
            why=f"{dollars(abs(row.excess), currency)} {currency} {way} the usual cost: "
            f"{row.reason}",
            how="open the day's rows in the usage table",
            evidence=f"anomaly-{row.day}-0",
        )


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
    todo = chosen_actions(evidence)
    comparison = month_comparison(evidence)
    against = days.against(comparison, report.currency) if comparison else ""
    sections = [
        bill.which_tag(evidence),
        days.changes_section(evidence),
        bill.cost_section(report),
        bill.nodes_section(evidence),
        bill.transfer_section(evidence),
        cluster.storage_section(evidence),
        cluster.resync_section(evidence),
        cluster.economics_section(evidence),
        days.unit_section(evidence),
        bill.easy(evidence),
        bill.others(report),
        bill.unreadable(report),
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
    return told + bill.unread_sentences(report)


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
    rotated = cluster.resync_section(evidence)
    if rotated is not None:
        told += rotated.sentences[:3]
    counted = [each for each in todo if each.is_kafkas or not evidence.report.has_kafka]
    saved = saving(counted)
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
