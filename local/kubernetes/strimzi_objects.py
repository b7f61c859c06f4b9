"""Writes for the twin's operator: objects applied once, conditions written when they change.

Shared by the reconcilers of Kafka, Connect, topics and users.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.ground import naming
from local.kubernetes import crds
from local.kubernetes.client import Api
from local.kubernetes.node_object import timestamp
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
