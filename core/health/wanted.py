"""Reads which nodes a Kafka is to have, and their roles, where no description of ours says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core.naming import BROKER_ROLE_LABEL, CONTROLLER_ROLE_LABEL, POOL_LABEL, node_id_of_pod


def roles_wanted(pod_sets: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return node id -> broker, controller or combined, of StrimziPodSets: the pods to be there.

    >>> labels = {"strimzi.io/pool-name": "a", "strimzi.io/broker-role": "true"}
    >>> roles_wanted([{"spec": {"pods": [{"metadata": {"name": "orders-a-7", "labels": labels}}]}}])
    {7: 'broker'}
    """
    return {
        node_id: _role(metadata.get("labels") or {})
        for metadata in _pods(pod_sets)
        if (node_id := node_id_of_pod(str(metadata["name"]))) is not None
        and POOL_LABEL in (metadata.get("labels") or {})
    }


def pods_wanted(pod_sets: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the pods that a Kafka is to have.

    >>> labels = {"strimzi.io/pool-name": "a"}
    >>> pods_wanted([{"spec": {"pods": [{"metadata": {"name": "orders-a-7", "labels": labels}}]}}])
    frozenset({'orders-a-7'})
    """
    return frozenset(
        str(metadata["name"])
        for metadata in _pods(pod_sets)
        if POOL_LABEL in (metadata.get("labels") or {})
    )


def _pods(pod_sets: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for each in pod_sets:
        yield from (pod["metadata"] for pod in each["spec"].get("pods") or ())


def _role(labels: Mapping[str, str]) -> str:
    broker = labels.get(BROKER_ROLE_LABEL) == "true"
    controller = labels.get(CONTROLLER_ROLE_LABEL) == "true"
    if broker and controller:
        return "combined"
    return "controller" if controller else "broker"
