"""Judges Auto Scaling groups and managed node groups: zones, hooks, what ends their machines.

Sources: EC2 Auto Scaling's hooks, instance lifecycle policy, health checks and processes; EKS's
update configuration and health issues; EC2's launch templates, placement groups and metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.checks.facts import ClusterFacts, grace_of, machines_of, nodes_of, pods_on, pool_names
from core.checks.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.ground.fields import known_items, mapping_of
from core.ground.words import span
from core.model.nodes import LifecycleHook, MachineTemplate, ManagedNodeGroup, ScalingGroup, share

# Statuses in which EKS does nothing to a group, nor ends it.
STEADY = ("ACTIVE", "CREATING", "UPDATING", "DELETING")


def managed_findings(group: ScalingGroup, subject: str, seen: ClusterFacts) -> Iterator[Finding]:
    """Find what EKS does to a managed node group by itself."""
    name = group.managed_node_group
    yield Finding(
        "managed-node-group",
        Weight.PRODUCER if len(group.zones) > 1 else Weight.ADVICE,
        subject,
        f"it is managed node group {name}. When it shrinks or is rebalanced, EKS ends a node 15 "
        "minutes after the start of its drain, despite every PodDisruptionBudget",
        "do not resize it while a broker cannot leave, and never update it with force. Or move "
        "the brokers to groups of your own with termination hooks",
    )
    if node_group := mapping_of(seen.managed_node_groups).get(group.name):
        yield from _state(node_group, subject)
        yield from _updates(node_group, group, subject)


def _updates(managed: ManagedNodeGroup, group: ScalingGroup, subject: str) -> Iterator[Finding]:
    name = managed.name
    at_once = managed.at_once or share(f"{managed.percent_at_once or 0}%", group.desired)
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
            f"EKS repairs managed node group {name}. It replaces a node after half an hour of its "
            "monitoring agent's complaints, without asking Kafka",
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


# Of an instance's lifecycle state, and the group's opinion of its health.
ENDING = ("Terminating", "Detaching", "Unhealthy")
# Health checks beside EC2's, by which a group ends a node: what follows, what to do.
_LATE = "a broker that starts slowly has its node taken away"
ENDED_BY: Mapping[str, tuple[str, str]] = {
    "ELB": (f"its health check asks the load balancer: {_LATE}", "use EC2's health checks alone"),
    "VPC_LATTICE": (f"its health check asks VPC Lattice: {_LATE}", "use EC2's health checks alone"),
    "EBS": (
        "its health check asks EBS: a node of an impaired volume is replaced, and the volume stays",
        "use EC2's health checks alone, and see to an impaired volume yourself",
    ),
}
# Processes without which no lost node comes back.
REPLACING = ("Launch", "Terminate", "HealthCheck", "ReplaceUnhealthy")


@rule("groups", "pods")
def groups(seen: ClusterFacts) -> Iterator[Finding]:
    """Find groups that end a node with its broker on it, or cannot replace it in its zone."""
    for group in mapping_of(seen.groups).values():
        subject = group.title
        yield from _room(group, subject)
        yield from _there(group, subject)
        yield from _members(group, subject, seen)
        if group.managed_node_group:
            yield from managed_findings(group, subject, seen)
        else:
            yield from _hooks(group, subject, seen)


def _room(group: ScalingGroup, subject: str) -> Iterator[Finding]:
    if len(group.zones) > 1:
        moving = "AZRebalance" not in group.suspended
        yield Finding(
            "group-zones",
            Weight.BROKER if moving else Weight.PRODUCER,
            subject,
            f"it spans {listing(group.zones)}: a replacement may start where the broker's volume "
            f"is not" + (", and AZRebalance ends nodes to even out the zones" if moving else ""),
            "make a group per zone" + (", and suspend AZRebalance until then" if moving else ""),
        )
    # EKS raises the maximum of its own groups when it replaces their nodes.
    if group.desired >= group.maximum and not group.managed_node_group:
        yield producer_may_stall(
            "group-maximum",
            subject,
            f"it wants {group.desired} nodes and may have {group.maximum}: no replacement can "
            f"start before the old node is gone",
            f"set its maximum to {group.desired + 1} or more",
        )
    if group.follows_latest and not group.managed_node_group:
        yield worth_knowing(
            "group-latest",
            subject,
            "its launch template's version is $Latest: a new version changes the next machine "
            "that starts, also during a rotation",
            "name a version's number, or $Default, and raise it when you mean to rotate",
        )
    stopped = [process for process in REPLACING if process in group.suspended]
    if stopped:
        yield producer_may_stall(
            "group-suspended",
            subject,
            f"{', '.join(stopped)} is suspended: a node that fails is not replaced",
            f"resume {', '.join(stopped)}",
        )
    if group.launch_hooks and not group.managed_node_group:
        yield worth_knowing(
            "launch-hook",
            subject,
            f"a new machine waits in {listing(group.launch_hooks)}, and ends when that is not "
            "completed in time (ABANDON), with the broker that came to it meanwhile",
            "see that its program runs, or set its default result to CONTINUE",
        )


def _there(group: ScalingGroup, subject: str) -> Iterator[Finding]:
    """Find a group that is about to be gone, or has fewer nodes than it wants."""
    if group.deleting:
        yield broker_may_die(
            "group-deleted",
            subject,
            "it is being deleted: all of its nodes end, with what runs there",
            "move its brokers to another group at once; a deletion cannot be taken back",
        )
    states = (group.states or {}).values()
    # Of a node that ends the group says why it has one less.
    if group.states is None or any(state.startswith(ENDING) for state in states):
        return
    if len(states) < group.desired and not group.weighted:
        yield producer_may_stall(
            "group-short",
            subject,
            f"it wants {group.desired} nodes and has {len(states)}: "
            + (
                f"its last start has failed ({group.failed_start})"
                if group.failed_start
                else "a start has failed, for want of capacity, addresses, a quota or its "
                "template, or is about to be tried"
            ),
            "look at its scaling activities before any node leaves",
        )


def _members(group: ScalingGroup, subject: str, seen: ClusterFacts) -> Iterator[Finding]:
    """Find what a group does to nodes of Kafka today, or cannot do for them."""
    held = {pod.node for pod in pods_on(group, seen)}
    if group.desired < len(held) and not group.weighted:
        yield broker_may_die(
            "group-shrinks",
            subject,
            f"it wants {group.desired} nodes and {len(held)} of its nodes run Kafka: it ends one, "
            f"or is about to",
            f"set its desired capacity to {len(held)} or more",
        )
    named = {node.instance_id: node.name for node in nodes_of(group, seen)}
    states = {named[i]: state for i, state in (group.states or {}).items() if i in named}
    if ending := [f"{n} is {state}" for n, state in states.items() if state.startswith(ENDING)]:
        yield broker_may_die(
            "group-ending",
            subject,
            f"{listing(ending)}: the group ends it, with the pods of Kafka that are still on it",
            "see that its drain goes on, and let no other node leave meanwhile",
        )
    if aside := [name for name, state in states.items() if state == "Standby"]:
        yield producer_may_stall(
            "group-standby",
            subject,
            f"{listing(aside)} is in standby: the group does not replace it when it fails",
            "return it to service",
        )
    apart = [n for n in nodes_of(group, seen) if n.zone and n.zone not in group.zones]
    if apart:
        yield broker_may_die(
            "group-moved",
            subject,
            f"{listing(f'{node.name} is in {node.zone}' for node in apart)}, and it starts nodes "
            f"in {listing(group.zones)} alone: a replacement cannot take the broker's volume",
            "give it a subnet of that zone again before the node leaves",
        )


@rule("groups")
def self_acting(seen: ClusterFacts) -> Iterator[Finding]:
    """Find groups that end, exchange or lower machines by themselves, whoever runs on them."""
    for group in mapping_of(seen.groups).values():
        subject = group.title
        yield from _own_ends(group, subject)
        yield from _lowering_findings(group, subject, len(nodes_of(group, seen)), seen)
        yield from _refresh_findings(group, subject, seen)


def _own_ends(group: ScalingGroup, subject: str) -> Iterator[Finding]:
    """Find settings by which a group ends machines, or starts such as do not stay."""
    if group.lifetime_seconds:
        yield broker_may_die(
            "group-lifetime",
            subject,
            f"its maximum instance lifetime is {span(group.lifetime_seconds)}: Auto Scaling "
            f"replaces a node of that age whatever Kafka does at the time",
            "remove the maximum instance lifetime and replace the nodes one by one",
        )
    for opinion, said in ENDED_BY.items():
        if opinion in group.asks:
            weight = Weight.PRODUCER if opinion == "EBS" else Weight.BROKER
            yield Finding("group-health", weight, subject, *said)
    least, _most = group.healthy_percent or (100, 100)
    out = group.desired - share(f"{least}%", group.desired)
    if out > 1 and not group.weighted:
        yield producer_may_stall(
            "group-maintenance",
            subject,
            f"its instance maintenance policy keeps {least} % healthy: {out} of its "
            f"{group.desired} nodes may end at once when they are unhealthy, refreshed or too old",
            "set MinHealthyPercentage to 100 and MaxHealthyPercentage above it",
        )
    if group.reuses:
        yield producer_may_stall(
            "group-warm-pool",
            subject,
            "its warm pool takes nodes back (ReuseOnScaleIn). A node that leaves is stopped and "
            "comes back later, and its hooks wait twice",
            "set ReuseOnScaleIn to false",
        )
    if group.may_be_spot:
        yield broker_may_die(
            "group-spot",
            subject,
            "its mixed instances policy has a share for spot: the next node may be taken back "
            "with two minutes' notice",
            "set OnDemandPercentageAboveBaseCapacity to 100",
        )


def _lowering_findings(
    group: ScalingGroup, subject: str, held: int, seen: ClusterFacts
) -> Iterator[Finding]:
    """Find what lowers a group's size by itself below what Kafka alone has of it."""
    if group.protected:
        return
    lowering = [
        each.title
        for each in mapping_of(seen.scale_ins).get(group.name, ())
        if each.process not in group.suspended and (each.leaves is None or each.leaves < held)
    ]
    if lowering:
        yield broker_may_die(
            "group-scales-in",
            subject,
            f"{listing(lowering)} lowers its size, and {held} of its nodes run Kafka: "
            f"Auto Scaling chooses which node ends, whatever runs there",
            "remove it or its scale-in (DisableScaleIn), or protect the group's instances from "
            "scale-in",
        )


def _refresh_findings(group: ScalingGroup, subject: str, seen: ClusterFacts) -> Iterator[Finding]:
    if status := mapping_of(seen.refreshes).get(group.name):
        yield broker_may_die(
            "group-refreshing",
            subject,
            f"an instance refresh is {status}: it replaces every node, at a pace that knows "
            f"nothing of Kafka's replicas",
            "cancel it, and replace the nodes one by one when Kafka is whole",
        )


def _hooks(group: ScalingGroup, subject: str, seen: ClusterFacts) -> Iterator[Finding]:
    if not group.hooks:
        yield broker_may_die(
            "hook-missing",
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
            yield broker_may_die(
                "hook-default",
                subject,
                f"hook {hook.name} ends with {hook.default_result}{kept}: a drain that takes "
                f"longer than the hook ends the instance with its broker on it",
                "set the default result to ABANDON and the group's lifecycle policy "
                "TerminateHookAbandon to retain",
            )
        yield from _time(hook, group, subject, seen)


def _holds(hook: LifecycleHook, group: ScalingGroup, seen: ClusterFacts) -> bool:
    """Say whether a hook keeps its machine for as long as a drain takes, and afterwards."""
    kept = hook.default_result == "ABANDON" and group.retains_on_abandon
    return kept and not _too_short(hook, *_asked_of(group, seen), seen)


def _asked_of(group: ScalingGroup, seen: ClusterFacts) -> tuple[int, int]:
    """Return how long the group's brokers have to stop, and how long a drain of one may take."""
    listening = [h for h in known_items(seen.handlers) if h.queue_mode]
    drain = max((h.drain_timeout_seconds for h in listening), default=0)
    return grace_of(pods_on(group, seen)), drain


def _too_short(hook: LifecycleHook, grace: int, drain: int, seen: ClusterFacts) -> bool:
    beats = [h.beat_seconds for h in known_items(seen.handlers) if h.queue_mode and h.beat_seconds]
    if any(beat < hook.heartbeat_seconds for beat in beats):
        return False
    return hook.heartbeat_seconds <= grace or hook.heartbeat_seconds < drain


def _time(
    hook: LifecycleHook, group: ScalingGroup, subject: str, seen: ClusterFacts
) -> Iterator[Finding]:
    grace, drain = _asked_of(group, seen)
    if _too_short(hook, grace, drain, seen):
        asked = f"its brokers have {grace} s to stop" + (
            f", and a drain may take {drain} s" if drain > grace else ""
        )
        yield broker_may_die(
            "hook-heartbeat",
            subject,
            f"hook {hook.name} waits {hook.heartbeat_seconds} s and {asked}: without heartbeats in "
            "time it runs out in the middle",
            f"raise its heartbeat timeout above {max(grace, drain)} s, or record heartbeats",
        )


SPOT = "spot"
IMDS = "a pod there may take the node's rights at AWS, or be made to fetch them"


@rule("templates")
def templates(seen: ClusterFacts) -> Iterator[Finding]:
    """Find groups whose next machine does not start, may be taken back, or tells too much."""
    for group in mapping_of(seen.groups).values():
        subject, known = group.title, mapping_of(seen.templates).get(group.name, ())
        for template in known:
            yield from _starts(template, group, subject)
        if any(template.metadata_open for template in known):
            yield worth_knowing(
                "metadata-open",
                subject,
                f"machines that it starts answer IMDSv1: {IMDS}",
                "set HttpTokens of its template to required",
            )
        named = {template.placement for template in known if template.placement}
        if places := sorted(
            named | ({f"placement group {p}"} if (p := group.placement) else set())
        ):
            yield worth_knowing(
                "group-placement",
                subject,
                f"it starts machines in {listing(places)} alone: where that has no room, a "
                f"replacement does not start, though its zone has",
                "see that it has room for one machine more (a spread group holds seven of a zone)",
            )


def _starts(template: MachineTemplate, group: ScalingGroup, subject: str) -> Iterator[Finding]:
    if template.missing:
        yield producer_may_stall(
            "template-gone",
            subject,
            f"it starts machines by {template.title}, which does not exist: no replacement starts",
            "name a template and version that exist before any node leaves",
        )
    if template.lost:
        yield producer_may_stall(
            "template-parts",
            subject,
            f"{template.title} names {listing(template.lost)}, which AWS no longer has, or keeps "
            "from this account: no replacement starts",
            "make a version that names what is there, before any node leaves",
        )
    # What EKS sells as spot it says of its own groups.
    if group.managed_node_group or template.market is None or group.may_be_spot:
        return
    spot = template.market == SPOT
    yield Finding(
        "group-spot" if spot else "group-block",
        Weight.BROKER,
        subject,
        f"{template.title} asks for {template.market}: the next node "
        + (
            "may be taken back with two minutes' notice"
            if spot
            else "ends when what was bought does, whatever runs there"
        ),
        "take the market options out of it",
    )


@rule("instances")
def metadata(seen: ClusterFacts) -> Iterator[Finding]:
    """Find machines that tell every pod too much, and handlers that are told nothing."""
    held = machines_of(seen)
    if told := [name for name, machine in held.items() if machine.metadata_open]:
        yield worth_knowing(
            "metadata-open",
            "nodes of Kafka",
            f"{listing(told)} answer IMDSv1: {IMDS}",
            "set HttpTokens of their template, node class or of the machines to required",
        )
    far = [name for name, machine in held.items() if machine.metadata_far]
    for handler in known_items(seen.handlers):
        if far and not handler.queue_mode and not handler.on_host:
            yield broker_may_die(
                "metadata-far",
                handler.title,
                f"it asks the metadata of {listing(far)} from a pod's network. These answer only "
                "the machine itself (hop limit 1, or none), so it hears nothing",
                "let it use the host's network, or run it in queue mode",
            )


@rule("node_classes")
def node_classes(seen: ClusterFacts) -> Iterator[Finding]:
    """Find NodePools whose class starts nothing, elsewhere, or another image at any time."""
    for name in pool_names(seen):
        pool = mapping_of(seen.node_pools).get(name)
        if pool is None:
            continue
        found = mapping_of(seen.node_classes).get(pool.node_class or "")
        if found is None:
            continue
        subject = f"NodePool {name}"
        mine = [node for node in mapping_of(seen.nodes).values() if node.node_pool == name]
        if found.not_ready and not pool.stuck:
            yield producer_may_stall(
                "karpenter-stuck",
                subject,
                f"Karpenter starts no node of it: {found.title} is not ready ({found.not_ready}); "
                f"a broker that leaves waits for one",
                "settle that before any node leaves",
            )
        zones = set(found.subnets.values())
        if zones and (apart := [n for n in mine if n.zone and n.zone not in zones]):
            yield broker_may_die(
                "karpenter-moved",
                subject,
                f"{listing(f'{node.name} is in {node.zone}' for node in apart)}, and {found.title} "
                f"names subnets in {listing(zones)} alone: a replacement cannot take the broker's "
                f"volume",
                "let it select a subnet of that zone again before the node leaves",
            )
        if found.newest_image:
            yield worth_knowing(
                "karpenter-latest",
                subject,
                f"{found.title} takes whatever image is newest ({found.newest_image}): on the day "
                f"that AWS publishes one, every node of it has drifted and is replaced",
                "name a version (alias: al2023@v20261101), and raise it when you mean to rotate",
            )
        if found.metadata_open:
            yield worth_knowing(
                "metadata-open",
                subject,
                f"machines that {found.title} starts answer IMDSv1: {IMDS}",
                "set httpTokens of its metadataOptions to required",
            )
