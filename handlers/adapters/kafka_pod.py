"""Reads a Kafka pod as the API server shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.availability.operator import is_roll_asked, revisions
from core.fields import epoch
from core.health.pods import trouble_of
from core.incidents.observation import PodView
from core.incidents.pod_marks import ignores_disruption, undisturbed_until
from core.naming import (
    MAY_LEAVE_LABEL,
    POOL_LABEL,
    node_id_of_pod,
)
from core.placement import needs_of


def holds(item: Mapping[str, Any], kind: str) -> bool:
    conditions = item.get("status", {}).get("conditions") or ()
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def has_ended(item: Mapping[str, Any]) -> bool:
    return item.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def kafka_pod_in(item: Mapping[str, Any]) -> PodView | None:
    """Read a Kafka pod; a pod of the cluster that is no Kafka node is None."""
    metadata = item["metadata"]
    labels, marks = metadata.get("labels", {}), metadata.get("annotations") or {}
    roles = [r for r in ("broker", "controller") if labels.get(f"strimzi.io/{r}-role") == "true"]
    node_id = node_id_of_pod(metadata["name"])
    # The entity operator and exporters carry the cluster's label, and no pool.
    if node_id is None or has_ended(item) or POOL_LABEL not in labels:
        return None
    trouble = trouble_of(item)
    return PodView(
        name=metadata["name"],
        node_id=node_id,
        role="combined" if len(roles) == 2 else next(iter(roles), None),
        node_name=item.get("spec", {}).get("nodeName"),
        ready=holds(item, "Ready") and "deletionTimestamp" not in metadata,
        stopping="deletionTimestamp" in metadata,
        out_since=_out_since(item),
        trouble=trouble.word,
        cause=trouble.cause,
        revisions=revisions(marks),
        roll_asked=is_roll_asked(marks),
        grace_seconds=item.get("spec", {}).get("terminationGracePeriodSeconds"),
        may_leave=labels.get(MAY_LEAVE_LABEL),
        undisturbed_until=undisturbed_until(item),
        ignores_disruption=ignores_disruption(item),
        needs=needs_of(item),
    )


def _out_since(item: Mapping[str, Any]) -> float | None:
    """Return since when a pod is not Ready, in epoch seconds; None: it is.

    One that has no node yet has no such condition: the scheduler's counts, or its making. One that
    was told to stop is out when its time to stop ends.
    """
    if "deletionTimestamp" in item["metadata"]:
        return epoch(item["metadata"]["deletionTimestamp"])
    conditions = {c["type"]: c for c in item.get("status", {}).get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    for kind in ("Ready", "PodScheduled"):
        told = conditions.get(kind, {})
        if told.get("status") == "False" and told.get("lastTransitionTime"):
            return epoch(told["lastTransitionTime"])
    return epoch(item["metadata"].get("creationTimestamp"))
