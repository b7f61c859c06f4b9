"""Reads the pods of others, beside Kafka's and before them, into core.survey's facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cli.survey.listing import items
from cli.survey.objects import annotations_of, controller_of, labels, name_of, title_of
from cli.survey.pods import has_ended
from core.placement import placement_of
from core.survey.kafka_facts import Rival
from core.survey.tool_facts import Neighbour
from infra.eks.api import Api, Object

# A pod that the kubelet runs by itself, as the API server shows it.
MIRROR = "kubernetes.io/config.mirror"
# What a drain leaves on its node.
STAYING = ("DaemonSet", "Node")


def pods_of_others(api: Api, kafkas: Collection[tuple[str, str]]) -> list[Object]:
    """Return the pods that are not Kafka's (by namespace and name), but those of every node."""
    return [
        item
        for item in items(api, "/api/v1", "pods")
        if (item["metadata"]["namespace"], item["metadata"]["name"]) not in kafkas
        and not has_ended(item)
        and MIRROR not in annotations_of(item)
        and controller_of(item) not in STAYING
    ]


def neighbours(others: Iterable[Object], nodes: Collection[str]) -> tuple[Neighbour, ...]:
    """Return what a drain of some nodes evicts beside the pods of Kafka."""
    return tuple(_neighbour(item) for item in others if item["spec"].get("nodeName") in nodes)


def rivals(others: Iterable[Object]) -> tuple[Rival, ...]:
    """Return the pods for which the scheduler may delete others of a lower priority."""
    return tuple(
        Rival(
            title_of(item),
            priority,
            placement_of(item["spec"]),
            waits=not item["spec"].get("nodeName"),
        )
        for item in others
        if (priority := int(item["spec"].get("priority") or 0)) > 0
        and item["spec"].get("preemptionPolicy", "PreemptLowerPriority") != "Never"
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
