"""Judges how nodes and pods are made to leave: hooks, groups, budgets, NTH, Drain Cleaner.

Sources: EC2 Auto Scaling's lifecycle hooks, EKS's managed node groups, the eviction API,
aws-node-termination-handler's settings, Karpenter's disruption, EKS Auto Mode.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Node, NodePool, Pod, ScalingGroup, Surveyed, Unread
from core.survey.finding import Finding, Weight

# Processes without which no lost node comes back.
REPLACING = ("Launch", "Terminate", "HealthCheck", "ReplaceUnhealthy")
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def groups(seen: Surveyed) -> Iterator[Finding]:
    """Find groups that end a node with its broker on it, or cannot replace it in its zone."""
    if isinstance(seen.groups, Unread):
        return
    for group in seen.groups.values():
        subject = f"Auto Scaling group {group.name}"
        yield from _room(group, subject)
        yield from _hooks(group, subject, seen)


def _room(group: ScalingGroup, subject: str) -> Iterator[Finding]:
    if len(group.zones) > 1:
        moving = "AZRebalance" not in group.suspended
        yield Finding(
            "group-zones",
            Weight.BROKER if moving else Weight.PRODUCER,
            subject,
            f"it spans {', '.join(sorted(group.zones))}: a replacement may start where the "
            f"broker's volume is not"
            + (", and AZRebalance ends nodes to even out the zones" if moving else ""),
            "make a group per zone" + (", and suspend AZRebalance until then" if moving else ""),
        )
    if group.desired >= group.maximum:
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


def _hooks(group: ScalingGroup, subject: str, seen: Surveyed) -> Iterator[Finding]:
    if group.managed_node_group:
        yield Finding(
            "managed-node-group",
            Weight.BROKER,
            subject,
            f"it is managed node group {group.managed_node_group}: EKS ends a node 15 minutes "
            f"after it began to drain it, whatever PodDisruptionBudgets say, when the group "
            f"shrinks or is rebalanced",
            "move the brokers to groups of your own with termination hooks, or make no change of "
            "its size while a broker cannot leave; never update it with force",
        )
        return
    if not group.hooks:
        yield Finding(
            "hook-missing",
            Weight.BROKER,
            subject,
            "no lifecycle hook holds a node that terminates: the instance goes at once, with its "
            "broker running",
            "add a hook for autoscaling:EC2_INSTANCE_TERMINATING with default result ABANDON",
        )
    least = max((pod.grace_seconds for pod in _on(group, seen)), default=0)
    beaten = not isinstance(seen.handlers, Unread) and any(h.beats_hooks for h in seen.handlers)
    for hook in group.hooks:
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
        if hook.heartbeat_seconds <= least and not beaten:
            yield Finding(
                "hook-heartbeat",
                Weight.BROKER,
                subject,
                f"hook {hook.name} waits {hook.heartbeat_seconds} s and its brokers have "
                f"{least} s to stop: unless somebody records heartbeats it runs out in the middle",
                f"raise its heartbeat timeout above {least} s, or record heartbeats",
            )


def budgets(seen: Surveyed) -> Iterator[Finding]:
    """Find brokers that anybody may evict, that nobody can, or whose eviction is an error."""
    if isinstance(seen.budgets, Unread) or isinstance(seen.pods, Unread):
        return
    cleaned = isinstance(seen.cleaners, Unread) or bool(seen.cleaners)
    for pod in seen.pods:
        over = [budget for budget in seen.budgets if budget.covers(pod)]
        names = ", ".join(sorted(budget.name for budget in over))
        if not over:
            yield Finding(
                "budget-missing",
                Weight.BROKER,
                pod.title,
                "no PodDisruptionBudget covers it: all of its kind may be evicted at once",
                "let Strimzi make its own again (STRIMZI_POD_DISRUPTION_BUDGET_GENERATION), or "
                "make one with maxUnavailable 1",
            )
        elif len(over) > 1:
            yield Finding(
                "budget-several",
                Weight.BROKER,
                pod.title,
                f"{names} cover it at once: the eviction API answers 500 and no drain ends",
                "leave one of them",
            )
    for budget in seen.budgets:
        if not any(budget.covers(pod) for pod in seen.pods):
            continue
        subject = f"PodDisruptionBudget {budget.namespace}/{budget.name}"
        allowed = budget.expected_pods - budget.desired_healthy
        if budget.expected_pods and allowed <= 0 and not cleaned:
            yield Finding(
                "budget-blocks",
                Weight.BROKER,
                subject,
                f"it wants {budget.desired_healthy} of {budget.expected_pods} pods healthy and "
                f"nothing rolls them: every drain waits until the node is taken by force",
                "set maxUnavailable to 1, or install Strimzi's Drain Cleaner",
            )
        elif allowed > 1:
            yield Finding(
                "budget-loose",
                Weight.PRODUCER,
                subject,
                f"it wants {budget.desired_healthy} of {budget.expected_pods} pods healthy: "
                f"{allowed} may leave at once",
                "set maxUnavailable to 1",
            )


def handlers(seen: Surveyed) -> Iterator[Finding]:
    """Find node termination handlers that do not hear, are too quick, or compete."""
    if isinstance(seen.handlers, Unread):
        return
    if not seen.handlers and not isinstance(seen.groups, Unread):
        own = sorted(g.name for g in seen.groups.values() if g.managed_node_group is None)
        if own:
            yield Finding(
                "nth-missing",
                Weight.BROKER,
                "node termination handler",
                f"none was found, and nothing else was seen that drains the nodes of "
                f"{', '.join(own)} before they go",
                "install aws-node-termination-handler in queue mode, or another drainer",
            )
    if len(seen.handlers) > 1:
        yield Finding(
            "nth-several",
            Weight.BROKER,
            "node termination handlers",
            f"{', '.join(h.title for h in seen.handlers)} drain the same nodes, each by its own "
            f"rules",
            "leave the one in queue mode",
        )
    least = max((pod.grace_seconds for pod in _of_pods(seen)), default=0)
    for handler in seen.handlers:
        if not handler.queue_mode:
            yield Finding(
                "nth-mode",
                Weight.BROKER,
                handler.title,
                "it listens to the instance metadata only: it hears spot's two minutes and no "
                "lifecycle hook, and completes none",
                "run it in queue mode (ENABLE_SQS_TERMINATION_DRAINING)",
            )
        if 0 <= handler.pod_grace_seconds < least:
            yield Finding(
                "nth-pod-grace",
                Weight.BROKER,
                handler.title,
                f"it gives every pod {handler.pod_grace_seconds} s to stop, and brokers ask for "
                f"{least} s",
                "set POD_TERMINATION_GRACE_PERIOD to -1",
            )
        if handler.drain_timeout_seconds <= least:
            yield Finding(
                "nth-timeout",
                Weight.BROKER,
                handler.title,
                f"it gives a drain {handler.drain_timeout_seconds} s, and a broker may take "
                f"{least} s to stop: the drain has failed while the broker still stops",
                f"set NODE_TERMINATION_GRACE_PERIOD above {least}",
            )


def evictions(seen: Surveyed) -> Iterator[Finding]:
    """Find evictions that nobody judges by Kafka's replicas, or that are denied for good."""
    webhooks = seen.eviction_webhooks
    if isinstance(seen.cleaners, Unread) or isinstance(webhooks, Unread):
        return
    if not webhooks:
        yield Finding(
            "eviction-unasked",
            Weight.PRODUCER,
            "evictions",
            "no webhook is asked about them: a budget counts ready pods, and a broker is ready "
            "before its replicas are in sync",
            "install Strimzi's Drain Cleaner, or another gate that looks at the replicas",
        )
    for cleaner in seen.cleaners:
        if not cleaner.drains_kafka:
            yield Finding(
                "cleaner-off",
                Weight.PRODUCER,
                cleaner.title,
                "STRIMZI_DRAIN_KAFKA is false: it leaves Kafka's pods to the eviction API",
                "set STRIMZI_DRAIN_KAFKA to true",
            )
        elif cleaner.denies and not isinstance(seen.handlers, Unread) and seen.handlers:
            yield Finding(
                "cleaner-denies",
                Weight.BROKER,
                cleaner.title,
                f"it denies evictions with status 500, which {seen.handlers[0].title} does not "
                f"try again: the drain fails at once, and the hook may end before Strimzi has "
                f"moved the broker",
                "set STRIMZI_DENY_EVICTION to false with maxUnavailable 0, so that the budget "
                "answers 429, or let the queue deliver for as long as the hook waits",
            )


def node_pools(seen: Surveyed) -> Iterator[Finding]:
    """Find what Karpenter and Auto Mode do to nodes of Kafka by themselves."""
    if isinstance(seen.nodes, Unread):
        return
    for name in sorted({n.node_pool for n in seen.nodes.values() if n.node_pool}):
        nodes = {n.name: n for n in seen.nodes.values() if n.node_pool == name}
        if any(node.auto_mode for node in nodes.values()):
            yield Finding(
                "auto-mode",
                Weight.BROKER,
                f"NodePool {name}",
                "its nodes are EKS Auto Mode's, which replaces every node after 21 days at the "
                "latest",
                "run brokers on groups of your own, or replace their nodes yourself before that",
            )
        if not isinstance(seen.node_pools, Unread) and name in seen.node_pools:
            yield from _pool(seen.node_pools[name], nodes, seen)


def _pool(pool: NodePool, nodes: dict[str, Node], seen: Surveyed) -> Iterator[Finding]:
    subject = f"NodePool {pool.name}"
    if pool.expire_after is not None:
        forced = f", and after {pool.grace} deletes what is left" if pool.grace else ""
        yield Finding(
            "karpenter-expiry",
            Weight.BROKER,
            subject,
            f"expireAfter is {pool.expire_after}: Karpenter drains a node of that age whatever "
            f"its budgets say{forced}",
            "set expireAfter to Never and replace the nodes of brokers one by one",
        )
    limited = any(nodes_at_once in ("0", "0%", "1") for nodes_at_once in pool.budgets)
    exposed = sorted(
        pod.title
        for pod in _of_pods(seen)
        if pod.node in nodes and pod.annotations.get(DO_NOT_DISRUPT) != "true"
    )
    if pool.consolidation != "WhenEmpty" and not limited and exposed:
        yield Finding(
            "karpenter-consolidation",
            Weight.PRODUCER,
            subject,
            f"consolidationPolicy is {pool.consolidation}, no budget holds it to one node at a "
            f"time, and {', '.join(exposed)} do not say {DO_NOT_DISRUPT}",
            f"set consolidationPolicy to WhenEmpty or a budget of 1 node, or annotate the pods "
            f"with {DO_NOT_DISRUPT}",
        )


def orphans(seen: Surveyed) -> Iterator[Finding]:
    """Find nodes of Kafka that nothing would replace."""
    if isinstance(seen.nodes, Unread) or isinstance(seen.group_of, Unread):
        return
    for node in seen.nodes.values():
        if node.node_pool is None and node.instance_id and node.instance_id not in seen.group_of:
            yield Finding(
                "node-alone",
                Weight.PRODUCER,
                f"node {node.name}",
                f"instance {node.instance_id} belongs to no Auto Scaling group and to no "
                f"NodePool: nothing replaces it",
                "run the broker in a group",
            )


def _of_pods(seen: Surveyed) -> tuple[Pod, ...]:
    return () if isinstance(seen.pods, Unread) else seen.pods


def _on(group: ScalingGroup, seen: Surveyed) -> list[Pod]:
    if isinstance(seen.nodes, Unread) or isinstance(seen.group_of, Unread):
        return []
    mine = {
        node.name
        for node in seen.nodes.values()
        if node.instance_id and seen.group_of.get(node.instance_id) == group.name
    }
    return [pod for pod in _of_pods(seen) if pod.node in mine]
