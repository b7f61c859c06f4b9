"""May these Kafka nodes go? Asked before a node is drained, of a reading taken with the lease held.

One node or a set of brokers that go together: the same rule, of the same one pass over partitions.
A refusal names the partition, broker or voter that refuses, and what to wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from core.views import ClusterView, PartitionView, Verdict, id_list

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
    leaving: frozenset[int],
    cluster: ClusterView,
    *,
    isr_margin: int = 1,
    even_last: bool = False,
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
    at_risk = cluster.at_risk_on(*leaving) if len(leaving) == 1 else held
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
            f"nobody can keep the rest writable, among them {lost[0].name},"
        )
    alone = [p for p in lost if _is_last_in_sync(leaving, p)]
    if alone and not leaving <= cluster.fenced:
        kept = (
            f"{kept} it is the last in-sync replica of {len(alone)} partitions, which are offline "
            f"until it is back, among them {alone[0].name},"
        )
    return Verdict(
        allowed=True,
        reason=f"{_may(leaving)}: {kept} and the quorum keeps its majority.",
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
    if cluster.without_quorum:
        # A broker told to stop without a quorum hangs until one returns (measured: > 48 s).
        yield (f"{may_not}: the controllers have no quorum; bring a majority of them back first.")
        return
    if cluster.doubts:
        whether = _may(leaving)
        yield f"Whether {whether[0].lower()}{whether[1:]} cannot be told. {cluster.doubt}"
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
        f"partition {partition.name} would keep "
        f"{len(left)} in-sync replicas ({id_list(left)}) of {len(partition.replicas)}, and it "
        f"needs {needed_in_sync(partition, isr_margin)} "
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
