"""Asks Kubernetes for the handlers: nodes, Kafka's pods, NodeClaims, and drains of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote
from uuid import uuid4

from core.availability.operator import OperatorView, is_roll_asked, revisions
from core.ground.errors import Conflict
from core.ground.fields import epoch
from core.ground.naming import (
    CLUSTER_LABEL,
    CORDON_ANNOTATION,
    COUNTED_ANNOTATION,
    EBS_CSI_DRIVER,
    MAY_LEAVE_LABEL,
    NODE_POOL_LABEL,
    POOL_LABEL,
    SCALE_DOWN_DISABLED,
    SPARE_ANNOTATION,
    ZONE_LABEL,
    budget_of_the_staying,
    node_id_of_pod,
)
from core.ground.placement import PodNeeds, allocatable_of, is_selected, needs_of, taints_of
from core.health.pods import trouble_of
from core.incidents.observation import (
    DO_NOT_DISRUPT,
    BudgetView,
    NodeClaim,
    NodeView,
    PodOnNode,
    PodView,
    claim_in,
    ignores_disruption,
    takes_pods,
    undisturbed_until,
)
from handlers.adapters.calls import known_shape
from handlers.adapters.claims import CLAIM, claim_troubles, operator_view
from handlers.adapters.eks import EksApi, Json

if TYPE_CHECKING:
    from core.settings.functions import InCluster, OfClaims


def holds(item: Mapping[str, Any], kind: str) -> bool:
    conditions = item.get("status", {}).get("conditions") or ()
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def has_ended(item: Mapping[str, Any]) -> bool:
    return item.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def kafka_pod_in(item: Mapping[str, Any]) -> PodView | None:
    """Read a Kafka pod; a pod of the cluster that is no Kafka node is None."""
    metadata = item["metadata"]
    labels, marks = metadata.get("labels", {}), metadata.get("annotations") or {}
    roles = [r for r in ("broker", "controller") if labels.get(f"strimzi.io/{r}-role") == "true"]
    node_id = node_id_of_pod(metadata["name"])
    # The entity operator and exporters carry the cluster's label, and no pool.
    if node_id is None or has_ended(item) or POOL_LABEL not in labels:
        return None
    trouble = trouble_of(item)
    return PodView(
        name=metadata["name"],
        node_id=node_id,
        role="combined" if len(roles) == 2 else next(iter(roles), None),
        node_name=item.get("spec", {}).get("nodeName"),
        ready=holds(item, "Ready") and "deletionTimestamp" not in metadata,
        stopping="deletionTimestamp" in metadata,
        out_since=_out_since(item),
        trouble=trouble.word,
        cause=trouble.cause,
        revisions=revisions(marks),
        roll_asked=is_roll_asked(marks),
        grace_seconds=item.get("spec", {}).get("terminationGracePeriodSeconds"),
        may_leave=labels.get(MAY_LEAVE_LABEL),
        undisturbed_until=undisturbed_until(item),
        ignores_disruption=ignores_disruption(item),
        needs=needs_of(item),
    )


def _out_since(item: Mapping[str, Any]) -> float | None:
    """Return since when a pod is not Ready, in epoch seconds; None: it is.

    One that has no node yet has no such condition: the scheduler's counts, or its making. One that
    was told to stop is out when its time to stop ends.
    """
    if "deletionTimestamp" in item["metadata"]:
        return epoch(item["metadata"]["deletionTimestamp"])
    conditions = {c["type"]: c for c in item.get("status", {}).get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    for kind in ("Ready", "PodScheduled"):
        told = conditions.get(kind, {})
        if told.get("status") == "False" and told.get("lastTransitionTime"):
            return epoch(told["lastTransitionTime"])
    return epoch(item["metadata"].get("creationTimestamp"))


ATTACHMENTS_PATH = "/apis/storage.k8s.io/v1/volumeattachments"
OUR_POOLS: Mapping[str, Sequence[str]] = {NODE_POOL_LABEL: ()}
OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}


# Of a kubelet's own words.
LONGEST_SAID = 200
# Of the budget over those who stay (infra.kafka.cluster).
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
        """Return every node."""
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
        """Return what keeps the volumes of a Kafka pod's claims from it, as clauses."""
        path = f"/api/v1/namespaces/{quote(self._namespace)}/persistentvolumeclaims"
        items = self._api.list(path, labelSelector=f"{CLUSTER_LABEL}={self._kafka_cluster}")
        mine = (item for item in items if _is_claim_of(pod, item["metadata"]["name"]))
        return tuple(said for item in mine for said in claim_troubles(item))

    @known_shape("The Kubernetes API")
    def tenants(self, node: str) -> tuple[PodNeeds, ...]:
        """Return every pod on a node that has not ended, of whatever namespace."""
        items = self._api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        return tuple(needs_of(item) for item in items if not has_ended(item))

    @known_shape("The Kubernetes API")
    def kafka_pods(self) -> tuple[PodView, ...]:
        """Return the cluster's Kafka pods, scheduled or not."""
        return tuple(pod for item in self._kafka_items() if (pod := kafka_pod_in(item)) is not None)

    @known_shape("The Kubernetes API")
    def kafka_pod(self, name: str) -> PodView | None:
        """Return one of the cluster's Kafka pods as it is now; None: there is none that runs."""
        found = self._pod_found(name)
        return None if found is None else kafka_pod_in(found)

    def _ours(self, pod: Json) -> bool:
        labels: Json = pod["metadata"].get("labels") or {}
        return labels.get(CLUSTER_LABEL) == self._kafka_cluster

    @known_shape("The Kubernetes API")
    def server_version(self) -> str:
        """Return the API server's version, major and minor."""
        found = self._api.get("/version", {})
        return f"{found['major']}.{found['minor'].rstrip('+')}"

    @known_shape("The Kubernetes API")
    def attachments(self) -> dict[str, tuple[str, ...]]:
        """Return the attached EBS volumes by node name."""
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
        """Return the disruption budgets over Kafka's pods."""
        path = f"/apis/policy/v1/namespaces/{quote(self._namespace)}/poddisruptionbudgets"
        found = list(self._api.list(path))
        if not found:
            return ()
        pods = list(self._kafka_items())
        return tuple(_budget(item, pods) for item in found)

    def operator(self) -> OperatorView:
        """Return what Strimzi's resources of the cluster tell of its operator's work."""
        return operator_view(self._api, self._namespace, self._kafka_cluster)

    def let_leave(self, pod: str, incident_id: str) -> None:
        """Label a Kafka pod that may be evicted beside others, and have the others' budget counted.

        One that is told to stop, or gone, is left alone. Raises Conflict when somebody changed it
        meanwhile.
        """
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
        """Take an incident's label off a pod; one for another incident stays."""
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
        """Keep a node from Cluster Autoscaler for an incident; None leaves it to it again."""
        marks = {
            SCALE_DOWN_DISABLED: None if incident_id is None else "true",
            SPARE_ANNOTATION: incident_id,
        }
        self._patch_node(node, {"metadata": {"annotations": marks}})

    def set_out_of_service(self, node: str, instance_id: str, *, tainted: bool) -> None:
        """Place the out-of-service taint on an instance's Node, or take it off.

        A Node that is gone, or another instance's by now, is left alone. Raises Conflict when
        somebody changed it meanwhile.
        """
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
        """Delete the VolumeAttachments of a Node that is gone; one that stands keeps its own."""
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


CLAIMS_PATH = "/apis/karpenter.sh/v1/nodeclaims"


class NodeClaims(Protocol):
    """Where NodeClaims are read."""

    def claims(self) -> tuple[NodeClaim, ...]:
        """Return those of every pool, Kafka's or not."""


class NoClaims:
    """A cluster whose nodes Karpenter does not launch."""

    def claims(self) -> tuple[NodeClaim, ...]:
        return ()


NO_CLAIMS: NodeClaims = NoClaims()


@dataclass(frozen=True)
class EksNodeClaims:
    """NodeClaims of an EKS cluster."""

    api: EksApi
    pool_labels: Mapping[str, Sequence[str]]

    @known_shape("The Kubernetes API")
    def claims(self) -> tuple[NodeClaim, ...]:
        return tuple(claim_in(item, self.pool_labels) for item in self.api.list(CLAIMS_PATH))


class ClaimEnds(Protocol):
    """Where a NodeClaim is deleted."""

    def end(self, name: str, uid: str) -> None:
        """Delete this very claim; one that is gone, or another of its name, is left alone."""


class NoEnds:
    """Where none may be."""

    def end(self, name: str, uid: str) -> None:
        raise Conflict(f"NodeClaim {name} ({uid}) is not ours to delete.")


NO_ENDS: ClaimEnds = NoEnds()


@dataclass(frozen=True)
class EksClaimEnds:
    """NodeClaims of an EKS cluster."""

    api: EksApi

    def end(self, name: str, uid: str) -> None:
        self.api.delete(f"{CLAIMS_PATH}/{quote(name)}", uid)


MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class EksDrain:
    """Empties nodes of an EKS cluster through its eviction API."""

    def __init__(self, api: EksApi, namespace: str, kafka_cluster: str) -> None:
        self._api, self._namespace, self._kafka_cluster = api, namespace, kafka_cluster

    @known_shape("The Kubernetes API")
    def pods_on(self, node: str) -> tuple[PodOnNode, ...]:
        """Return the pods on a node that have not ended."""
        items = self._api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
        return tuple(self._pod(item) for item in items if not has_ended(item))

    def cordon(self, node: str, incident_id: str) -> None:
        """Keep new pods off a node; one that takes none, or is gone, is left alone."""
        found = self._api.find(f"/api/v1/nodes/{quote(node)}")
        if found is None or found.get("spec", {}).get("unschedulable"):
            return
        self._mark(found, {"unschedulable": True}, incident_id)

    def uncordon(self, node: str, incident_id: str) -> None:
        """Let a node take pods again that was cordoned for this incident."""
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
        """Ask for the eviction of this very pod; return why it was refused for now, if it was."""
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


def open_nodes(settings: InCluster, api: EksApi) -> EksNodes:
    """Return the nodes and pods of this Kafka cluster."""
    return EksNodes(api, settings.namespace, settings.cluster, settings.pool_labels)


def open_claims(settings: OfClaims, api: EksApi) -> NodeClaims:
    """Return Karpenter's NodeClaims, where it launches the nodes."""
    return EksNodeClaims(api, settings.pool_labels) if settings.node_claims else NO_CLAIMS
