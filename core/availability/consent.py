"""May this Kafka node go? Asked before a node is drained, of a reading taken with the lease held.

A refusal names the partition, broker or voter that refuses, and what to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.views import ClusterView, PartitionView, Verdict, listed


def may_leave(
    broker_id: int,
    cluster: ClusterView,
    *,
    isr_margin: int = 1,
    beside: frozenset[int] = frozenset(),
    even_last: bool = False,
) -> Verdict:
    """Say whether a Kafka node may stop now without a partition or the quorum suffering for it.

    After it has gone, every partition it holds must keep `min.insync.replicas + isr_margin` members
    in sync, or all its other replicas where the replication factor allows no more. A partition
    whose replication factor does not exceed its minimum cannot be kept writable; then one other
    replica in sync is enough, and one that has no other never blocks. A node that is in both roles,
    or in one, is asked about each role it has. Brokers that are fenced and hold nothing, and
    partitions that only removed brokers had, stop nobody: core.rotation.plan names them.

    `beside` are brokers that are out, or about to be, together with it: a run's, of the same zone.
    They may be fenced, must share no partition with it, and a controller never goes with another.
    `even_last` lets the last in-sync replica of such a partition go while another is behind, and
    says so: AWS takes the machine, and every other rule holds.

    Source: KafkaAvailability and KafkaQuorumCheck (Strimzi 1.x), made stricter by `isr_margin` and
    by refusing while any other broker is out.
    """
    refusal = next(_refusals(broker_id, cluster, isr_margin, beside, even_last=even_last), None)
    if refusal:
        return Verdict(allowed=False, reason=refusal)
    held = cluster.held_by(broker_id)
    lost = [p for p in cluster.at_risk_on(broker_id) if not p.keepable]
    kept = f"all its {len(held)} partitions stay in sync without it"
    if broker_id in cluster.fenced:
        kept = "it is fenced, so none of its partitions loses anything"
    elif lost:
        kept = (
            f"{len(held) - len(lost)} of its {len(held)} partitions stay in sync without it; "
            f"nobody can keep the rest writable, among them {lost[0].name},"
        )
    alone = [p for p in lost if _last(broker_id, p)]
    if alone and broker_id not in cluster.fenced:
        kept = (
            f"{kept} it is the last in-sync replica of {len(alone)} partitions, which are offline "
            f"until it is back, among them {alone[0].name},"
        )
    return Verdict(
        allowed=True,
        reason=f"Node {broker_id} may leave: {kept} and the quorum keeps its majority.",
    )


def _refusals(
    node_id: int,
    cluster: ClusterView,
    isr_margin: int,
    beside: frozenset[int],
    *,
    even_last: bool,
) -> Iterator[str]:
    """Yield reasons to refuse, the gravest first."""
    if cluster.without_quorum:
        # A broker told to stop without a quorum hangs until one returns (measured: > 48 s).
        yield (
            f"Node {node_id} may not leave: the controllers have no quorum; bring a majority of "
            f"them back first."
        )
        return
    if cluster.doubts:
        yield f"Whether node {node_id} may leave cannot be told. {cluster.doubt}"
        return
    yield from _quorum_refusals(node_id, cluster)
    yield from _company_refusals(node_id, cluster, beside - {node_id})
    for other in sorted(cluster.out - {node_id} - beside):
        how = "fenced" if other in cluster.brokers else "not registered"
        yield (
            f"Node {node_id} may not leave: broker {other} is {how}, and a second broker must "
            f"not be out at the same time; wait until it has registered again."
        )
    if node_id in cluster.fenced:
        # It serves nothing already: no partition loses anything by its departure. A rotation, which
        # nothing hurries, asks more of it (preconditions).
        return
    for partition in cluster.offline:
        whom = listed(partition.eligible or partition.replicas)
        complete = " which hold all of it" if partition.eligible else ""
        yield (
            f"Node {node_id} may not leave: partition {partition.name} is offline; bring one of "
            f"its replicas {whom}{complete} back first."
        )
    for partition in cluster.at_risk_on(node_id):
        if not (even_last and _last(node_id, partition)):
            yield from _partition_refusals(node_id, partition, isr_margin)


def _company_refusals(node_id: int, cluster: ClusterView, beside: frozenset[int]) -> Iterator[str]:
    voters = {voter.node_id for voter in cluster.voters}
    for other in sorted(beside):
        if node_id in voters or other in voters:
            yield (
                f"Node {node_id} may not leave together with node {other}: controllers go one by "
                f"one; wait until it is back."
            )
            continue
        both = next(shared(node_id, other, cluster), None)
        if both is not None:
            yield (
                f"Node {node_id} may not leave together with broker {other}: both hold partition "
                f"{both.name}; wait until it is back."
            )


def shared(one: int, other: int, cluster: ClusterView) -> Iterator[PartitionView]:
    """Yield the partitions that two brokers both hold."""
    return (p for p in cluster.held_by(one) if other in p.replicas)


def _last(node_id: int, partition: PartitionView) -> bool:
    """Say whether nobody else is in sync with a partition that nobody can keep writable."""
    factor = len(partition.replicas)
    return 1 < factor <= partition.min_isr and set(partition.isr) == {node_id}


def _partition_refusals(node_id: int, partition: PartitionView, isr_margin: int) -> Iterator[str]:
    factor = len(partition.replicas)
    if partition.leader is None or factor == 1:
        return
    left = sorted(set(partition.isr) - {node_id})
    if not partition.keepable:
        # It cannot be kept writable whoever goes; but what it holds must stay somewhere.
        if _last(node_id, partition):
            yield (
                f"Node {node_id} may not leave: it is the last in-sync replica of partition "
                f"{partition.name}, and {listed([r for r in partition.replicas if r != node_id])} "
                f"is behind; wait until another has caught up."
            )
        return
    needed = min(partition.min_isr + isr_margin, factor - 1)
    if len(left) < needed:
        yield (
            f"Node {node_id} may not leave: partition {partition.name} would keep "
            f"{len(left)} in-sync replicas ({listed(left)}) of {factor}, and it needs {needed} "
            f"(min.insync.replicas {partition.min_isr}, margin {isr_margin}); wait until its other "
            f"replicas have caught up."
        )


def _quorum_refusals(node_id: int, cluster: ClusterView) -> Iterator[str]:
    voters = cluster.voters
    if node_id not in {voter.node_id for voter in voters}:
        return
    others = [voter for voter in voters if voter.node_id != node_id]
    caught_up = [voter.node_id for voter in others if voter.caught_up]
    # A majority of all voters. Two voters have none without each other: then the other one must
    # be caught up, and a single voter cannot be kept (as KafkaQuorumCheck decides).
    needed = min(len(voters) // 2 + 1, len(others))
    if len(caught_up) < needed:
        lagging = [voter.node_id for voter in others if not voter.caught_up]
        yield (
            f"Node {node_id} may not leave: of the {len(voters)} controllers only "
            f"{listed(caught_up)} would be left caught up, and the quorum needs {needed}; wait "
            f"for {listed(lagging)} to catch up."
        )
