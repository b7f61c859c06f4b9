"""Judges EKS's managed node groups: how they update, repair, shrink, and whether they are well.

Source: EKS's managed node groups, their update configuration and health issues.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed
from core.survey.finding import Finding, Weight, broker_may_die, listing, producer_may_stall
from core.survey.node_facts import ManagedNodeGroup, ScalingGroup
from core.unknown import mapping_of

# Statuses in which EKS does nothing to a group, nor ends it.
STEADY = ("ACTIVE", "CREATING", "UPDATING", "DELETING")


def managed_findings(group: ScalingGroup, subject: str, seen: Surveyed) -> Iterator[Finding]:
    """Find what EKS does to a managed node group by itself."""
    name = group.managed_node_group
    yield Finding(
        "managed-node-group",
        Weight.PRODUCER if len(group.zones) > 1 else Weight.ADVICE,
        subject,
        f"it is managed node group {name}: when it shrinks or is rebalanced, EKS ends a node 15 "
        f"minutes after it began to drain it, whatever PodDisruptionBudgets say",
        "make no change of its size while a broker cannot leave, never update it with force, or "
        "move the brokers to groups of your own with termination hooks",
    )
    if node_group := mapping_of(seen.managed_node_groups).get(group.name):
        yield from _state(node_group, subject)
        yield from _updates(node_group, group, subject)


def _updates(managed: ManagedNodeGroup, group: ScalingGroup, subject: str) -> Iterator[Finding]:
    name = managed.name
    at_once = managed.at_once or -(-(managed.percent_at_once or 0) * group.desired // 100)
    if at_once > 1:
        yield producer_may_stall(
            "managed-update",
            subject,
            f"managed node group {name} updates {at_once} of its nodes at once",
            "set maxUnavailable of its update configuration to 1",
        )
    if managed.repaired:
        yield producer_may_stall(
            "managed-repair",
            subject,
            f"EKS repairs managed node group {name}: a node of which its monitoring agent "
            f"complains for half an hour is replaced, whatever Kafka does at the time",
            "disable node auto repair for it, and replace sick nodes one by one",
        )
    if managed.strategy == "MINIMAL":
        yield producer_may_stall(
            "managed-minimal",
            subject,
            f"managed node group {name} updates with strategy MINIMAL: a node ends before its "
            f"replacement starts, and its broker waits for one",
            "set the update strategy to DEFAULT",
        )


def _state(managed: ManagedNodeGroup, subject: str) -> Iterator[Finding]:
    name = managed.name
    if managed.status == "DELETING":
        yield broker_may_die(
            "managed-deleting",
            subject,
            f"managed node group {name} is deleted at this moment: EKS ends all of its nodes",
            "move its brokers to other nodes at once; a deletion cannot be taken back",
        )
    if managed.status == "UPDATING":
        yield producer_may_stall(
            "managed-updating",
            subject,
            f"managed node group {name} is updated at this moment: EKS replaces its nodes one "
            f"after the other",
            "let the update end before any other node leaves",
        )
    if managed.issues or managed.status not in STEADY:
        why = listing(managed.issues) or f"its status is {managed.status}"
        yield producer_may_stall(
            "managed-degraded",
            subject,
            f"EKS calls managed node group {name} unhealthy ({why}): a node that is lost may have "
            f"no replacement",
            "settle what EKS names before any node leaves",
        )
    if managed.spot:
        yield broker_may_die(
            "group-spot",
            subject,
            f"managed node group {name} has capacity type SPOT: the next node may be taken back "
            f"with two minutes' notice",
            "move the brokers to a node group of capacity type ON_DEMAND",
        )
