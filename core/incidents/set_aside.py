"""Finds machines of Kafka's that their group has set aside by hand: standby, detached, warm pool.

AWS announces none of these. Such a machine serves on, and nobody replaces it when it dies; a
termination of it runs no hook, so its broker would stop without a drain. A person is told, once a
day while it stays so. What ends there, stopped or hibernated, core.incidents.sweep finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from core.incidents.observation import GroupView, NodeView
from core.incidents.sickness import Concern

# What a group does with an instance in the ordinary course; hooks of both kinds among it.
_ORDINARY = ("InService", "Pending", "Terminating", "Terminated")


def set_aside(
    groups: Sequence[GroupView],
    nodes: Sequence[NodeView],
    states: Mapping[str, str],
    leaving: Collection[str],
) -> Iterator[Concern]:
    """Yield a concern for each running node whose group has it elsewhere, or not at all.

    `states` is EC2's of our instances, `leaving` those with an open incident. Nodes that no group
    launches (Karpenter's) belong nowhere, and are no concern.
    """
    if not groups:
        return
    lifecycles = {id_: state for group in groups for id_, state in group.instances.items()}
    for node in nodes:
        id_ = node.instance_id or ""
        lifecycle = lifecycles.get(id_)
        if states.get(id_) != "running" or id_ in leaving:
            continue
        if lifecycle is None or not lifecycle.startswith(_ORDINARY):
            yield _concern(node, id_, lifecycle)


def _concern(node: NodeView, instance_id: str, lifecycle: str | None) -> Concern:
    where = "in no group of the cluster any more" if lifecycle is None else f"{lifecycle} there"
    remedy = (
        "Attach it again (`aws autoscaling attach-instances`)"
        if lifecycle is None
        else "Put it in service again (`aws autoscaling exit-standby`), or wait if AWS is at work"
    )
    return Concern(
        key=f"set_aside:{instance_id}:{lifecycle or 'detached'}",
        page="set_aside",
        reason=(
            f"Instance {instance_id} ({node.name}) runs Kafka and is {where}: nobody replaces it, "
            f"and no hook holds it when it ends. {remedy}, or move its broker away first."
        ),
    )
