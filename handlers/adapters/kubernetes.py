"""Asks Kubernetes for the handlers: eight lists, a Secret, marks on Nodes and pods, a notice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol
from urllib.parse import quote
from uuid import uuid4

from core.availability.operator import OperatorView
from core.fields import epoch
from core.incidents.nodeclaims import DO_NOT_DISRUPT, takes_pods
from core.incidents.observation import BudgetView, NodeView, PodView
from core.naming import (
    CLUSTER_LABEL,
    COUNTED_ANNOTATION,
    EBS_CSI_DRIVER,
    MAY_LEAVE_LABEL,
    NODE_POOL_LABEL,
    ZONE_LABEL,
    budget_of_the_staying,
)
from core.placement import PodNeeds, allocatable_of, needs_of, taints_of
from core.selectors import is_selected
from handlers.adapters.claims import CLAIM, claim_troubles
from handlers.adapters.eks import EksApi, Json
from handlers.adapters.kafka_pod import has_ended, holds, kafka_pod_in
from handlers.adapters.operator import operator_view
from handlers.adapters.shapes import known_shape

# Cluster Autoscaler takes no node that says so; the second says for whom, so that nobody else's
# mark is ever taken off.
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SPARE_ANNOTATION = "stillwater.dev/spare-for"
# On a node that was cordoned for an incident: nobody else's cordon is ever taken off.
CORDON_ANNOTATION = "stillwater.dev/cordoned-for"
ATTACHMENTS_PATH = "/apis/storage.k8s.io/v1/volumeattachments"
OUR_POOLS: Mapping[str, Sequence[str]] = {NODE_POOL_LABEL: ()}
OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}


# Of a kubelet's own words.
LONGEST_SAID = 200
# Of the budget over those who stay (infra.kafka.budgets).
_UNLABELLED = {"key": MAY_LEAVE_LABEL, "operator": "DoesNotExist"}
# Written by the EKS node monitoring agent, where it is installed; False is a machine in trouble.
AGENT_CONDITIONS = frozenset(
    {
        "KernelReady",
        "NetworkingReady",
        "StorageReady",
        "ContainerRuntimeReady",
        "AcceleratedHardwareReady",
    }
)


class Nodes(Protocol):
    """What the handlers ask of Kubernetes."""

    def nodes(self) -> tuple[NodeView, ...]:
        """Return every node."""

    def kafka_pods(self) -> tuple[PodView, ...]:
        """Return the cluster's Kafka pods, scheduled or not."""

    def kafka_pod(self, name: str) -> PodView | None:
        """Return one of the cluster's Kafka pods as it is now; None: there is none that runs."""

    def attachments(self) -> dict[str, tuple[str, ...]]:
        """Return the attached EBS volumes by node name."""

    def claim_troubles(self, pod: str) -> tuple[str, ...]:
        """Return what keeps the volumes of a Kafka pod's claims from it, as clauses."""

    def tenants(self, node: str) -> tuple[PodNeeds, ...]:
        """Return every pod on a node that has not ended, of whatever namespace."""

    def server_version(self) -> str:
        """Return the API server's version, major and minor."""

    def budgets(self) -> tuple[BudgetView, ...]:
        """Return the disruption budgets over Kafka's pods."""

    def operator(self) -> OperatorView:
        """Return what Strimzi's resources of the cluster tell of its operator's work."""

    def let_leave(self, pod: str, incident_id: str) -> None:
        """Label a Kafka pod that may be evicted beside others, and have the others' budget counted.

        One that is told to stop, or gone, is left alone. Raises Conflict when somebody changed it
        meanwhile.
        """

    def keep(self, pod: str, incident_id: str) -> None:
        """Take an incident's label off a pod; one for another incident stays."""

    def mark_spare(self, node: str, incident_id: str | None) -> None:
        """Keep a node from Cluster Autoscaler for an incident; None leaves it to it again."""

    def set_out_of_service(self, node: str, instance_id: str, *, tainted: bool) -> None:
        """Place the out-of-service taint on an instance's Node, or take it off.

        A Node that is gone, or another instance's by now, is left alone. Raises Conflict when
        somebody changed it meanwhile.
        """

    def release_attachments(self, node: str) -> None:
        """Delete the VolumeAttachments of a Node that is gone; one that stands keeps its own."""


class EksNodes:
    """What the handlers read from an EKS cluster."""

    def __init__(
        self,
        api: EksApi,
        namespace: str,
        kafka_cluster: str,
        pool_labels: Mapping[str, Sequence[str]] = OUR_POOLS,
    ) -> None:
        self._api = api
        self._pool_labels = pool_labels
        self._namespace = namespace
        self._kafka_cluster = kafka_cluster

    @known_shape("The Kubernetes API")
    def nodes(self) -> tuple[NodeView, ...]:
        csi = self._api.list("/apis/storage.k8s.io/v1/csinodes")
        drivers = {
            item["metadata"]["name"]: driver
            for item in csi
            for driver in item["spec"].get("drivers") or ()
            if driver["name"] == EBS_CSI_DRIVER
        }
        return tuple(
            _node(item, drivers.get(item["metadata"]["name"]), self._pool_labels)
            for item in self._api.list("/api/v1/nodes")
        )

    @known_shape("The Kubernetes API")
    def claim_troubles(self, pod: str) -> tuple[str, ...]:
        path = f"/api/v1/namespaces/{quote(self._namespace)}/persistentvolumeclaims"
        items = self._api.list(path, labelSelector=f"{CLUSTER_LABEL}={self._kafka_cluster}")
        mine = (item for item in items if _is_claim_of(pod, item["metadata"]["name"]))
        return tuple(said for item in mine for said in claim_troubles(item))

    @known_shape("The Kubernetes API")
    def tenants(self, node: str) -> tuple[PodNeeds, ...]:
        items = self._api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        return tuple(needs_of(item) for item in items if not has_ended(item))

    @known_shape("The Kubernetes API")
    def kafka_pods(self) -> tuple[PodView, ...]:
        return tuple(pod for item in self._kafka_items() if (pod := kafka_pod_in(item)) is not None)

    @known_shape("The Kubernetes API")
    def kafka_pod(self, name: str) -> PodView | None:
        found = self._pod_found(name)
        return None if found is None else kafka_pod_in(found)

    def _ours(self, pod: Json) -> bool:
        labels: Json = pod["metadata"].get("labels") or {}
        return labels.get(CLUSTER_LABEL) == self._kafka_cluster

    @known_shape("The Kubernetes API")
    def server_version(self) -> str:
        found = self._api.get("/version", {})
        return f"{found['major']}.{found['minor'].rstrip('+')}"

    @known_shape("The Kubernetes API")
    def attachments(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for item in self._attachments():
            spec = item["spec"]
            volume = spec["source"].get("persistentVolumeName") or item["metadata"]["name"]
            found[spec["nodeName"]] = (*found.get(spec["nodeName"], ()), volume)
        return found

    def _attachments(self) -> Iterator[Json]:
        for item in self._api.list(ATTACHMENTS_PATH):
            if item["spec"]["attacher"] == EBS_CSI_DRIVER:
                yield item

    @known_shape("The Kubernetes API")
    def budgets(self) -> tuple[BudgetView, ...]:
        path = f"/apis/policy/v1/namespaces/{quote(self._namespace)}/poddisruptionbudgets"
        found = list(self._api.list(path))
        if not found:
            return ()
        pods = list(self._kafka_items())
        return tuple(_budget(item, pods) for item in found)

    def operator(self) -> OperatorView:
        return operator_view(self._api, self._namespace, self._kafka_cluster)

    def let_leave(self, pod: str, incident_id: str) -> None:
        found = self._pod_found(pod)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        if found["metadata"].get("labels", {}).get(MAY_LEAVE_LABEL) != incident_id:
            self._label(found, incident_id)
        # The disruption controller counts anew the budget that a changed pod is under, and not the
        # one that it was under: until it does, that one would let another go.
        namespace, name = quote(self._namespace), budget_of_the_staying(self._kafka_cluster)
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{quote(name)}"
        self._api.merge(path, {"metadata": {"annotations": {COUNTED_ANNOTATION: uuid4().hex}}})

    def keep(self, pod: str, incident_id: str) -> None:
        found = self._pod_found(pod)
        if found is not None and found["metadata"].get("labels", {}).get(MAY_LEAVE_LABEL) == (
            incident_id
        ):
            self._label(found, None)

    def _label(self, pod: Json, incident_id: str | None) -> None:
        """Write the label in the version it was read in: a pod made anew is another one."""
        metadata = pod["metadata"]
        change = {
            "resourceVersion": metadata["resourceVersion"],
            "labels": {MAY_LEAVE_LABEL: incident_id},
        }
        path = f"/api/v1/namespaces/{quote(self._namespace)}/pods/{quote(metadata['name'])}"
        self._api.merge(path, {"metadata": change})

    def _pod_found(self, name: str) -> Json | None:
        """Return one of the cluster's own pods."""
        path = f"/api/v1/namespaces/{quote(self._namespace)}/pods/{quote(name)}"
        found = self._api.find(path)
        return found if found is not None and self._ours(found) else None

    def mark_spare(self, node: str, incident_id: str | None) -> None:
        marks = {
            SCALE_DOWN_DISABLED: None if incident_id is None else "true",
            SPARE_ANNOTATION: incident_id,
        }
        self._patch_node(node, {"metadata": {"annotations": marks}})

    def set_out_of_service(self, node: str, instance_id: str, *, tainted: bool) -> None:
        path = f"/api/v1/nodes/{quote(node)}"
        found = self._api.find(path)
        if found is None or _instance_of(found) != instance_id:
            return
        taints = found["spec"].get("taints") or []
        others = [t for t in taints if t["key"] != OUT_OF_SERVICE["key"]]
        wanted = [*others, OUT_OF_SERVICE] if tainted else others
        if len(wanted) == len(taints):
            return
        # The list is replaced as a whole, so it is replaced in the version it was read in.
        version = found["metadata"]["resourceVersion"]
        self._patch_node(
            node, {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted}}
        )

    def release_attachments(self, node: str) -> None:
        # Listed before the Node is looked for: whatever a next node of this name attaches is not
        # among them.
        left = [item for item in self._attachments() if item["spec"]["nodeName"] == node]
        if self._api.find(f"/api/v1/nodes/{quote(node)}") is not None:
            return
        for item in left:
            self._api.delete(
                f"{ATTACHMENTS_PATH}/{quote(item['metadata']['name'])}", item["metadata"]["uid"]
            )

    def _patch_node(self, node: str, body: Json) -> None:
        self._api.merge(f"/api/v1/nodes/{quote(node)}", body)

    def _kafka_items(self) -> Iterator[Json]:
        path = f"/api/v1/namespaces/{quote(self._namespace)}/pods"
        return self._api.list(path, labelSelector=f"{CLUSTER_LABEL}={self._kafka_cluster}")


def _is_claim_of(pod: str, name: str) -> bool:
    named = CLAIM.fullmatch(name)
    return named is not None and named["pod"] == pod


def _sick(item: Json) -> dict[str, float]:
    """Return which of the node monitoring agent's conditions are False, and since when."""
    return {
        each["type"]: epoch(each.get("lastTransitionTime")) or 0.0
        for each in item.get("status", {}).get("conditions") or ()
        if each.get("type") in AGENT_CONDITIONS and each.get("status") == "False"
    }


def _unready(item: Json) -> Json:
    """Return the Ready condition of a kubelet: False by its own word, Unknown by its silence."""
    conditions = item.get("status", {}).get("conditions") or ()
    unready = (c for c in conditions if c.get("type") == "Ready" and c.get("status") != "True")
    return next(unready, {})


def _node(
    item: Json, ebs_driver: Json | None, pool_labels: Mapping[str, Sequence[str]]
) -> NodeView:
    labels, spec = item["metadata"].get("labels", {}), item.get("spec", {})
    marks, unready = item["metadata"].get("annotations") or {}, _unready(item)
    return NodeView(
        name=item["metadata"]["name"],
        instance_id=_instance_of(item),
        zone=labels.get(ZONE_LABEL),
        pool=_pool(labels, pool_labels),
        sick=_sick(item),
        unready_since=epoch(unready.get("lastTransitionTime")),
        unready_why=str(unready.get("message") or "")[:LONGEST_SAID],
        created_at=epoch(item["metadata"].get("creationTimestamp")),
        ready=holds(item, "Ready"),
        schedulable=takes_pods(spec),
        csi_ready=ebs_driver is not None,
        spare_for=marks.get(SPARE_ANNOTATION),
        do_not_disrupt=marks.get(DO_NOT_DISRUPT) not in {None, "false"},
        kubelet=item.get("status", {}).get("nodeInfo", {}).get("kubeletVersion", ""),
        boot_id=item.get("status", {}).get("nodeInfo", {}).get("bootID") or None,
        cordoned_for=marks.get(CORDON_ANNOTATION),
        labels=labels,
        taints=taints_of(item),
        allocatable=allocatable_of(item, ebs_driver),
        out_of_service=any(
            taint["key"] == OUT_OF_SERVICE["key"] for taint in spec.get("taints") or ()
        ),
    )


def _pool(labels: Json, pool_labels: Mapping[str, Sequence[str]]) -> str | None:
    """Return the pool that a node's labels name; None: it is in none that is meant."""
    for key, values in pool_labels.items():
        if (said := labels.get(key)) and (not values or said in values):
            return str(said)
    return None


def _instance_of(node: Json) -> str | None:
    """Return the instance that a Node stands for: aws:///<zone>/<instance id>."""
    provider_id: str = node.get("spec", {}).get("providerID", "")
    return provider_id.rpartition("/")[2] or None


def _budget(item: Json, pods: list[Json]) -> BudgetView:
    selector = item.get("spec", {}).get("selector")
    return BudgetView(
        name=item["metadata"]["name"],
        pods=frozenset(
            pod["metadata"]["name"]
            for pod in pods
            if is_selected(pod["metadata"].get("labels") or {}, selector)
        ),
        disruptions_allowed=item.get("status", {}).get("disruptionsAllowed", 0),
        yields=_UNLABELLED in ((selector or {}).get("matchExpressions") or ()),
    )
