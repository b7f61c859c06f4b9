"""Finds machines of Kafka's that no group looks after: standby, detached, warm pool, groups gone.

AWS announces none of these. Such a machine serves on, and nobody replaces it when it dies; a
termination of it runs no hook, so its broker would stop without a drain. A person is told, once a
day while it stays so. What ends there, stopped or hibernated, core.incidents.sweep finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from core.incidents.nodeclaims import NodeClaim
from core.incidents.observation import GroupView, NodeView
from core.incidents.sickness import Concern

# What a group does with an instance in the ordinary course; hooks of both kinds among it.
_ORDINARY = ("InService", "Pending", "Terminating", "Terminated")
MOST_NAMED = 5


def set_aside(
    groups: Sequence[GroupView],
    nodes: Sequence[NodeView],
    states: Mapping[str, str],
    leaving: Collection[str],
    claims: Sequence[NodeClaim] | None,
) -> Iterator[Concern]:
    """Yield a concern for each running node whose group has it elsewhere, or not at all.

    `states` is EC2's of our instances, `leaving` those with an open incident. Karpenter's machines
    belong to no group, by their `claims`; None: nobody told, so none is known to belong nowhere.
    """
    claimed = {claim.instance_id for claim in claims or ()}
    lifecycles = {id_: state for group in groups for id_, state in group.instances.items()}
    running = [
        node
        for node in nodes
        if node.instance_id is not None
        and states.get(node.instance_id) == "running"
        and node.instance_id not in leaving
    ]
    nowhere = [
        node
        for node in running
        if node.instance_id not in lifecycles
        and claims is not None
        and node.instance_id not in claimed
    ]
    if nowhere and not groups:
        yield _without_groups(nowhere)
        nowhere = []
    for node in running:
        lifecycle = lifecycles.get(node.instance_id or "")
        elsewhere = lifecycle is not None and not lifecycle.startswith(_ORDINARY)
        if elsewhere or node in nowhere:
            yield _concern(node, lifecycle)


def _without_groups(nodes: Sequence[NodeView]) -> Concern:
    named = ", ".join(f"{node.instance_id}" for node in nodes[:MOST_NAMED])
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return Concern(
        key="set_aside:no groups",
        page="set_aside",
        reason=(
            f"Kafka runs on machines ({named}{more}) for which the cluster has no Auto Scaling "
            f"group any more, nor a NodeClaim: nobody replaces one that dies, and no hook holds it "
            f"when it ends. Were the groups deleted, or is the tag or name gone by which they are "
            f"known? Make them again, and attach the machines (`aws autoscaling attach-instances`)."
        ),
    )


def _concern(node: NodeView, lifecycle: str | None) -> Concern:
    where = "in no group of the cluster" if lifecycle is None else f"{lifecycle} there"
    remedy = (
        "Attach it again (`aws autoscaling attach-instances`)"
        if lifecycle is None
        else "Put it in service again (`aws autoscaling exit-standby`), or wait if AWS is at work"
    )
    return Concern(
        key=f"set_aside:{node.instance_id}:{lifecycle or 'detached'}",
        page="set_aside",
        reason=(
            f"Instance {node.instance_id} ({node.name}) runs Kafka and is {where}: nobody replaces "
            f"it, and no hook holds it when it ends. {remedy}, or move its broker away first."
        ),
    )
