"""Which pod the twin's operator starts or restarts next: pure decisions over what the API shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from local.kubernetes.lookups import has_condition
from local.kubernetes.strimzi_model import KafkaPodNode
from local.kubernetes.strimzi_resources import REVISION

Object = Mapping[str, Any]


def start_order(nodes: Iterable[KafkaPodNode]) -> list[KafkaPodNode]:
    """Return controllers first: brokers cannot register before there is a quorum."""
    return sorted(nodes, key=lambda node: (not node.is_controller, node.node_id))


def next_to_roll(wanted: Mapping[str, Object], live: Mapping[str, Object]) -> str | None:
    """Return the pod to restart for a changed configuration: one at a time, unready ones first.

    Nothing is restarted while any other pod is missing, going or not ready.
    """
    outdated = [
        name
        for name, rendered in wanted.items()
        if name in live
        and "deletionTimestamp" not in live[name]["metadata"]
        and revision(live[name]) != revision(rendered)
    ]
    unready = [name for name in wanted if name not in live or not is_ready(live[name])]
    for name in sorted(outdated, key=lambda name: name not in unready):
        if set(unready) <= {name}:
            return name
    return None


def revision(pod: Object) -> str | None:
    value = (pod["metadata"].get("annotations") or {}).get(REVISION)
    return None if value is None else str(value)


def is_ready(pod: Object) -> bool:
    """Say whether a pod, or a resource of Strimzi's, is Ready and staying."""
    return "deletionTimestamp" not in pod["metadata"] and has_condition(pod)
