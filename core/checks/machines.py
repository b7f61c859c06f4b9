"""Judges the machines below Kafka: what AWS and Karpenter do to them, who would replace them.

Sources: EC2's scheduled events and status checks; EKS's access entries and aws-auth; Karpenter's
NodePools and disruption, before karpenter.sh/v1 and since; EKS Auto Mode's node lifetime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from core.checks.facts import ClusterFacts, grace_of, machine_of, machines_of, pool_names
from core.checks.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    not_judged,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.ground.fields import Unknown, known_items, mapping_of
from core.ground.window import clock
from core.model.kafka import Pod
from core.model.nodes import Node, NodePool, NodeRole, ScalingGroup

# Codes of EC2's scheduled events after which the machine does not go on.
ENDS_MACHINE = ("instance-retirement", "instance-stop")
# Tags of a machine, and what others do by them.
MARKS: Mapping[str, str] = {
    "Schedule": "Instance Scheduler on AWS starts and stops machines",
    "maid_status": "Cloud Custodian stops or ends machines",
    "custodian_cleanup": "Cloud Custodian stops or ends machines",
    "Patch Group": "Systems Manager patches machines, and reboots them",
    "PatchGroup": "Systems Manager patches machines, and reboots them",
}
ENDED_IMAGE = re.compile(r"Amazon Linux 2(?!\d)")
# As in t3.large and t4g.medium.
BURSTABLE = re.compile(r"t\d")
# How the tags of an instance begin that somebody else than Auto Scaling or Karpenter has started.
STARTED_BY: Mapping[str, str] = {
    "spotinst:": "Spot by Flexera (Ocean or Elastigroup)",
    "cast:": "CAST AI",
    "aws:ec2:fleet-id": "an EC2 Fleet",
    "aws:ec2spot:fleet-request-id": "a Spot Fleet",
    "sigs.k8s.io/cluster-api-provider-aws": "Cluster API",
    "kubernetes.io/machine-controller": "a machine controller",
}


@rule("nodes", "statuses")
def scheduled_findings(seen: ClusterFacts) -> Iterator[Finding]:
    """Find nodes of Kafka whose machine AWS itself is about to end or to stop for a while."""
    statuses = mapping_of(seen.statuses)
    told = [
        (event.code in ENDS_MACHINE, f"{node.name} ({event.code}, {event.not_before or 'soon'})")
        for node in mapping_of(seen.nodes).values()
        if (status := statuses.get(node.instance_id or ""))
        for event in status.events
    ]
    if ending := [said for ends, said in told if ends]:
        yield broker_may_die(
            "machine-retired",
            "nodes of Kafka",
            f"AWS ends or stops {listing(ending)}, whatever runs there by then",
            "replace these nodes one by one before that",
        )
    if paused := [said for ends, said in told if not ends]:
        yield producer_may_stall(
            "machine-maintained",
            "nodes of Kafka",
            f"AWS interrupts {listing(paused)}: its broker is away for as long",
            "move leaders away before that, or replace the node",
        )


@rule("nodes", "instances")
def orphans(seen: ClusterFacts) -> Iterator[Finding]:
    """Find nodes of Kafka that nothing would replace."""
    if isinstance(seen.nodes, Unknown) or isinstance(seen.group_of, Unknown):
        return
    alone = [
        node
        for node in seen.nodes.values()
        if node.node_pool is None
        and node.instance_id
        and node.instance_id not in seen.group_of
        # A node whose instance EC2 no longer knows is about to go by itself.
        and (isinstance(seen.instances, Unknown) or node.instance_id in seen.instances)
    ]
    keepers = {node.name: _keeper(node, seen) for node in alone}
    if nobody := [f"{node.name} ({node.instance_id})" for node in alone if not keepers[node.name]]:
        yield producer_may_stall(
            "node-alone",
            "nodes of Kafka",
            f"{listing(nobody)} belong to no Auto Scaling group and to no NodePool: nothing "
            f"replaces them",
            "run the brokers in groups",
        )
    for keeper in sorted({each for each in keepers.values() if each}):
        names = listing(name for name, each in keepers.items() if each == keeper)
        yield not_judged(
            "node-elsewhere",
            "nodes of Kafka",
            f"{names} were started by {keeper}, by their tags: when it ends or replaces them was "
            f"not judged",
            "read its settings yourself, or run the brokers in Auto Scaling groups",
        )


def _keeper(node: Node, seen: ClusterFacts) -> str | None:
    """Return who has started a machine, by its tags."""
    instance = machine_of(node, seen)
    tags = {} if instance is None else instance.tags
    found = (who for begins, who in STARTED_BY.items() if any(t.startswith(begins) for t in tags))
    return next(found, None)


@rule("nodes", "instances")
def burstable(seen: ClusterFacts) -> Iterator[Finding]:
    """Find machines whose processors, disks and network live on credits."""
    held = machines_of(seen).items()
    if found := [f"{name} ({m.type})" for name, m in held if BURSTABLE.match(m.type)]:
        yield producer_may_stall(
            "burstable",
            "nodes of Kafka",
            f"{listing(found)} earn their speed as credits: when a broker copies its replicas back "
            f"these end, and it falls out of sync or is missed",
            "run brokers on machines that keep their speed (m, r or i families)",
        )


@rule("nodes", "instances")
def marked(seen: ClusterFacts) -> Iterator[Finding]:
    """Name machines that somebody stops or reboots by the clock, as their tags say."""
    found: dict[str, list[str]] = {}
    for name, machine in machines_of(seen).items():
        for key in MARKS:
            if value := machine.tags.get(key):
                found.setdefault(key, []).append(f"{name} ({key}: {value})")
    for key, names in found.items():
        yield worth_knowing(
            "machine-marked",
            "nodes of Kafka",
            f"{listing(names)} carry a tag by which {MARKS[key]}: a machine ends or reboots at an "
            f"hour that Kafka did not choose",
            "take the tag off the machines of Kafka and off what starts them",
        )


@rule("nodes", "instances")
def places(seen: ClusterFacts) -> Iterator[Finding]:
    """Name machines whose replacement needs more than a zone's capacity, or an image that ended."""
    if outposts := [name for name, machine in machines_of(seen).items() if machine.outpost]:
        yield worth_knowing(
            "outpost",
            "nodes of Kafka",
            f"{listing(outposts)} stand in an Outpost. A replacement starts only if the Outpost "
            "has a spare machine of the type",
            "see that the Outpost has room for one machine more (its capacity tasks and slots)",
        )
    if old := [n.name for n in mapping_of(seen.nodes).values() if ENDED_IMAGE.match(n.os_image)]:
        yield worth_knowing(
            "image-ended",
            "nodes of Kafka",
            f"{listing(old)} run Amazon Linux 2, for which EKS makes no images since November "
            f"2025, and none for Kubernetes 1.33 or newer",
            "move to Amazon Linux 2023 or Bottlerocket with the next rotation",
        )


@rule("nodes", "instances")
def now(seen: ClusterFacts) -> Iterator[Finding]:
    """Find machines that EC2 ends at this moment, or whose checks fail."""
    if ending := [name for name, machine in machines_of(seen).items() if machine.ending]:
        yield broker_may_die(
            "machine-ending",
            "nodes of Kafka",
            f"EC2 ends or stops the machines of {listing(ending)} at this moment, whatever the "
            f"nodes say of themselves",
            "let no other node leave until their brokers are back",
        )
    checked = mapping_of(seen.statuses)
    failing = [
        f"{node.name} ({', '.join(status.impaired)})"
        for node in mapping_of(seen.nodes).values()
        if (status := checked.get(node.instance_id or "")) and status.impaired
    ]
    if failing:
        yield producer_may_stall(
            "machine-impaired",
            "nodes of Kafka",
            f"checks of EC2's fail on {listing(failing)}: the machine may stall, and its group may "
            f"replace it at any moment",
            "replace these nodes one by one, or stop and start the machine",
        )


@rule("templates", "node_roles")
def roles(seen: ClusterFacts) -> Iterator[Finding]:
    """Find groups whose next machine has no role, or one that the cluster does not know."""
    templates, role_of = mapping_of(seen.templates), mapping_of(seen.node_roles)
    for group in mapping_of(seen.groups).values():
        for profile in sorted({t.profile or "" for t in templates.get(group.name, ())}):
            if profile not in role_of:
                continue
            role = role_of[profile]
            if role is None:
                yield producer_may_stall(
                    "template-parts",
                    group.title,
                    f"its template names instance profile {profile}, which is gone or has no "
                    f"role: no replacement starts, or it does not join",
                    "name an instance profile with the nodes' role, before any node leaves",
                )
            elif not isinstance(seen.admitted_roles, Unknown):
                yield from _refused(group, role, seen.admitted_roles)


def _refused(
    group: ScalingGroup, role: NodeRole, admitted: Mapping[str, float | None]
) -> Iterator[Finding]:
    if role.name not in admitted:
        yield producer_may_stall(
            "node-role",
            group.title,
            f"machines that it starts have role {role.name}, which neither an access entry nor "
            f"aws-auth lets into the cluster: a replacement does not join",
            "make an access entry of type EC2_LINUX for that role, or name it in aws-auth",
        )
    elif (made := admitted[role.name]) is not None and made < role.created:
        yield producer_may_stall(
            "node-role-older",
            group.title,
            f"the access entry of its machines' role {role.name} was made at {clock(made)}, and "
            f"the role at {clock(role.created)}. The entry is for an earlier role of that name, "
            "and a replacement does not join",
            "delete the access entry and make it again for the role that is there",
        )


CAPACITY_TYPE, ZONE = "karpenter.sh/capacity-type", "topology.kubernetes.io/zone"


def findings(pool: NodePool, nodes: list[Node], pods: list[Pod]) -> Iterator[Finding]:
    """Find a pool that is deleted, shrinks, starts nothing, or starts what brokers cannot use."""
    subject = f"NodePool {pool.name}"
    if pool.leaving:
        yield broker_may_die(
            "karpenter-deleted",
            subject,
            "it is being deleted: Karpenter drains all of its nodes and ends them",
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


DO_NOT_DISRUPT = ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict")
DISRUPTED_TAINT = "karpenter.sh/disrupted"
HARMLESS = ("Never", "WhenEmpty")
AT_MOST_ONE = ("0", "0%", "1")
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@rule("node_pools")
def node_pools(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pools whose nodes are replaced by age, by price, by drift or by force."""
    for name in pool_names(seen):
        nodes = [node for node in mapping_of(seen.nodes).values() if node.node_pool == name]
        names = {node.name for node in nodes}
        pods = [pod for pod in known_items(seen.pods) if pod.node in names]
        kept = {node.name for node in nodes if _is_undisturbed(node.annotations)}
        pool = mapping_of(seen.node_pools).get(name)
        if any(node.auto_mode for node in nodes):
            yield _auto(name, pool)
        elif pool is not None:
            yield from _expiry(pool, pods)
        if pool is not None:
            exposed = _exposed_pods([pod for pod in pods if pod.node not in kept])
            yield from _grace(pool, pods)
            yield from _consolidation(pool, exposed)
            yield from _drift(pool, exposed)
            yield from _toleration(pool, pods)
            yield from findings(pool, nodes, pods)


def _auto(name: str, pool: NodePool | None) -> Finding:
    own = f", here after {pool.expire_after}" if pool and pool.expire_after else ""
    return broker_may_die(
        "auto-mode",
        f"NodePool {name}",
        f"its nodes are EKS Auto Mode's, which replaces every node after 21 days at the "
        f"latest{own}, by force when a drain takes too long",
        "run brokers on groups of your own, or replace their nodes yourself before that",
    )


def _expiry(pool: NodePool, pods: list[Pod]) -> Iterator[Finding]:
    if pool.expire_after is None or (not pool.forceful and not _exposed_pods(pods)):
        return
    forced = f", and after {pool.grace} deletes what is left" if pool.grace else ""
    how = (
        f"whatever the pool's budgets say{forced}"
        if pool.forceful
        else "at a time that Kafka did not choose"
    )
    yield Finding(
        "karpenter-expiry",
        Weight.BROKER if pool.forceful else Weight.PRODUCER,
        f"NodePool {pool.name}",
        f"expireAfter is {pool.expire_after}: Karpenter drains a node of that age {how}",
        "set expireAfter to Never and replace the nodes of brokers one by one",
    )


def _grace(pool: NodePool, pods: list[Pod]) -> Iterator[Finding]:
    least, given = grace_of(pods), seconds(pool.grace or "")
    if given is not None and given <= least:
        yield broker_may_die(
            "karpenter-grace",
            f"NodePool {pool.name}",
            f"terminationGracePeriod is {pool.grace}, and brokers ask for {least} s to stop: "
            f"Karpenter deletes them before, whatever PodDisruptionBudgets say",
            f"raise terminationGracePeriod well above {least} s",
        )


def _consolidation(pool: NodePool, exposed: list[str]) -> Iterator[Finding]:
    budget = pool.strictest_budget("Underutilized")
    # Karpenter consolidates no static pool.
    still = pool.consolidation in HARMLESS or pool.replicas is not None
    if still or not exposed or (budget is not None and budget.written in AT_MOST_ONE):
        return
    held = "no budget holds that to one node at a time"
    if budget is not None and budget.count(pool.nodes or 0) <= 1:
        held = f"a budget of {budget.written} is one node at a time while the pool is small"
    yield producer_may_stall(
        "karpenter-consolidation",
        f"NodePool {pool.name}",
        f"consolidationPolicy is {pool.consolidation}: brokers are moved whenever fewer or "
        f"cheaper machines would do, {held}, and {listing(exposed)} do not say {DO_NOT_DISRUPT[0]}",
        f"set consolidationPolicy to WhenEmpty or a budget of 1 node, or annotate the pods "
        f"with {DO_NOT_DISRUPT[0]} until their nodes are to be rotated",
    )


def _drift(pool: NodePool, exposed: list[str]) -> Iterator[Finding]:
    """Find a pool of which a new image, or a change of its template, replaces nodes together."""
    budget = pool.strictest_budget("Drifted")
    if not exposed or (budget is not None and budget.count(pool.nodes or 0) <= 1):
        return
    many = "all of its nodes" if budget is None else f"{budget.count(pool.nodes or 0)} of its nodes"
    yield producer_may_stall(
        "karpenter-drift",
        f"NodePool {pool.name}",
        f"after a new image, or a change of its template, Karpenter replaces {many} at once. No "
        f"budget for Drifted holds that to one, and {listing(exposed)} do not say "
        f"{DO_NOT_DISRUPT[0]}",
        "add a budget of 1 node for every reason",
    )


def _toleration(pool: NodePool, pods: list[Pod]) -> Iterator[Finding]:
    tolerant = [pod.title for pod in pods if pod.ignores_disruption]
    if tolerant:
        yield broker_may_die(
            "karpenter-toleration",
            f"NodePool {pool.name}",
            f"{listing(tolerant)} tolerate {DISRUPTED_TAINT}: Karpenter evicts them never, and "
            f"ends their node under them",
            "name the taints that the pods tolerate, instead of all of them",
        )


def _exposed_pods(pods: list[Pod]) -> list[str]:
    return [pod.title for pod in pods if not _is_undisturbed(pod.annotations)]


def _is_undisturbed(annotations: Mapping[str, str]) -> bool:
    return any(annotations.get(key) == "true" for key in DO_NOT_DISRUPT)


@rule("node_provisioners")
def controllers(seen: ClusterFacts) -> Iterator[Finding]:
    """Find nodes of Karpenter's whose controller is away, or hears nothing from AWS."""
    if isinstance(seen.node_provisioners, Unknown):
        return
    nodes = mapping_of(seen.nodes).values()
    pools = {node.node_pool for node in nodes if node.node_pool and not node.auto_mode}
    if not pools:
        return
    subject = f"NodePools {listing(pools)}"
    running = [each for each in seen.node_provisioners if not each.down]
    if not running:
        down = listing(each.title for each in seen.node_provisioners)
        yield producer_may_stall(
            "karpenter-missing",
            subject,
            (f"no pod of {down} is available" if down else "no controller of Karpenter's was found")
            + ": a node that is lost is not replaced",
            "bring Karpenter's controller back before any node leaves",
        )
    for each in running:
        if each.repairs:
            yield producer_may_stall(
                "karpenter-repair",
                each.title,
                f"feature gate NodeRepair is on: a node of {subject} that is unwell for half an "
                "hour is ended at once, despite budgets and Kafka",
                "take NodeRepair out of FEATURE_GATES, and replace sick nodes one by one",
            )
        if each.queue is None:
            yield broker_may_die(
                "karpenter-deaf",
                each.title,
                f"it has no INTERRUPTION_QUEUE: it drains no node of {subject} that AWS takes "
                f"back, retires or stops, and the machine ends with its broker",
                "name a queue that receives EC2's and Health's events, as Karpenter documents",
            )


def seconds(written: str) -> float | None:
    """Return a Go duration (1h30m) in seconds, or None where it is none."""
    parts = re.findall(r"([0-9.]+)(ms|h|m|s)", written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        return None
    return sum(float(number) * SECONDS[unit] for number, unit in parts)
