"""Clears Kafka for `stillwater destroy`, beside the engine: brokers first, volumes last.

A broker whose controllers stop before it has left waits five minutes for a controlled shutdown that
nobody grants. A deleted KafkaNodePool is gone at once while its pods still stop, so no order among
the engine's resources can wait for them; this does. Of an environment that is not ephemeral nothing
is touched here: the engine refuses to destroy it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cli.volumes import VolumesApi, delete_retained
from core.errors import StillwaterError
from core.naming import BROKER_ROLE_LABEL, CONTROLLER_ROLE_LABEL, KAFKA, STRIMZI_OPERATOR
from infra.eks.api import ApiError

STRIMZI = "/apis/kafka.strimzi.io/v1"
# What needs a living Kafka to be let go of goes before it; Kafka goes before its pools, else its
# operator takes the missing pool for a mistake.
BEFORE_BROKERS = ("kafkaconnectors", "kafkaconnects", "kafkatopics", "kafkausers", "kafkas")
POOLS = "kafkanodepools"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
BROKERS_ONLY = ["broker"]
# Longer than a broker's grace, which is longer than its controlled shutdown (ADR 0005).
LIMIT_SECONDS = 600.0
POLL_SECONDS = 0.5
NOT_FOUND = 404


class FarewellApi(VolumesApi, Protocol):
    """The requests made here."""

    def get(self, path: str, **query: object) -> dict[str, Any]: ...

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Farewell:
    """What is done before and after each layer of an ephemeral environment that is destroyed."""

    api: Callable[[], FarewellApi]
    namespace: str

    def before(self, layer: str) -> None:
        if layer == KAFKA:
            let_brokers_go(self.api(), self.namespace)

    def after(self, layer: str) -> None:
        if layer == KAFKA:
            delete_retained(self.api(), self.namespace)
            delete_init_bindings(self.api(), self.namespace)


def let_brokers_go(api: FarewellApi, namespace: str, limit_seconds: float = LIMIT_SECONDS) -> None:
    """Delete what a namespace's brokers serve, then the brokers, and wait until they have left.

    Nodes that are controllers too stay: their pools are the engine's to delete.
    """
    deadline = time.monotonic() + limit_seconds
    root = f"{STRIMZI}/namespaces/{namespace}"
    for plural in BEFORE_BROKERS:
        path = f"{root}/{plural}"
        for item in _items(api, path):
            _delete(api, f"{path}/{item['metadata']['name']}")
        while left := _items(api, path):
            _wait(left, deadline, limit_seconds)
    pools = [p for p in _items(api, f"{root}/{POOLS}") if p["spec"]["roles"] == BROKERS_ONLY]
    names = {pool["metadata"]["name"] for pool in pools}
    for name in sorted(names):
        _delete(api, f"{root}/{POOLS}/{name}")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    selector = f"{BROKER_ROLE_LABEL}=true,{CONTROLLER_ROLE_LABEL}!=true"
    while left := _items(api, pods, labelSelector=selector):
        _wait(left, deadline, limit_seconds)


def delete_init_bindings(api: FarewellApi, namespace: str) -> None:
    """Delete the ClusterRoleBindings of a namespace that Strimzi's operator has left behind.

    It deletes them itself, unless it was away when a Kafka or a KafkaConnect went.
    """
    selector = f"app.kubernetes.io/managed-by={STRIMZI_OPERATOR}"
    for binding in _items(api, BINDINGS, labelSelector=selector):
        if {each.get("namespace") for each in binding.get("subjects") or ()} == {namespace}:
            _delete(api, f"{BINDINGS}/{binding['metadata']['name']}")


def _items(api: FarewellApi, path: str, **query: object) -> list[dict[str, Any]]:
    """Return what there is, nothing where the kind itself is not known."""
    try:
        return list(api.get(path, **query)["items"])
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        return []


def _delete(api: FarewellApi, path: str) -> None:
    try:
        api.delete(path, {"propagationPolicy": "Background"})
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise


def _wait(left: list[dict[str, Any]], deadline: float, limit_seconds: float) -> None:
    if time.monotonic() > deadline:
        names = ", ".join(sorted(item["metadata"]["name"] for item in left))
        raise StillwaterError(
            f"{names} did not go within {limit_seconds:.0f} s; see their events and the Strimzi "
            f"operator's log, and run destroy again."
        )
    time.sleep(POLL_SECONDS)
