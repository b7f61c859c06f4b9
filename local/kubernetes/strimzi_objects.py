"""Writes for the twin's operator: objects applied once, pods made and removed, a Ready condition.

Shared by the reconcilers of Kafka, Connect and topics; each holds what it wants, this what it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core import naming
from local.journal import Journal
from local.kubernetes import crds
from local.kubernetes.client import Api, ApiError
from local.kubernetes.node_object import timestamp
from local.kubernetes.strimzi_resources import digest
from local.kubernetes.strimzi_rolling import is_ready, next_to_roll, revision

STRIMZI = f"/apis/{crds.GROUP}/{crds.VERSION}"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{}/pods",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
}

Object = Mapping[str, Any]


class OperatorObjects:
    """The operator's hand on one API server."""

    def __init__(self, api: Api, journal: Journal) -> None:
        self._api, self._journal = api, journal
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

    def bring(
        self, wanted: Mapping[str, Object], live: Mapping[str, Object], *, roll: bool = True
    ) -> list[str]:
        """Make missing pods, remove surplus ones, restart one outdated one; return who is not
        ready yet."""
        for name, rendered in wanted.items():
            if name not in live:
                self._create(rendered)
        for name, pod in live.items():
            ended = pod.get("status", {}).get("phase") in {"Failed", "Succeeded"}
            if (name not in wanted or ended) and "deletionTimestamp" not in pod["metadata"]:
                self._delete(pod, "pod_removed")
        outdated = next_to_roll(wanted, live) if roll else None
        if outdated is not None:
            self._delete(live[outdated], "pod_rolled")
        return [
            name
            for name, rendered in wanted.items()
            if name not in live
            or not is_ready(live[name])
            or revision(live[name]) != revision(rendered)
        ]

    def report(self, current: Object, path: str, *, ready: bool, reason: str, message: str) -> bool:
        """Write a resource's Ready condition when it changed; say whether it turned."""
        status = current.get("status") or {}
        generation = current["metadata"]["generation"]
        condition = {"type": "Ready", "status": str(ready), "reason": reason, "message": message}
        known: Sequence[Object] = status.get("conditions") or []
        before = next((c for c in known if c["type"] == "Ready"), {})
        if status.get("observedGeneration") == generation and condition.items() <= before.items():
            return False
        flipped = before.get("status") != condition["status"]
        since = timestamp() if flipped else before["lastTransitionTime"]
        self._api.merge(
            f"{path}/status",
            {
                "status": {
                    "observedGeneration": generation,
                    "conditions": [{**condition, "lastTransitionTime": since}],
                }
            },
        )
        return flipped

    def _create(self, rendered: Object) -> None:
        metadata = rendered["metadata"]
        name = metadata["name"]
        try:
            self._api.post(PATHS["Pod"].format(metadata["namespace"]), rendered)
        except ApiError as error:
            if error.status != 409:  # the watch has not shown us our own pod yet
                raise
            return
        kafka = metadata["labels"].get("strimzi.io/kind") == "Kafka"
        node_id = naming.node_id_of_pod(name) if kafka else None
        self._journal.write("strimzi", "pod_created", pod=name, node_id=node_id)

    def _delete(self, pod: Object, event: str) -> None:
        metadata = pod["metadata"]
        try:
            self._api.delete(f"{PATHS['Pod'].format(metadata['namespace'])}/{metadata['name']}")
        except ApiError as error:
            if error.status != 404:
                raise
            return
        self._journal.write("strimzi", event, pod=metadata["name"])


def resource_path(plural: str, resource: Object) -> str:
    """Return where a resource of Strimzi's is."""
    metadata = resource["metadata"]
    return f"{STRIMZI}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"
