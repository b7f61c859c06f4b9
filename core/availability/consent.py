"""Decides which Kafka nodes may go, which are back for good, and which broker leads what.

Asked before a drain, of a reading taken with the lease held: one node, or brokers that go together,
in one pass over the partitions. Racks are not trusted: the replicas decide, and no replica outside
the party may be out of sync. A refusal names the partition, broker or voter, and the remedy.
A leader moves for good only when the order of the replicas changes; `plan` compares the order
wanted with the order read, so asking twice changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from core.ground.window import clock
from core.ground.words import id_list
from core.views import ClusterView, PartitionView, Verdict

NOBODY: frozenset[int] = frozenset()
_CATCH_UP = "wait until its other replicas have caught up"
_ONE_BY_ONE = "let one of them go after the other, each when the last is back"


def may_leave(
    broker_id: int,
    cluster: ClusterView,
    *,
    isr_margin: int = 1,
    beside: frozenset[int] = NOBODY,
    even_last: bool = False,
) -> Verdict:
    """Say whether a Kafka node may stop now: the set of one, and of those `beside` it.

    `beside` are brokers that are out, or about to be, together with it.
    """
    leaving = beside | {broker_id}
    return may_leave_together(leaving, cluster, isr_margin=isr_margin, even_last=even_last)


def may_leave_together(
    leaving: frozenset[int], cluster: ClusterView, *, isr_margin: int = 1, even_last: bool = False
) -> Verdict:
    """Say whether Kafka nodes may be away at the same time, and nothing suffers for it.

    Without them, every partition they hold must keep `min.insync.replicas + isr_margin` members in
    sync, or all its replicas but one where the replication factor allows no more. A partition whose
    replication factor does not exceed its minimum cannot be kept writable; no less is asked of it,
    so that a minimum which is raised lets nobody go. One with a single replica never blocks. A node
    that is in both roles, or in one, is asked about each role it has, and a controller never goes
    with another node. Brokers that are fenced and hold nothing, and partitions that only removed
    brokers had, stop nobody: core.rotation.plan names them. Some of the set may be out already;
    anybody else may not.

    `even_last` lets the last in-sync replica of a partition that cannot be kept go while another is
    behind, and says so: AWS takes the machine, and every other rule holds.

    Source: KafkaAvailability and KafkaQuorumCheck (Strimzi 1.x), made stricter by `isr_margin` and
    by refusing while any other broker is out.
    """
    held = _held_partitions(leaving, cluster)
    at_risk = cluster.risky_partitions(*leaving) if len(leaving) == 1 else held
    refusal = next(_refusals(leaving, cluster, at_risk, isr_margin, even_last=even_last), None)
    if refusal:
        return Verdict(allowed=False, reason=refusal)
    it, its, them = ("it", "its", "it") if len(leaving) == 1 else ("they", "their", "them")
    lost = [p for p in at_risk if not p.keepable]
    kept = f"all {its} {len(held)} partitions stay in sync without {them}"
    if leaving <= cluster.fenced:
        be = "is" if len(leaving) == 1 else "are"
        kept = f"{it} {be} fenced, so none of {its} partitions loses anything"
    elif lost:
        kept = (
            f"{len(held) - len(lost)} of {its} {len(held)} partitions stay in sync without {them}; "
            f"the rest cannot stay writable, among them {lost[0].name},"
        )
    alone = [p for p in lost if _is_last_in_sync(leaving, p)]
    if alone and not leaving <= cluster.fenced:
        kept = (
            f"{kept} it is the last in-sync replica of {len(alone)} partitions, which are offline "
            f"until it is back, among them {alone[0].name},"
        )
    return Verdict(
        allowed=True, reason=f"{_may(leaving)}: {kept} and the quorum keeps its majority."
    )


def _held_partitions(leaving: frozenset[int], cluster: ClusterView) -> tuple[PartitionView, ...]:
    """Return the partitions that any of these nodes has a replica of."""
    if len(leaving) == 1:
        return cluster.held_by(*leaving)
    return tuple(p for p in cluster.partitions if not leaving.isdisjoint(p.replicas))


def needed_in_sync(partition: PartitionView, isr_margin: int) -> int:
    """Return how many members in sync a partition must keep when brokers of it go; 0: it asks none.

    One without a leader is judged apart (`ClusterView.offline`).
    """
    if partition.leader is None:
        return 0
    return min(partition.min_isr + isr_margin, len(partition.replicas) - 1)


def breaks(leaving: AbstractSet[int], partition: PartitionView, isr_margin: int) -> bool:
    """Say whether a partition on one of these brokers would keep too few members in sync."""
    left = sum(replica not in leaving for replica in partition.isr)
    return left < needed_in_sync(partition, isr_margin)


def _may(leaving: Iterable[int], verb: str = "may leave") -> str:
    ids = sorted(leaving)
    return f"Node {ids[0]} {verb}" if len(ids) == 1 else f"Nodes {id_list(ids)} {verb} together"


def _refusals(
    leaving: frozenset[int],
    cluster: ClusterView,
    at_risk: Iterable[PartitionView],
    isr_margin: int,
    *,
    even_last: bool,
) -> Iterator[str]:
    """Yield reasons to refuse, the gravest first."""
    may_not = _may(leaving, "may not leave")
    if cluster.lacks_quorum:
        # A broker told to stop without a quorum hangs until one returns (measured: > 48 s).
        yield f"{may_not}: the controllers have no quorum; bring a majority of them back first."
        return
    if cluster.doubts:
        whether = _may(leaving)
        yield f"Whether {whether[0].lower()}{whether[1:]} is unknown. {cluster.doubt}"
        return
    yield from _quorum_refusals(leaving, cluster)
    for other in sorted(cluster.out - leaving):
        how = "fenced" if other in cluster.brokers else "not registered"
        second = "a second broker" if len(leaving) == 1 else "another broker"
        yield (
            f"{may_not}: broker {other} is {how}, and {second} must "
            f"not be out at the same time; wait until it has registered again."
        )
    if leaving <= cluster.fenced:
        # They serve nothing already: no partition loses anything by their departure. A rotation,
        # which nothing hurries, asks more of it (preconditions).
        return
    for partition in cluster.offline:
        whom = id_list(partition.eligible or partition.replicas)
        complete = " which hold all of it" if partition.eligible else ""
        yield (
            f"{may_not}: partition {partition.name} is offline; bring one of "
            f"its replicas {whom}{complete} back first."
        )
    for partition in at_risk:
        if not (even_last and _is_last_in_sync(leaving, partition)) and breaks(
            leaving, partition, isr_margin
        ):
            yield f"{may_not}: {_breach_sentence(leaving, partition, isr_margin)}"


def _is_last_in_sync(leaving: AbstractSet[int], partition: PartitionView) -> bool:
    """Say whether nobody else is in sync with a partition that nobody can keep writable."""
    factor = len(partition.replicas)
    return 1 < factor <= partition.min_isr and bool(partition.isr) and leaving >= set(partition.isr)


def _breach_sentence(leaving: AbstractSet[int], partition: PartitionView, isr_margin: int) -> str:
    """Say what a partition would be left with; it breaks."""
    left = sorted(set(partition.isr) - leaving)
    if not partition.keepable and not left:
        if len(leaving) == 1:
            lagging = id_list([r for r in partition.replicas if r not in leaving])
            return (
                f"it is the last in-sync replica of partition {partition.name}, and "
                f"{lagging} is behind; wait until another has caught up."
            )
        return f"partition {partition.name} has no in-sync replica but on them; {_ONE_BY_ONE}."
    behind = set(partition.replicas) - leaving - set(partition.isr)
    remedy = _ONE_BY_ONE if len(leaving) > 1 and not behind else _CATCH_UP
    return (
        f"partition {partition.name} would keep {len(left)} in-sync replicas ({id_list(left)}) of "
        f"{len(partition.replicas)}, and it needs {needed_in_sync(partition, isr_margin)} "
        f"(min.insync.replicas {partition.min_isr}, margin {isr_margin}); {remedy}."
    )


def _quorum_refusals(leaving: frozenset[int], cluster: ClusterView) -> Iterator[str]:
    voters = cluster.voters
    voting = sorted(leaving & {voter.node_id for voter in voters})
    if not voting:
        return
    if len(leaving) > 1:
        yield (
            f"{_may(leaving, 'may not leave')}: controllers go one by one, and {id_list(voting)} "
            f"{'is one' if len(voting) == 1 else 'are'}; wait until the others are back."
        )
        return
    others = [voter for voter in voters if voter.node_id not in leaving]
    caught_up = [voter.node_id for voter in others if voter.caught_up]
    # A majority of all voters. Two voters have none without each other: then the other one must
    # be caught up, and a single voter cannot be kept (as KafkaQuorumCheck decides).
    needed = min(len(voters) // 2 + 1, len(others))
    if len(caught_up) < needed:
        lagging = [voter.node_id for voter in others if not voter.caught_up]
        yield (
            f"{_may(leaving, 'may not leave')}: of the {len(voters)} controllers only "
            f"{id_list(caught_up)} would be left caught up, and the quorum needs {needed}; wait "
            f"for {id_list(lagging)} to catch up."
        )


# Broker -> partitions.
_Held = Mapping[int, Sequence[PartitionView]]


def parting(
    node_id: int, party: AbstractSet[int], cluster: ClusterView, *, isr_margin: int
) -> PartitionView | None:
    """Return a partition that breaks if a broker goes with a party; None: it may join."""
    together = {node_id, *party}
    held = cluster.held_by(node_id)
    return next((p for p in held if breaks(together, p, isr_margin)), None)


def parties(
    node_ids: Sequence[int], cluster: ClusterView, *, isr_margin: int, most: int | None = None
) -> tuple[tuple[int, ...], ...]:
    """Return the brokers of one zone in parties; each in its turn takes all it can."""
    left, found = list(node_ids), []
    contested = _contested_partitions(node_ids, cluster)
    while left:
        members = _largest_party(left[0], left[1:], contested, isr_margin, most)
        found.append(members)
        left = [node_id for node_id in left if node_id not in members]
    return tuple(found)


def _largest_party(
    first: int, others: Iterable[int], contested: _Held, isr_margin: int, most: int | None
) -> tuple[int, ...]:
    """Return a broker and all who may be away with it; none more could be added below `most`.

    A broker that may not even leave by itself has no company.
    """

    def parted(node_id: int, members: Iterable[int]) -> bool:
        together = {node_id, *members}
        return any(breaks(together, p, isr_margin) for p in contested.get(node_id, ()))

    members = [first]
    if parted(first, ()):
        return (first,)
    for node_id in others:
        if most is not None and len(members) >= most:
            break
        if not parted(node_id, members):
            members.append(node_id)
    return tuple(members)


def _contested_partitions(node_ids: Iterable[int], cluster: ClusterView) -> _Held:
    """Return, by broker, the partitions that the absence of some of these may break.

    One with every replica in sync and only one of them among these brokers is none: it keeps all
    but that one, and no rule asks for more. So of a zone that is a rack of its own nothing is left
    to look at but what is out of sync.
    """
    ids = set(node_ids)
    once: set[int] = set()
    found: dict[int, PartitionView] = {}
    for node_id in ids:
        for partition in cluster.held_by(node_id):
            key = id(partition)
            if key in once or len(partition.isr) < len(partition.replicas):
                found[key] = partition
            once.add(key)
    held: dict[int, list[PartitionView]] = {}
    for partition in found.values():
        for node_id in ids.intersection(partition.replicas):
            held.setdefault(node_id, []).append(partition)
    return held


# Three even zones come to 1.5, and to 2.0 where one zone stands in for another alone, as one of two
# does; a quarter more is for zones that are not quite even. Beyond that a placement leans on one.
MOST_TIMES = 2.5


def successor(partition: PartitionView, leaving: Collection[int]) -> int | None:
    """Return who leads once those that leave do not, as core.availability.consent orders it."""
    if partition.leader not in leaving:
        return partition.leader
    return next((r for r in partition.replicas if r in partition.isr and r not in leaving), None)


def too_much(
    leaving: Collection[int], cluster: ClusterView, zone_of: Mapping[int, str]
) -> str | None:
    """Say which zone would lead more than it may without the brokers that leave; None: none."""
    today = Counter(p.leader for p in cluster.partitions if p.leader is not None)
    gained: Counter[int] = Counter()
    for partition in cluster.partitions:
        if partition.leader in leaving:
            heir = successor(partition, leaving)
            if heir is not None:
                gained[heir] += 1
    staying: dict[str, list[int]] = {}
    for broker_id in sorted(cluster.brokers - cluster.fenced - set(leaving)):
        staying.setdefault(zone_of.get(broker_id, ""), []).append(broker_id)
    fair = sum(today.values()) / max(len(cluster.brokers), 1)
    for zone, brokers in sorted(staying.items()):
        led, more = (sum(count[b] for b in brokers) for count in (today, gained))
        if led + more > MOST_TIMES * max(led, fair * len(brokers)):
            where = f"the brokers that stay in {zone}" if zone else "the brokers that stay"
            return (
                f"Without them {where} would lead {led + more} partitions instead of {led}, more "
                f"than {MOST_TIMES:g} times as many. Spread preferred leaders over more zones, or "
                "take fewer at once."
            )
    return None


def outsider_missing(party: frozenset[int], kafka: ClusterView) -> str | None:
    """Name a replica out of sync that is on none of these brokers; None: there is none."""
    for partition in kafka.out_of_sync:
        others = sorted(set(partition.replicas) - set(partition.isr) - party)
        if others:
            return f"Broker {others[0]} is not in the ISR of partition {partition.name}."
    return None


def is_back(
    node_id: int, cluster: ClusterView, *, back_since: float | None, now: float, hold_seconds: float
) -> Verdict:
    """Say whether a node that left has fully returned, and stayed for `hold_seconds`.

    `back_since` is since when readings have shown it returned (`has_returned` below). Ready is not
    enough: a broker is unfenced long before it is in sync, and may be fenced again 20-50 s after it
    rejoined (strimzi#11736), so its ISR membership is read from the leaders and must last.
    """
    missing = check_returned(node_id, cluster)
    if not missing.allowed:
        return missing
    held_seconds = now - (now if back_since is None else back_since)
    if held_seconds < hold_seconds:
        return Verdict(
            allowed=False,
            reason=f"Node {node_id} is back in every ISR since {held_seconds:.0f} s; it must stay "
            f"for {hold_seconds:.0f} s before the next may leave.",
        )
    return Verdict(
        allowed=True, reason=f"Node {node_id} is back in every ISR since {held_seconds:.0f} s."
    )


def check_returned(node_id: int, cluster: ClusterView) -> Verdict:
    """Say whether this one reading shows the node registered, in every ISR and caught up."""
    reason = next(_absences(node_id, cluster), None)
    if reason:
        return Verdict(allowed=False, reason=reason)
    return Verdict(allowed=True, reason=f"Node {node_id} is back in every ISR.")


def _absences(node_id: int, cluster: ClusterView) -> Iterator[str]:
    if cluster.lacks_quorum:
        yield f"Whether node {node_id} is back is unknown: the controllers have no quorum."
        return
    if cluster.doubts:
        yield f"Whether node {node_id} is back is unknown. {cluster.doubt}"
        return
    voter = next((v for v in cluster.voters if v.node_id == node_id), None)
    held = cluster.held_by(node_id)
    if voter is None or held or node_id in cluster.brokers:
        if node_id not in cluster.brokers and (held or voter is not None):
            yield f"Broker {node_id} has not registered yet."
        elif node_id not in cluster.brokers:
            # Which of the two it is to be, nobody says here.
            yield f"Node {node_id} has not registered as a broker yet, nor has it a vote."
        elif node_id in cluster.fenced:
            yield f"Broker {node_id} is registered and still fenced."
    if voter is not None and not voter.caught_up:
        yield f"Controller {node_id} has not caught up with the quorum's leader."
    behind = [p.name for p in held if node_id not in p.isr]
    if behind:
        yield (
            f"Broker {node_id} is not yet in the ISR of {len(behind)} of its {len(held)} "
            f"partitions, among them {behind[0]}."
        )


Order = tuple[int, ...]
Partition = tuple[str, int]  # topic, number


@dataclass(frozen=True, slots=True)
class LeaderPlan:
    """Replica orders to write, partitions whose first replica is then to lead, and what to keep."""

    orders: Mapping[Partition, Order]
    elect: frozenset[Partition]
    original: Mapping[Partition, Order]  # of every partition whose order is not its own


def plan(
    partitions: Iterable[PartitionView],
    original: Mapping[Partition, Order],
    avoid: frozenset[int],
    moving: AbstractSet[str] = frozenset(),
) -> LeaderPlan:
    """Return what makes others than `avoid` lead, and gives back what nobody avoids any more.

    A partition is left alone where no replica outside `avoid` is in sync, and while it is among
    those `moving` to other brokers: another order would be its new target, old replicas and all.
    One whose replicas were moved to other brokers meanwhile is taken as it is now.
    """
    orders: dict[Partition, Order] = {}
    elect: set[Partition] = set()
    kept: dict[Partition, Order] = {}
    for partition in partitions:
        key = (partition.topic, partition.partition)
        own = original.get(key, partition.replicas)
        if moving and partition.name in moving:
            if key in original:
                kept[key] = own
            continue
        if set(own) != set(partition.replicas):
            own = partition.replicas
        wanted = _away_from(avoid, own, partition.isr)
        if wanted != partition.replicas:
            orders[key] = wanted
        if wanted != own:
            kept[key] = own
        touched = key in original or key in kept or partition.leader in avoid
        if touched and partition.leader != wanted[0] and wanted[0] in partition.isr:
            elect.add(key)
    return LeaderPlan(orders, frozenset(elect), kept)


def _away_from(avoid: frozenset[int], order: Order, isr: Sequence[int]) -> Order:
    """Return the replicas with those to avoid last; the others keep their order, in sync first."""
    if order[0] not in avoid or not set(isr) - avoid:
        return order
    return tuple(sorted(order, key=lambda b: (b in avoid, b not in isr)))


# Sources that say more than "leave it alone": the zone, or all of it that is ours, is in trouble.
HEALTH_ISSUE = "health_issue"
LOST_ZONE = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """One zone in which nothing is planned until further notice."""

    zone_id: str  # use1-az2: the same physical zone in every account
    zone: str | None  # us-east-1a: this account's name for it; None until EC2 was asked
    since: float  # epoch seconds
    until: float | None  # when it ends by itself; None: when it is called off
    source: str  # who says so, for instance "autoshift"

    def holds(self, now: float) -> bool:
        """Say whether the freeze is in force."""
        return self.until is None or now < self.until

    @property
    def sentence(self) -> str:
        named = self.zone or self.zone_id
        return f"Zone {named} is frozen since {clock(self.since)} ({self.source})."


def freeze_of(zone: str | None, freezes: Sequence[Freeze], now: float) -> Freeze | None:
    """Return the freeze in force in a zone, by its name."""
    return next((f for f in freezes if zone is not None and f.zone == zone and f.holds(now)), None)
