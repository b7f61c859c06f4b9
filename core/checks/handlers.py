"""Judges installations of aws-node-termination-handler: what they hear, and how long they wait.

Source: aws-node-termination-handler's settings, its queue processor and its chart.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.checks.facts import ClusterFacts, grace_of, machine_of, nodes_of, pods_on
from core.checks.finding import Finding, broker_may_die, listing, not_judged, rule
from core.ground.fields import Unknown, known_items, mapping_of
from core.ground.placement import HOST
from core.model.nodes import ScalingGroup
from core.model.workloads import TerminationHandler, TerminationQueue

# aws-node-termination-handler#940 took the completion out, #999 put it back.
COMPLETES_NONE = "1.21.0"


@rule("handlers")
def handlers(seen: ClusterFacts) -> Iterator[Finding]:
    """Find node termination handlers that are missing, compete, do not hear or are too quick."""
    if isinstance(seen.handlers, Unknown) or isinstance(seen.groups, Unknown):
        return
    # EKS drains the nodes of its own groups, Karpenter those of its pools.
    own = {n: g for n, g in seen.groups.items() if g.managed_node_group is None}
    if not own:
        return
    if not seen.handlers and not any(each.hears_hooks for each in known_items(seen.evictors)):
        yield broker_may_die(
            "nth-missing",
            "node termination handler",
            f"none was found, and nothing else was seen that drains the nodes of {listing(own)} "
            f"before they go",
            "install aws-node-termination-handler in queue mode or another drainer, or adopt the "
            "cluster with `drainer: none`",
        )
    if len(seen.handlers) > 1:
        yield broker_may_die(
            "nth-several",
            "node termination handlers",
            f"{listing(h.title for h in seen.handlers)} drain the same nodes, each by its own "
            f"rules",
            "leave the one in queue mode",
        )
    for handler in seen.handlers:
        yield from _hearing(handler, own, seen)
        yield from _patience(handler, own, seen)


def _hearing(
    handler: TerminationHandler, own: dict[str, ScalingGroup], seen: ClusterFacts
) -> Iterator[Finding]:
    if not handler.drains:
        yield broker_may_die(
            "nth-idle",
            handler.title,
            "CORDON_ONLY or DRY_RUN is true: it drains no node",
            "set both to false",
        )
    if handler.down:
        yield broker_may_die(
            "nth-down",
            handler.title,
            "none of its pods is available: it drains no node",
            "look at its pods",
        )
    if handler.refuses:
        yield broker_may_die(
            "nth-refuses",
            handler.title,
            f"{listing(handler.refuses)} is false: it drains no node with such a pod on it, and "
            f"Strimzi's pods have an emptyDir, nodes a DaemonSet's pods",
            f"set {listing(handler.refuses)} to true",
        )
    if handler.queue_mode and not handler.queue_url:
        yield broker_may_die(
            "nth-queueless",
            handler.title,
            "it is in queue mode and has no QUEUE_URL: it hears nothing",
            "name its queue in QUEUE_URL",
        )
    if not handler.queue_mode:
        yield broker_may_die(
            "nth-mode",
            handler.title,
            "it listens to the instance metadata only: it hears "
            + ("" if handler.sees_hooks else "spot's two minutes and no ")
            + "lifecycle hooks, and completes none",
            "run it in queue mode (ENABLE_SQS_TERMINATION_DRAINING)",
        )
        return
    if handler.asks_for_tag and not isinstance(seen.instances, Unknown):
        untagged = [
            name for name, group in own.items() if not _is_tagged(handler.asks_for_tag, group, seen)
        ]
        if untagged:
            yield broker_may_die(
                "nth-tag",
                handler.title,
                f"it drains nothing without tag {handler.asks_for_tag}, which instances of "
                f"{listing(untagged)} lack: it drops their messages, and their hooks run out",
                "put the tag on the groups, propagated at launch, and on the instances they have",
            )
    yield from _completing(handler)
    yield from _looking(handler, own, seen)
    yield from _queue(handler, own, seen)


def _completing(handler: TerminationHandler) -> Iterator[Finding]:
    if handler.version is None:
        yield not_judged(
            "nth-version",
            handler.title,
            "neither its image nor its label app.kubernetes.io/version names its version: "
            f"{COMPLETES_NONE} completes no lifecycle hook, and this may be it",
            "name the version in the image's tag, next to a digest as well",
        )
    elif handler.version == COMPLETES_NONE:
        yield broker_may_die(
            "nth-completes-none",
            handler.title,
            f"version {COMPLETES_NONE} drains a node and completes no lifecycle hook: each one "
            f"runs out, and its default result decides",
            "upgrade aws-node-termination-handler to 1.22.0 or newer",
        )


def _looking(
    handler: TerminationHandler, own: dict[str, ScalingGroup], seen: ClusterFacts
) -> Iterator[Finding]:
    """Find nodes that its lookup does not lead to, such as those named by their instance's id."""
    held = [node for group in own.values() for node in nodes_of(group, seen)]
    known = [(node, machine) for node in held if (machine := machine_of(node, seen))]
    missed = [n.name for n, m in known if not handler.finds(n, m.private_dns_name)]
    if missed:
        yield broker_may_die(
            "nth-lookup",
            handler.title,
            "it looks for a node by EC2's private DNS name, and neither the name nor the label "
            f"{HOST} of {listing(missed)} has it. It finds none of them, and drains none",
            "set USE_PROVIDER_ID to true (useProviderId of its chart, 1.25.4 or newer)",
        )


def _is_tagged(tag: str, group: ScalingGroup, seen: ClusterFacts) -> bool:
    if isinstance(seen.instances, Unknown) or isinstance(seen.group_of, Unknown):
        return True
    mine = [name for name, held in seen.group_of.items() if held == group.name]
    return all(tag in seen.instances[name].tags for name in mine if name in seen.instances)


def _queue(
    handler: TerminationHandler, own: dict[str, ScalingGroup], seen: ClusterFacts
) -> Iterator[Finding]:
    queue = mapping_of(seen.queues).get(handler.queue_url or "")
    if queue is None:
        return
    deaf = [
        name
        for name, group in own.items()
        if group.hooks
        and not any(
            hook.target == queue.arn or queue.hears(name, hook.name) for hook in group.hooks
        )
    ]
    if deaf:
        yield broker_may_die(
            "nth-deaf",
            handler.title,
            f"{_why(queue)} sends lifecycle actions to its queue {handler.queue_url}: it never "
            f"hears that nodes of {listing(deaf)} terminate",
            "make a rule for EC2 Instance-terminate Lifecycle Action of these groups and hooks, "
            "with the queue as its target. Let events.amazonaws.com send to it",
        )
    hook = max((h.heartbeat_seconds for g in own.values() for h in g.hooks), default=0)
    if queue.kept_seconds < max(hook, handler.drain_timeout_seconds):
        yield broker_may_die(
            "nth-queue",
            handler.title,
            f"its queue keeps a message {queue.kept_seconds} s, a drain may take "
            f"{handler.drain_timeout_seconds} s and a hook waits {hook} s. A drain that fails late "
            "is not tried again",
            "keep messages for longer than the longest hook waits",
        )


def _why(queue: TerminationQueue) -> str:
    if queue.patterns and queue.barred:
        return f"{queue.barred}, and nothing else"
    return "no enabled rule"


def _patience(
    handler: TerminationHandler, own: dict[str, ScalingGroup], seen: ClusterFacts
) -> Iterator[Finding]:
    least = grace_of([pod for group in own.values() for pod in pods_on(group, seen)])
    if 0 <= handler.pod_grace_seconds < least:
        yield broker_may_die(
            "nth-pod-grace",
            handler.title,
            f"it gives every pod {handler.pod_grace_seconds} s to stop, and brokers ask for "
            f"{least} s",
            "set POD_TERMINATION_GRACE_PERIOD to -1",
        )
    if handler.drain_timeout_seconds <= least:
        yield broker_may_die(
            "nth-timeout",
            handler.title,
            f"it gives a drain {handler.drain_timeout_seconds} s, and a broker may take "
            f"{least} s to stop: the drain has failed while the broker still stops",
            f"set NODE_TERMINATION_GRACE_PERIOD above {least}",
        )
    if handler.taints_out_of_service:
        yield broker_may_die(
            "nth-out-of-service",
            handler.title,
            "ENABLE_OUT_OF_SERVICE_TAINT is true: it lets volumes be taken from a node that still "
            "runs, with a broker that still writes",
            "set it to false",
        )
