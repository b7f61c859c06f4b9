"""Judges the Auto Scaling groups below Kafka: zones, room, hooks, and EKS's managed node groups.

Sources: EC2 Auto Scaling's lifecycle hooks and instance lifecycle policy, EKS's managed node
groups and how they update.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed, Unread, grace_of, nodes_of, of, pods_on
from core.survey.finding import Finding, Weight, listed
from core.survey.node_facts import ScalingGroup, TerminationHook
from core.words import span

# Codes of EC2's scheduled events after which the machine does not go on.
ENDS_MACHINE = ("instance-retirement", "instance-stop")
# Of an instance's lifecycle state, and the group's opinion of its health.
ENDING = ("Terminating", "Detaching", "Unhealthy")
# Processes without which no lost node comes back.
REPLACING = ("Launch", "Terminate", "HealthCheck", "ReplaceUnhealthy")


def groups(seen: Surveyed) -> Iterator[Finding]:
    """Find groups that end a node with its broker on it, or cannot replace it in its zone."""
    if isinstance(seen.groups, Unread):
        return
    for group in seen.groups.values():
        subject = f"Auto Scaling group {group.name}"
        yield from _room(group, subject)
        yield from _own_ends(group, subject)
        yield from _shrinks(group, subject, seen)
        yield from _now(group, subject, seen)
        yield from _moved(group, subject, seen)
        if group.managed_node_group:
            yield from _managed(group, subject, seen)
        else:
            yield from _hooks(group, subject, seen)


def _room(group: ScalingGroup, subject: str) -> Iterator[Finding]:
    if len(group.zones) > 1:
        moving = "AZRebalance" not in group.suspended
        yield Finding(
            "group-zones",
            Weight.BROKER if moving else Weight.PRODUCER,
            subject,
            f"it spans {listed(group.zones)}: a replacement may start where the broker's volume "
            f"is not" + (", and AZRebalance ends nodes to even out the zones" if moving else ""),
            "make a group per zone" + (", and suspend AZRebalance until then" if moving else ""),
        )
    # EKS raises the maximum of its own groups when it replaces their nodes.
    if group.desired >= group.maximum and not group.managed_node_group:
        yield Finding(
            "group-maximum",
            Weight.PRODUCER,
            subject,
            f"it wants {group.desired} nodes and may have {group.maximum}: no replacement can "
            f"start before the old node is gone",
            f"set its maximum to {group.desired + 1} or more",
        )
    stopped = [process for process in REPLACING if process in group.suspended]
    if stopped:
        yield Finding(
            "group-suspended",
            Weight.PRODUCER,
            subject,
            f"{', '.join(stopped)} is suspended: a node that fails is not replaced",
            f"resume {', '.join(stopped)}",
        )


def _shrinks(group: ScalingGroup, subject: str, seen: Surveyed) -> Iterator[Finding]:
    """Find a group that wants fewer nodes than Kafka alone has of it, and one that starts spot."""
    held = {pod.node for pod in pods_on(group, seen)}
    if group.desired < len(held):
        yield Finding(
            "group-shrinks",
            Weight.BROKER,
            subject,
            f"it wants {group.desired} nodes and {len(held)} of its nodes run Kafka: it ends one, "
            f"or is about to",
            f"set its desired capacity to {len(held)} or more",
        )
    if group.reuses:
        yield Finding(
            "group-warm-pool",
            Weight.PRODUCER,
            subject,
            "its warm pool takes nodes back (ReuseOnScaleIn): a node that leaves is stopped and "
            "comes back later under the name of then, and its hooks wait twice",
            "set ReuseOnScaleIn to false",
        )
    yield from _lowered(group, subject, len(held), seen)
    if group.may_be_spot:
        yield Finding(
            "group-spot",
            Weight.BROKER,
            subject,
            "its mixed instances policy has a share for spot: the next node may be taken back "
            "with two minutes' notice",
            "set OnDemandPercentageAboveBaseCapacity to 100",
        )


def _lowered(group: ScalingGroup, subject: str, held: int, seen: Surveyed) -> Iterator[Finding]:
    """Find what lowers a group's size by itself below what Kafka alone has of it."""
    if group.protected or isinstance(seen.scale_ins, Unread):
        return
    found = seen.scale_ins.get(group.name, ())
    policies = [each.title for each in found if each.leaves is None]
    actions = [each.title for each in found if each.leaves is not None and each.leaves < held]
    if policies or actions:
        yield Finding(
            "group-scales-in",
            Weight.BROKER,
            subject,
            f"{listed([*policies, *actions])} lowers its size, and {held} of its nodes run Kafka: "
            f"Auto Scaling chooses which node ends, whatever runs there",
            "remove it or its scale-in (DisableScaleIn), or protect the group's instances from "
            "scale-in",
        )


def _now(group: ScalingGroup, subject: str, seen: Surveyed) -> Iterator[Finding]:
    """Find what a group does to nodes of Kafka at this moment."""
    named = {node.instance_id: node.name for node in nodes_of(group, seen)}
    states = {named[i]: state for i, state in (group.states or {}).items() if i in named}
    if ending := [f"{n} is {state}" for n, state in states.items() if state.startswith(ENDING)]:
        yield Finding(
            "group-ending",
            Weight.BROKER,
            subject,
            f"{listed(ending)}: the group ends it, with the pods of Kafka that are still on it",
            "see that its drain goes on, and let no other node leave meanwhile",
        )
    if aside := [name for name, state in states.items() if state == "Standby"]:
        yield Finding(
            "group-standby",
            Weight.PRODUCER,
            subject,
            f"{listed(aside)} is in standby: the group does not replace it when it fails",
            "return it to service",
        )
    refreshed = {} if isinstance(seen.refreshes, Unread) else seen.refreshes
    if status := refreshed.get(group.name):
        yield Finding(
            "group-refreshing",
            Weight.BROKER,
            subject,
            f"an instance refresh is {status}: it replaces every node, at a pace that knows "
            f"nothing of Kafka's replicas",
            "cancel it, and replace the nodes one by one when Kafka is whole",
        )


def _moved(group: ScalingGroup, subject: str, seen: Surveyed) -> Iterator[Finding]:
    """Find a group whose next node starts in another zone than those it has."""
    apart = [n for n in nodes_of(group, seen) if n.zone and n.zone not in group.zones]
    if apart:
        yield Finding(
            "group-moved",
            Weight.BROKER,
            subject,
            f"{listed(f'{node.name} is in {node.zone}' for node in apart)}, and it starts nodes in "
            f"{listed(group.zones)} alone: a replacement cannot take the broker's volume",
            "give it a subnet of that zone again before the node leaves",
        )


def _own_ends(group: ScalingGroup, subject: str) -> Iterator[Finding]:
    if group.lifetime_seconds:
        yield Finding(
            "group-lifetime",
            Weight.BROKER,
            subject,
            f"its maximum instance lifetime is {span(group.lifetime_seconds)}: Auto Scaling "
            f"replaces a node of that age whatever Kafka does at the time",
            "remove the maximum instance lifetime and replace the nodes one by one",
        )
    if group.asks_load_balancer:
        yield Finding(
            "group-health",
            Weight.BROKER,
            subject,
            "its health check asks the load balancer: a broker that starts slowly has its node "
            "taken away",
            "use EC2's health checks alone",
        )


def _managed(group: ScalingGroup, subject: str, seen: Surveyed) -> Iterator[Finding]:
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
    known = {} if isinstance(seen.managed_node_groups, Unread) else seen.managed_node_groups
    managed = known.get(group.name)
    if managed is None:
        return
    at_once = managed.at_once or -(-(managed.percent_at_once or 0) * group.desired // 100)
    if at_once > 1:
        yield Finding(
            "managed-update",
            Weight.PRODUCER,
            subject,
            f"managed node group {name} updates {at_once} of its nodes at once",
            "set maxUnavailable of its update configuration to 1",
        )
    if managed.updating:
        yield Finding(
            "managed-updating",
            Weight.PRODUCER,
            subject,
            f"managed node group {name} is updated at this moment: EKS replaces its nodes one "
            f"after the other",
            "let the update end before any other node leaves",
        )
    if managed.repaired:
        yield Finding(
            "managed-repair",
            Weight.PRODUCER,
            subject,
            f"EKS repairs managed node group {name}: a node of which its monitoring agent "
            f"complains for half an hour is replaced, whatever Kafka does at the time",
            "disable node auto repair for it, and replace sick nodes one by one",
        )
    if managed.strategy == "MINIMAL":
        yield Finding(
            "managed-minimal",
            Weight.PRODUCER,
            subject,
            f"managed node group {name} updates with strategy MINIMAL: a node ends before its "
            f"replacement starts, and its broker waits for one",
            "set the update strategy to DEFAULT",
        )


def _hooks(group: ScalingGroup, subject: str, seen: Surveyed) -> Iterator[Finding]:
    if not group.hooks:
        yield Finding(
            "hook-missing",
            Weight.BROKER,
            subject,
            "no lifecycle hook holds a node that terminates: the instance goes at once, with its "
            "broker running",
            "add a hook for autoscaling:EC2_INSTANCE_TERMINATING with default result ABANDON",
        )
    held = any(_holds(hook, group, seen) for hook in group.hooks)
    for hook in group.hooks:
        # Beside a hook that holds, one that continues ends nothing: Auto Scaling waits for both.
        if held and hook.default_result == "CONTINUE":
            continue
        if hook.default_result != "ABANDON" or not group.retains_on_abandon:
            kept = "" if group.retains_on_abandon else " and the group keeps nothing"
            yield Finding(
                "hook-default",
                Weight.BROKER,
                subject,
                f"hook {hook.name} ends with {hook.default_result}{kept}: a drain that takes "
                f"longer than the hook ends the instance with its broker on it",
                "set the default result to ABANDON and the group's lifecycle policy "
                "TerminateHookAbandon to retain",
            )
        yield from _time(hook, group, subject, seen)


def _holds(hook: TerminationHook, group: ScalingGroup, seen: Surveyed) -> bool:
    """Say whether a hook keeps its machine for as long as a drain takes, and afterwards."""
    kept = hook.default_result == "ABANDON" and group.retains_on_abandon
    return kept and not _too_short(hook, *_asked_of(group, seen), seen)


def _asked_of(group: ScalingGroup, seen: Surveyed) -> tuple[int, int]:
    """Return how long the group's brokers have to stop, and how long a drain of one may take."""
    listening = [h for h in of(seen.handlers) if h.queue_mode]
    drain = max((h.drain_timeout_seconds for h in listening), default=0)
    return grace_of(pods_on(group, seen)), drain


def _too_short(hook: TerminationHook, grace: int, drain: int, seen: Surveyed) -> bool:
    beats = [h.beat_seconds for h in of(seen.handlers) if h.queue_mode and h.beat_seconds]
    if any(beat < hook.heartbeat_seconds for beat in beats):
        return False
    return hook.heartbeat_seconds <= grace or hook.heartbeat_seconds < drain


def _time(
    hook: TerminationHook, group: ScalingGroup, subject: str, seen: Surveyed
) -> Iterator[Finding]:
    grace, drain = _asked_of(group, seen)
    if _too_short(hook, grace, drain, seen):
        asked = f"its brokers have {grace} s to stop" + (
            f", and a drain may take {drain} s" if drain > grace else ""
        )
        yield Finding(
            "hook-heartbeat",
            Weight.BROKER,
            subject,
            f"hook {hook.name} waits {hook.heartbeat_seconds} s and {asked}: unless somebody "
            f"records heartbeats in time it runs out in the middle",
            f"raise its heartbeat timeout above {max(grace, drain)} s, or record heartbeats",
        )


def scheduled(seen: Surveyed) -> Iterator[Finding]:
    """Find nodes of Kafka whose machine AWS itself is about to end or to stop for a while."""
    if isinstance(seen.nodes, Unread) or isinstance(seen.scheduled, Unread):
        return
    told = [
        (event.code in ENDS_MACHINE, f"{node.name} ({event.code}, {event.not_before or 'soon'})")
        for node in seen.nodes.values()
        for event in seen.scheduled.get(node.instance_id or "", ())
    ]
    if ending := [said for ends, said in told if ends]:
        yield Finding(
            "machine-retired",
            Weight.BROKER,
            "nodes of Kafka",
            f"AWS ends or stops {listed(ending)}, whatever runs there by then",
            "replace these nodes one by one before that",
        )
    if paused := [said for ends, said in told if not ends]:
        yield Finding(
            "machine-maintained",
            Weight.PRODUCER,
            "nodes of Kafka",
            f"AWS interrupts {listed(paused)}: its broker is away for as long",
            "move leaders away before that, or replace the node",
        )


def orphans(seen: Surveyed) -> Iterator[Finding]:
    """Find nodes of Kafka that nothing would replace."""
    if isinstance(seen.nodes, Unread) or isinstance(seen.group_of, Unread):
        return
    alone = [
        f"{node.name} ({node.instance_id})"
        for node in seen.nodes.values()
        if node.node_pool is None
        and node.instance_id
        and node.instance_id not in seen.group_of
        # A node whose instance EC2 no longer knows is about to go by itself.
        and (isinstance(seen.instances, Unread) or node.instance_id in seen.instances)
    ]
    if alone:
        yield Finding(
            "node-alone",
            Weight.PRODUCER,
            "nodes of Kafka",
            f"{listed(alone)} belong to no Auto Scaling group and to no NodePool: nothing "
            f"replaces them",
            "run the brokers in groups",
        )
