"""Writes for the twin's operator: objects applied once, conditions written when they change.

Shared by the reconcilers of Kafka, Connect, topics and users.
"""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from kafka.errors import KafkaError

from core.ground import naming
from core.ground.errors import StillwaterError
from local.kubernetes import crds
from local.kubernetes.client import Api
from local.kubernetes.node import timestamp
from local.kubernetes.strimzi_resources import POD_SET_API, digest

STRIMZI = f"/apis/{crds.GROUP}/{crds.VERSION}"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "StrimziPodSet": f"/apis/{POD_SET_API}/namespaces/{{}}/strimzipodsets",
}
SINCE = "lastTransitionTime"
READY: Mapping[str, str] = {"type": "Ready", "status": "True"}

Object = Mapping[str, Any]


class OperatorObjects:
    """The operator's hand on one API server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._applied: dict[str, str] = {}

    def forget(self) -> None:
        """Apply everything again next time: somebody else may have changed it."""
        self._applied.clear()

    def apply(self, rendered: Object) -> None:
        """Apply an object unless the very same was applied since the last `forget`."""
        metadata = rendered["metadata"]
        path = f"{PATHS[rendered['kind']].format(metadata['namespace'])}/{metadata['name']}"
        now = digest(rendered)
        if self._applied.get(path) != now:
            self._api.apply(path, rendered, field_manager=naming.STRIMZI_OPERATOR)
            self._applied[path] = now

    def report(self, resource: Object, path: str, *conditions: Object, **status: object) -> bool:
        """Write a resource's status when it changed; say whether its conditions turned.

        It speaks of the resource's generation, unless `observedGeneration` is another.
        """
        known = resource.get("status") or {}
        before = {(c["type"], c["status"]): c for c in known.get("conditions") or ()}
        wanted = {
            "observedGeneration": resource["metadata"]["generation"],
            "conditions": [
                {SINCE: before.get((c["type"], c["status"]), {}).get(SINCE, timestamp()), **c}
                for c in conditions
            ],
            **status,
        }
        if any(known.get(key) != value for key, value in wanted.items()):
            self._api.merge(f"{path}/status", {"status": wanted})
        return before.keys() != {(c["type"], c["status"]) for c in conditions}


def not_ready(reason: str, message: str) -> dict[str, str]:
    """Return the condition of what failed, as the cluster operator words it."""
    return {"type": "NotReady", "status": "True", "reason": reason, "message": message}


def resource_path(plural: str, resource: Object) -> str:
    """Return where a resource of Strimzi's is."""
    metadata = resource["metadata"]
    return f"{STRIMZI}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"


LOG = logging.getLogger("strimzi")


class EntityOperator(ABC):
    """Brings all resources of a kind to what they say, in its own thread: Kafka may be slow."""

    kind: ClassVar[str]
    retry_seconds: ClassVar[float]

    def __init__(self, api: Api, objects: OperatorObjects) -> None:
        self._api, self._objects = api, objects
        self._work: queue.Queue[Object | None] = queue.Queue()

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop: on every change, and again on what did not succeed."""
        while not stop.is_set():
            try:
                gone = self._work.get(timeout=self.retry_seconds)
            except queue.Empty:
                gone = None
            try:
                if gone is not None:
                    self._forget(gone)
                self._reconcile_all()
            except (StillwaterError, KafkaError, OSError) as error:
                LOG.warning("%s: %s", self.kind, error)

    def _on_change(self, event: str, entity: Object) -> None:
        self._work.put(entity if event == "DELETED" else None)

    @abstractmethod
    def _reconcile_all(self) -> None: ...
    @abstractmethod
    def _forget(self, entity: Object) -> None: ...


def kafka_of(entity: Object) -> tuple[str, str]:
    """Return the namespace and the name of the Kafka that a topic or user is of."""
    metadata = entity["metadata"]
    return metadata["namespace"], (metadata.get("labels") or {}).get(naming.CLUSTER_LABEL, "")
