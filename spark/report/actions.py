"""Chooses at most three actions: findings by their saving, then missing inputs.

Savings are a month's, at list price or at the bill's own; each names the rows it is made of. What
has no figure comes last and says so: a report that always finds three things is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from core.cost.economics import EBS, IN_PLACE
from core.cost.pricing import total
from core.ground.naming import CLUSTER_TAG, POOL_TAG, REPLICA_SELECTOR
from spark.months import first_day_after
from spark.report.document import TEXTS, Action, slug
from spark.report.evidence import Evidence
from spark.report.sections.cost import easy_key
from spark.report.words import count, dollars, enumeration, most, percent
from spark.rows import Found
from spark.rules.meters import Certainty, Easy
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
