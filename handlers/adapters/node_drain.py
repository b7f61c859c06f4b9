"""Drains a node through Kubernetes ourselves: its pods, a cordon, one eviction."""

from __future__ import annotations

from typing import Any, Protocol
from urllib.parse import quote

from core.incidents.pods_on_node import PodOnNode
from core.naming import CLUSTER_LABEL, POOL_LABEL
from handlers.adapters.eks import EksApi
from handlers.adapters.kafka_pod import has_ended
from handlers.adapters.kubernetes import CORDON_ANNOTATION
from handlers.adapters.shapes import known_shape

Json = dict[str, Any]
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class Cordons(Protocol):
    """Keeps new pods off nodes."""

    def cordon(self, node: str, incident_id: str) -> None:
        """Keep new pods off a node; one that takes none, or is gone, is left alone."""

    def uncordon(self, node: str, incident_id: str) -> None:
        """Let a node take pods again that was cordoned for this incident."""


class NodeDrain(Cordons, Protocol):
    """Empties nodes."""

    def pods_on(self, node: str) -> tuple[PodOnNode, ...]:
        """Return the pods on a node that have not ended."""

    def evict(self, namespace: str, name: str, uid: str) -> str | None:
        """Ask for the eviction of this very pod; return why it was refused for now, if it was."""


class EksDrain:
    """Empties nodes of an EKS cluster through its eviction API."""

    def __init__(self, api: EksApi, namespace: str, kafka_cluster: str) -> None:
        self._api, self._namespace, self._kafka_cluster = api, namespace, kafka_cluster

    @known_shape("The Kubernetes API")
    def pods_on(self, node: str) -> tuple[PodOnNode, ...]:
        items = self._api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        return tuple(self._pod(item) for item in items if not has_ended(item))

    def cordon(self, node: str, incident_id: str) -> None:
        found = self._api.find(f"/api/v1/nodes/{quote(node)}")
        if found is None or found.get("spec", {}).get("unschedulable"):
            return
        self._mark(found, {"unschedulable": True}, incident_id)

    def uncordon(self, node: str, incident_id: str) -> None:
        found = self._api.find(f"/api/v1/nodes/{quote(node)}")
        if found is None or _annotations(found).get(CORDON_ANNOTATION) != incident_id:
            return
        self._mark(found, {"unschedulable": None}, None)

    def _mark(self, node: Json, spec: Json, incident_id: str | None) -> None:
        """Write the node in the version it was read in: somebody else may cordon it meanwhile."""
        metadata = {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {CORDON_ANNOTATION: incident_id},
        }
        path = f"/api/v1/nodes/{quote(node['metadata']['name'])}"
        self._api.merge(path, {"metadata": metadata, "spec": spec})

    def evict(self, namespace: str, name: str, uid: str) -> str | None:
        path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(name)}/eviction"
        return self._api.ask(
            path,
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": namespace},
                # A pod made anew under this name is another one. The API server tries for longer
                # than we wait before it says so; the next look has its own reading.
                "deleteOptions": {"preconditions": {"uid": uid}},
            },
        )

    def _pod(self, item: Json) -> PodOnNode:
        metadata = item["metadata"]
        labels = metadata.get("labels") or {}
        owners = metadata.get("ownerReferences") or ()
        return PodOnNode(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            stays=MIRROR_ANNOTATION in _annotations(item)
            or any(owner["kind"] == "DaemonSet" for owner in owners),
            owned=bool(owners),
            stopping="deletionTimestamp" in metadata,
            kafka=metadata["namespace"] == self._namespace
            and labels.get(CLUSTER_LABEL) == self._kafka_cluster
            and POOL_LABEL in labels,
        )


def _annotations(item: Json) -> Json:
    found: Json = item["metadata"].get("annotations") or {}
    return found
