"""Decides which pods the twin's operator restarts, why, and what hinders it.

Pure decisions over what the API server and Kafka show, by Strimzi's rules (KafkaRoller,
KafkaAvailability, KafkaQuorumCheck, KafkaNodeConfigurationDiff).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core.ground import naming
from core.views import ClusterView
from local.kafka.run import SMALL_HEAP_DEFAULTS
from local.kubernetes.client import has_condition
from local.kubernetes.strimzi_model import KafkaPodNode
from local.kubernetes.strimzi_resources import RESOURCE_REVISION, REVISION

Object = Mapping[str, Any]
STUCK = {"CrashLoopBackOff", "ImagePullBackOff", "ContainerCreating"}
# Where a value is this broker's own; a cluster's default, such as min.insync.replicas since
# KIP-966, cannot be unset on one of them.
OF_THE_BROKER = {"STATIC_BROKER_CONFIG", "DYNAMIC_BROKER_CONFIG"}
# In no model of a broker's configuration, so Strimzi takes it for somebody else's.
THROTTLE = ".throttled."


def is_ready(item: Object) -> bool:
    """Say whether a pod, or a resource of Strimzi's, is Ready and staying."""
    return "deletionTimestamp" not in item["metadata"] and has_condition(item)


def is_stuck(pod: Object) -> bool:
    """Say whether a pod cannot be scheduled, or has a container that does not start."""
    status = pod.get("status") or {}
    unschedulable = status.get("phase") == "Pending" and any(
        c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable"
        for c in status.get("conditions") or ()
    )
    states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
    return unschedulable or any(
        (state.get("waiting") or {}).get("reason") in STUCK for state in states
    )


def next_to_roll(wanted: Mapping[str, Object], live: Mapping[str, Object]) -> str | None:
    """Return the worker of Connect to restart: one at a time, those first that are not ready.

    Nothing is restarted while any other pod is missing, going or not ready.
    """
    outdated = [
        name
        for name, pod in live.items()
        if name in wanted
        and "deletionTimestamp" not in pod["metadata"]
        and reasons_to_restart(pod, wanted[name])
    ]
    unready = {name for name in wanted if name not in live or not is_ready(live[name])}
    return next((name for name in sorted(outdated) if unready <= {name}), None)


def reasons_to_restart(pod: Object, wanted: Object) -> list[str]:
    """Return why a pod is no longer what its pod set describes."""
    return [
        f"{annotation} differs"
        for annotation in (REVISION, RESOURCE_REVISION)
        if mark(pod, annotation) != mark(wanted, annotation)
    ]


def asks_by_hand(item: Object) -> bool:
    """Say whether a person asked for a restart of a pod, or of all pods of a pod set."""
    return mark(item, naming.ROLL_ANNOTATION) == "true"


def mark(item: Object, annotation: str) -> str | None:
    value: str | None = (item["metadata"].get("annotations") or {}).get(annotation)
    return value


def roll_order(nodes: Iterable[tuple[KafkaPodNode, bool]]) -> list[list[KafkaPodNode]]:
    """Return the controllers, then the brokers; of both those first that are not ready."""
    ordered = sorted(nodes, key=lambda each: (each[1], each[0].node_id))
    controllers = [node for node, _ in ordered if node.is_controller]
    return [controllers, [node for node, _ in ordered if not node.is_controller]]


def hindrance(node: KafkaPodNode, view: ClusterView) -> str:
    """Return why Kafka cannot do without a node now; empty: it can."""
    if node.is_controller:
        others = [voter for voter in view.voters if voter.node_id != node.node_id]
        caught_up = sum(voter.caught_up for voter in others)
        # A quorum of one has nothing to lose by waiting.
        if others and caught_up < (len(view.voters) + 1) // 2:
            return f"only {caught_up} of {len(view.voters)} controllers would be caught up"
    if node.is_broker:
        for partition in view.held_by(node.node_id):
            spare = len(partition.isr) - partition.min_isr
            is_needed = spare < 0 or (spare == 0 and node.node_id in partition.isr)
            if partition.keepable and is_needed:
                return f"{partition.name} has {len(partition.isr)} replicas in sync"
    return ""


def configuration_changes(
    described: Mapping[str, str], own: Mapping[str, str], found: Mapping[str, Object]
) -> dict[str, str | None]:
    """Return what a broker's configuration lacks; None: the key is to be unset.

    `found` is what the broker says of itself. What it does not know, and what the operator itself
    decides, is left alone.
    """
    changes: dict[str, str | None] = {
        key: value
        for key, value in described.items()
        if key in found and found[key]["value"] not in {value, None}
    }
    ours = described.keys() | own.keys() | SMALL_HEAP_DEFAULTS.keys() | {"broker.id"}
    changes |= {
        key: None
        for key, entry in found.items()
        if key not in ours and entry["config_source"] in OF_THE_BROKER and THROTTLE not in key
    }
    return changes
