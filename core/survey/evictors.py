"""Judges who else empties nodes: Cluster Autoscaler, tools that are known, accounts that may.

Source: Cluster Autoscaler's rules of what blocks a scale-down; Kubernetes' RBAC.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.survey.facts import Surveyed, every_kafka, node_of, pods_of
from core.survey.finding import Finding, listing, producer_may_stall, worth_knowing
from core.survey.kafka_facts import Pod
from core.survey.tool_facts import Autoscaler
from core.unknown import of

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
KEPT = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


def autoscalers(seen: Surveyed) -> Iterator[Finding]:
    """Find brokers whose node an autoscaler may take away because it looks idle."""
    for scaler in of(seen.autoscalers):
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


def _is_protected(pod: Pod, scaler: Autoscaler, seen: Surveyed) -> bool:
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


def evictors(seen: Surveyed) -> Iterator[Finding]:
    """Name what else evicts pods by its own rules, or may."""
    named = of(seen.evictors)
    for each in of(seen.entitled):
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
            "keep it away from the nodes of Kafka, or see that its drains are asked about",
        )
