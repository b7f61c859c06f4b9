"""Judges what else a drain of Kafka's nodes waits for: pods of others that stand beside brokers.

Sources: the eviction API and the disruption controller; how drainers wait for every pod of a node.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed
from core.survey.finding import Finding, listing, producer_may_stall, worth_knowing
from core.survey.tool_facts import DisruptionBudget, Neighbour
from core.unknown import Unknown, of

# Strimzi's label of pods of a Kafka, ZooKeeper's among them.
KIND = "strimzi.io/kind"


def neighbours(seen: Surveyed) -> Iterator[Finding]:
    """Find pods of others that no drain of their node gets rid of, or only late."""
    every = of(seen.neighbours)
    if not isinstance(seen.budgets, Unknown):
        budgets = seen.budgets
        kept = [
            (each, why)
            for each in every
            if not _is_moved(each, seen) and (why := _bar(each, budgets))
        ]
        if kept:
            yield producer_may_stall(
                "drain-barred",
                "nodes of Kafka",
                f"beside brokers run {listing(f'{each.title} ({why})' for each, why in kept)}: a "
                f"drain of {listing(each.node for each, _ in kept)} waits for these until it is "
                f"over its time, or the node is taken by force",
                "let their budgets allow one pod to leave (two replicas or more), or keep such "
                "pods off the nodes of Kafka by a taint",
            )
    yield from _slow(every, seen)
    if bare := [each for each in every if each.alone]:
        yield worth_knowing(
            "pod-alone",
            "nodes of Kafka",
            f"beside brokers run {listing(each.title for each in bare)}, which nothing makes "
            f"again: a drain deletes them for good, or stops at them",
            "run them as Deployments or Jobs, or off the nodes of Kafka",
        )


def _is_moved(pod: Neighbour, seen: Surveyed) -> bool:
    """Say whether Drain Cleaner has Strimzi move a pod: of a Kafka elsewhere, or ZooKeeper's."""
    if pod.labels.get(KIND) != "Kafka":
        return False
    return isinstance(seen.cleaners, Unknown) or any(
        each.namespaces is None or pod.namespace in each.namespaces for each in seen.cleaners
    )


def _bar(pod: Neighbour, budgets: tuple[DisruptionBudget, ...]) -> str | None:
    """Return why the eviction API lets a pod not go."""
    over = sorted((each for each in budgets if each.covers(pod)), key=lambda each: each.name)
    if len(over) > 1:
        return f"covered by {' and '.join(each.name for each in over)}, which is an error"
    for budget in over:
        if budget.desired_healthy is None or budget.expected_pods is None:
            continue
        if budget.desired_healthy >= budget.expected_pods:
            return f"budget {budget.name} lets none of its {budget.expected_pods} leave"
        if budget.allowed_now == 0:
            return f"budget {budget.name} lets none leave today"
    return None


def _slow(every: tuple[Neighbour, ...], seen: Surveyed) -> Iterator[Finding]:
    """Find pods that may take longer to stop than a termination handler gives a drain."""
    given = [each.drain_timeout_seconds for each in of(seen.handlers) if each.queue_mode]
    if not given:
        return
    slow = [each for each in every if each.grace_seconds >= min(given)]
    if slow:
        yield worth_knowing(
            "drain-slow",
            "nodes of Kafka",
            "beside brokers run "
            + listing(f"{each.title} ({each.grace_seconds} s to stop)" for each in slow)
            + f", and the termination handler gives a drain {min(given)} s: it fails while they "
            f"still stop, and is begun again",
            "keep such pods off the nodes of Kafka by a taint, or raise "
            "NODE_TERMINATION_GRACE_PERIOD",
        )
