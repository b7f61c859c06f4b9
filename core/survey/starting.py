"""Judges whether a NodePool of Karpenter's can start a node for the brokers that its nodes hold.

Source: Karpenter's NodePools: requirements, limits, static capacity, their Ready condition.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.finding import Finding, broker_may_die, listing, producer_may_stall
from core.survey.kafka_facts import Pod
from core.survey.node_facts import Node, NodePool

CAPACITY_TYPE, ZONE = "karpenter.sh/capacity-type", "topology.kubernetes.io/zone"


def findings(pool: NodePool, nodes: list[Node], pods: list[Pod]) -> Iterator[Finding]:
    """Find a pool that is deleted, shrinks, starts nothing, or starts what brokers cannot use."""
    subject = f"NodePool {pool.name}"
    if pool.leaving:
        yield broker_may_die(
            "karpenter-deleted",
            subject,
            "somebody has deleted it: Karpenter drains all of its nodes and ends them",
            "let no broker stay on its nodes; a deletion cannot be taken back",
        )
    if pool.replicas is not None and pool.replicas < len(nodes):
        yield broker_may_die(
            "karpenter-shrinks",
            subject,
            f"it keeps {pool.replicas} nodes and {len(nodes)} of its nodes run Kafka: Karpenter "
            f"ends one, or is about to, whatever its budgets say",
            f"set replicas to {len(nodes)} or more",
        )
    if pool.stuck:
        yield producer_may_stall(
            "karpenter-stuck",
            subject,
            f"Karpenter starts no node of it: {pool.stuck}; a broker that leaves waits for one",
            "settle that before any node leaves",
        )
    yield from _unusable(pool, nodes, pods, subject)


def _unusable(
    pool: NodePool, nodes: list[Node], pods: list[Pod], subject: str
) -> Iterator[Finding]:
    apart = [n for n in nodes if n.zone and not pool.may_start(ZONE, n.zone)]
    if apart:
        yield broker_may_die(
            "karpenter-moved",
            subject,
            f"{listing(f'{node.name} is in {node.zone}' for node in apart)}, where its "
            f"requirements let it start no node: a replacement cannot take the broker's volume",
            "let its requirements name that zone again before the node leaves",
        )
    asked = any(each.key == CAPACITY_TYPE for each in pool.requirements)
    choosing = any(not pod.wants.names(CAPACITY_TYPE) for pod in pods)
    on_demand = not all(node.spot for node in nodes)
    if asked and pool.may_start(CAPACITY_TYPE, "spot") and choosing and on_demand:
        yield broker_may_die(
            "karpenter-spot",
            subject,
            f"its requirements let it start spot instances ({CAPACITY_TYPE}): the next node may be "
            f"taken back with two minutes' notice",
            "let its requirements name on-demand and reserved alone",
        )
