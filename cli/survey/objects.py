"""Reads what objects of Kubernetes' have in common: names, labels, owners, states, variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.eks.api import Object

Item = Mapping[str, Any]


def name_of(item: Item) -> str:
    return str(item["metadata"]["name"])


def title_of(item: Item) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def labels(item: Item) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def annotations_of(item: Item) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def kafka_of(item: Item) -> str:
    """Return the Kafka that an object of Strimzi's belongs to."""
    return labels(item).get("strimzi.io/cluster", "")


def going(item: Item) -> bool:
    """Say whether somebody has deleted an object that is not gone yet."""
    return bool((item.get("metadata") or {}).get("deletionTimestamp"))


def status_of(item: Item) -> Object:
    return item.get("status") or {}


def is_condition(item: Item, kind: str, *, true: bool = True) -> bool:
    """Say whether a condition holds, or that it does not; neither where the status has no such."""
    # Strimzi writes some of them in small letters.
    return str(_condition(item, kind).get("status")).lower() == str(true).lower()


def is_ready(item: Item) -> bool | None:
    """Say whether an object's condition Ready holds; None where its status has no such."""
    return is_condition(item, "Ready") if _condition(item, "Ready") else None


def reason_of(item: Item, kind: str) -> str:
    """Return what a condition says, on one line."""
    found = _condition(item, kind)
    said = found.get("message") or found.get("reason") or "no reason is given"
    return " ".join(str(said).split())


def _condition(item: Item, kind: str) -> Object:
    every = status_of(item).get("conditions") or ()
    return next((each for each in every if each.get("type") == kind), {})


def controller_of(item: Item) -> str | None:
    """Return the kind of what makes an object and brings it back; None: nothing does."""
    owners = item["metadata"].get("ownerReferences") or ()
    return next((str(each["kind"]) for each in owners if each.get("controller")), None)


def variable(container: Item, name: str) -> str:
    """Return a variable of a container's environment, as far as it is written there."""
    found = (each.get("value") for each in container.get("env") or () if each.get("name") == name)
    return str(next(found, None) or "")
