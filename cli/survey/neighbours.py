"""Reads the pods of others that stand on nodes of Kafka into core.survey's facts."""

from __future__ import annotations

from collections.abc import Collection

from cli.survey.listing import items
from cli.survey.objects import annotations_of, controller_of, labels, name_of
from cli.survey.pods import has_ended
from core.survey.tool_facts import Neighbour
from infra.eks.api import Api, Object

# A pod that the kubelet runs by itself, as the API server shows it.
MIRROR = "kubernetes.io/config.mirror"
# What a drain leaves on its node.
STAYING = ("DaemonSet", "Node")


def neighbours(
    api: Api, nodes: Collection[str], kafkas: Collection[tuple[str, str]]
) -> tuple[Neighbour, ...]:
    """Return what a drain of some nodes evicts beside the pods of Kafka (by namespace and name)."""
    return tuple(
        _neighbour(item)
        for item in items(api, "/api/v1", "pods")
        if item["spec"].get("nodeName") in nodes
        and (item["metadata"]["namespace"], item["metadata"]["name"]) not in kafkas
        and not has_ended(item)
        and MIRROR not in annotations_of(item)
        and controller_of(item) not in STAYING
    )


def _neighbour(item: Object) -> Neighbour:
    return Neighbour(
        namespace=str(item["metadata"]["namespace"]),
        name=name_of(item),
        node=str(item["spec"]["nodeName"]),
        grace_seconds=int(item["spec"].get("terminationGracePeriodSeconds", 30)),
        labels=labels(item),
        alone=controller_of(item) is None,
    )
