"""Judges who makes a pod of Kafka leave: evictors, budgets, webhooks, preempting pods.

Sources: the eviction API and the disruption controller; Strimzi's Drain Cleaner; Cluster
Autoscaler's rules; RBAC; the scheduler, which deletes pods of lower priority and asks no webhook.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.checks.facts import ClusterFacts, every_kafka, node_of, pods_of
from core.checks.finding import (
    Finding,
    Weight,
    broker_may_die,
    listing,
    producer_may_stall,
    rule,
    worth_knowing,
)
from core.ground.fields import Unknown, known_items
from core.model.kafka import Pod, Rival
from core.model.nodes import share
from core.model.workloads import Autoscaler, DisruptionBudget, DrainCleaner

# Kinds whose size the disruption controller can ask for; of others it takes a whole minAvailable.
SCALABLE = ("StatefulSet", "ReplicaSet", "ReplicationController", "Deployment")

# Drain Cleaner knows pods by it.
STRIMZIS = "strimzi.io/cluster"


@rule("pods", "budgets")
def budgets(seen: ClusterFacts) -> Iterator[Finding]:
    """Find brokers that anybody may evict, that nobody can, or whose eviction is an error."""
    if isinstance(seen.budgets, Unknown) or isinstance(seen.pods, Unknown):
        return
    for kafka in every_kafka(seen):
        bare, doubled = [], set()
        for pod in pods_of(seen, kafka):
            over = sorted(budget.name for budget in seen.budgets if budget.covers(pod))
            if not over:
                bare.append(pod.name)
            elif len(over) > 1:
                doubled.add(", ".join(over))
        if bare:
            yield broker_may_die(
                "budget-missing",
                kafka.title,
                f"no PodDisruptionBudget covers {listing(bare)}: all of them may be evicted at "
                f"once",
                "make one that lets one pod leave: minAvailable, one less than the pods, for "
                "Strimzi's, maxUnavailable 1 for a StatefulSet's. Or let Strimzi make its own "
                "(STRIMZI_POD_DISRUPTION_BUDGET_GENERATION)",
            )
        for names in sorted(doubled):
            yield broker_may_die(
                "budget-several",
                kafka.title,
                f"{names} cover the same pods: the eviction API answers 500 and no drain ends",
                "leave one of them",
            )
    for budget in seen.budgets:
        if covered := [pod for pod in seen.pods if budget.covers(pod)]:
            yield from _allowance(budget, covered, seen)


def allowed_disruptions(budget: DisruptionBudget, covered: list[Pod]) -> int:
    """Return how many of the covered pods may be out at once by a budget."""
    if _uncountable(budget, covered):
        return 0
    if budget.desired_healthy is not None and budget.expected_pods is not None:
        return budget.expected_pods - budget.desired_healthy
    count = len(covered)
    if budget.least_available is not None:
        return count - share(budget.least_available, count)
    return share(budget.most_unavailable or "0", count)


def _uncountable(budget: DisruptionBudget, covered: list[Pod]) -> bool:
    shares = budget.most_unavailable is not None or (budget.least_available or "").endswith("%")
    return shares and any(pod.owner and pod.owner not in SCALABLE for pod in covered)


def _allowance(
    budget: DisruptionBudget, covered: list[Pod], seen: ClusterFacts
) -> Iterator[Finding]:
    leave = allowed_disruptions(budget, covered)
    # Drain Cleaner moves Strimzi's pods alone.
    strimzis = any(pod.labels.get(STRIMZIS) for pod in covered)
    clean = _cleaners(seen, budget.namespace) if strimzis else []
    if leave <= 0 and clean == []:
        owner = next((pod.owner for pod in covered if pod.owner), None)
        why = (
            f"the disruption controller cannot count pods of a {owner} for a share or "
            f"maxUnavailable"
            if _uncountable(budget, covered)
            else "it lets no pod go"
        )
        yield broker_may_die(
            "budget-blocks",
            budget.title,
            f"{why}, and nothing rolls its pods: every drain waits until the node is taken by "
            f"force",
            f"set minAvailable to {max(1, len(covered) - 1)}"
            + (", or install Strimzi's Drain Cleaner" if strimzis else ""),
        )
    if leave > 1:
        yield producer_may_stall(
            "budget-loose",
            budget.title,
            f"of {budget.expected_pods or len(covered)} pods it lets {leave} leave at once",
            "let one pod leave at a time",
        )
    if budget.unready_always and any(pod.broker or pod.controller for pod in covered):
        yield producer_may_stall(
            "budget-unready",
            budget.title,
            "unhealthyPodEvictionPolicy is AlwaysAllow: brokers that run and are not ready, as "
            "while they recover their logs, may all be evicted at once",
            "set unhealthyPodEvictionPolicy to IfHealthyBudget",
        )
    lenient = [each for each in clean or () if each.drains_kafka and not each.denies]
    if leave > 0 and lenient:
        yield producer_may_stall(
            "cleaner-passed",
            lenient[0].title,
            f"it denies nothing (STRIMZI_DENY_EVICTION is false) and {budget.title} lets {leave} "
            "go. An eviction takes the pod without a look at replicas",
            "set maxUnavailable of template.podDisruptionBudget to 0, or let it deny",
        )


def _cleaners(seen: ClusterFacts, namespace: str) -> list[DrainCleaner] | None:
    """Return the Drain Cleaners that look at a namespace; None where nobody can tell."""
    if isinstance(seen.cleaners, Unknown):
        return None
    return [
        each
        for each in seen.cleaners
        if each.drains_kafka and (each.namespaces is None or namespace in each.namespaces)
    ]


@rule("kafkas", "eviction_webhooks")
def webhooks(seen: ClusterFacts) -> Iterator[Finding]:
    """Find evictions that nobody judges by Kafka's replicas, or that nobody can answer."""
    if isinstance(seen.eviction_webhooks, Unknown) or isinstance(seen.cleaners, Unknown):
        return
    for each in seen.eviction_webhooks:
        if each.unanswered:
            end = "every eviction is refused" if each.fails_closed else "evictions pass it unasked"
            yield Finding(
                "webhook-dead",
                Weight.BROKER if each.fails_closed else Weight.PRODUCER,
                each.title,
                f"it asks {each.unanswered}: {end}",
                "have it answered again, or remove it",
            )
    asked = [each for each in seen.eviction_webhooks if not (each.general or each.mutating)]
    unasked = [
        k for k in known_items(seen.kafkas) if not any(w.asked_in(k.namespace) for w in asked)
    ]
    if unasked:
        installed = listing(each.title for each in seen.cleaners)
        yield producer_may_stall(
            "eviction-unasked",
            "evictions" if not asked else f"evictions in {listing(k.namespace for k in unasked)}",
            "no webhook judges their evictions"
            + (f", though {installed} runs" if installed else "")
            + ": a budget counts ready pods, and a broker is ready before its replicas are in sync",
            "install Strimzi's Drain Cleaner, or another gate that looks at the replicas",
        )


@rule("kafkas", "cleaners")
def cleaners(seen: ClusterFacts) -> Iterator[Finding]:
    """Find Drain Cleaners that leave a Kafka out, or deny what a drainer does not try again."""
    for cleaner in known_items(seen.cleaners):
        if cleaner.down:
            yield producer_may_stall(
                "cleaner-down",
                cleaner.title,
                "none of its pods is available: it moves no broker",
                "look at its pods",
            )
        if not cleaner.drains_kafka:
            yield producer_may_stall(
                "cleaner-off",
                cleaner.title,
                "STRIMZI_DRAIN_KAFKA is false: it leaves Kafka's pods to the eviction API",
                "set STRIMZI_DRAIN_KAFKA to true",
            )
        elif cleaner.denies and (handlers := known_items(seen.handlers)):
            yield broker_may_die(
                "cleaner-denies",
                cleaner.title,
                f"it denies evictions with status 500, which {handlers[0].title} does not try "
                "again. The drain fails at once, and the hook may end before Strimzi has moved "
                "the broker",
                "set STRIMZI_DENY_EVICTION to false with maxUnavailable 0, so that the budget "
                "answers 429, or let the queue deliver for as long as the hook waits",
            )
        left = {k.namespace for k in known_items(seen.kafkas)} - (cleaner.namespaces or frozenset())
        if cleaner.drains_kafka and cleaner.namespaces is not None and left:
            yield producer_may_stall(
                "cleaner-elsewhere",
                cleaner.title,
                f"STRIMZI_DRAIN_NAMESPACES does not name {listing(left)}: there it leaves "
                f"evictions to the budgets",
                "add the namespace to STRIMZI_DRAIN_NAMESPACES",
            )


SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KEPT = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@rule("pods", "autoscalers")
def autoscalers(seen: ClusterFacts) -> Iterator[Finding]:
    """Find brokers whose node an autoscaler may take away because it looks idle."""
    for scaler in known_items(seen.autoscalers):
        if not scaler.scales_down:
            continue
        for kafka in every_kafka(seen):
            taken = [pod for pod in pods_of(seen, kafka) if _is_protected(pod, scaler, seen)]
            if taken:
                yield producer_may_stall(
                    "autoscaler",
                    kafka.title,
                    f"{scaler.title} may take the nodes of {listing(pod.name for pod in taken)} "
                    f"away when they look idle",
                    f"annotate the pods with {SAFE_TO_EVICT}: 'false'",
                )


def _is_protected(pod: Pod, scaler: Autoscaler, seen: ClusterFacts) -> bool:
    """Say whether a pod keeps Cluster Autoscaler from its node neither by itself nor by that."""
    node = node_of(pod, seen)
    if node is not None and node.annotations.get(KEPT) == "true":
        return False
    said = pod.annotations.get(SAFE_TO_EVICT)
    if said in {"true", "false"} or node is None:
        return said == "true"
    # It knows what brings a StatefulSet's pods back, and of Strimzi's own sets only if told. It
    # touches no node of Karpenter's.
    known = scaler.takes_custom or pod.owner == "StatefulSet"
    return known and node.node_pool is None


@rule("evictors")
def evictors(seen: ClusterFacts) -> Iterator[Finding]:
    """Name what else evicts pods by its own rules, or may."""
    named = known_items(seen.evictors)
    for each in known_items(seen.entitled):
        if each.title not in {known.title for known in named}:
            yield worth_knowing(
                "evictor",
                each.title,
                f"{each.by_role} lets it evict pods or delete nodes; when it does was not judged",
                "find out whether it touches the nodes of Kafka, and what it asks before",
            )
    for each in named:
        yield worth_knowing(
            "evictor",
            each.title,
            f"{each.tool} evicts pods or drains nodes by its own rules, those of Kafka among them",
            "keep it away from the nodes of Kafka, or have a webhook judge its drains",
        )


# What people may give a class of their own; above are Kubernetes' own, which every cluster runs.
MOST_OF_PEOPLE = 1_000_000_000
_KEEPING_OFF = ("NoSchedule", "NoExecute")
_REMEDY = (
    "give Kafka's pods a priorityClassName above theirs, or keep others off Kafka's nodes by a "
    "taint"
)


@rule("pods", "rivals")
def preemption(seen: ClusterFacts) -> Iterator[Finding]:
    """Find pods of others for which the scheduler may delete pods of Kafka."""
    for kafka in every_kafka(seen):
        pods = pods_of(seen, kafka)
        waiting, running = dict[Rival, list[Pod]](), dict[Rival, list[Pod]]()
        for rival in known_items(seen.rivals):
            below = [
                pod for pod in pods if pod.priority < rival.priority and _fits(rival, pod, seen)
            ]
            if below and rival.waits:
                waiting[rival] = below
            elif below and rival.priority <= MOST_OF_PEOPLE:
                running[rival] = below
        for rivals, waits in ((waiting, True), (running, False)):
            if rivals:
                names = {pod.name for below in rivals.values() for pod in below}
                yield Finding(
                    "preempted" if waits else "preemptible",
                    Weight.BROKER if waits else Weight.ADVICE,
                    kafka.title,
                    f"{listing(each.title for each in rivals)} "
                    f"{'wait for room' if waits else 'run'}, have a higher priority and fit on "
                    f"nodes of {listing(names)}. If capacity is short, the scheduler deletes these "
                    "for them, and asks no webhook",
                    _REMEDY,
                )


def _fits(rival: Rival, pod: Pod, seen: ClusterFacts) -> bool:
    """Say whether another's pod may be placed where a pod of Kafka's is."""
    node = node_of(pod, seen)
    return (
        node is not None
        and rival.wants.fits(node.labels)
        and all(
            rival.wants.tolerates(taint.key, taint.value, taint.effect)
            for taint in node.taints
            if taint.effect in _KEEPING_OFF
        )
    )
