"""One Node of the twin: its registration, heartbeats, status and the volumes it says it uses.

What the kubelet, the EBS CSI node plug-in and the cloud provider write about one machine is written
here; what runs on the machine is pods.py.
"""

from __future__ import annotations

import json
import platform
import threading
import time
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from core.ground.naming import EBS_CSI_DRIVER, EBS_ZONE_LABEL, ZONE_LABEL
from local.journal import Journal
from local.kubernetes.client import Api, ApiError, Object, has_condition
from local.kubernetes.cloud import NodeCapacity, RunningInstance

KUBELET_VERSION = "v1.35.4-eks-stillwater"
# Nitro instances of the sizes the twin runs take 27 attachments, less the interfaces and the root.
ATTACHABLE_VOLUMES = 25
# Without this the attach-detach controller leaves the node's volumes alone, and says nothing.
ATTACH_DETACH_ANNOTATION = "volumes.kubernetes.io/controller-managed-attach-detach"
EVICTION_MIB = 100


def timestamp() -> str:
    """Return now as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def reserved_cpu_millicores(vcpus: int) -> int:
    """Return what EKS's AMI reserves of the processor for the system."""
    shares = [60, 10] + [5] * 2
    return sum(shares[:vcpus]) + round(2.5 * max(0, vcpus - 4))


def resources(kind: NodeCapacity) -> tuple[dict[str, str], dict[str, str]]:
    """Return (capacity, allocatable) of an instance type, with the reservations of EKS's AMI."""
    shared = {"pods": str(kind.max_pods), "ephemeral-storage": "80Gi"}
    reserved_mib = 255 + 11 * kind.max_pods + EVICTION_MIB
    capacity = {"cpu": str(kind.vcpus), "memory": f"{kind.memory_mib}Mi", **shared}
    allocatable = {
        "cpu": f"{kind.vcpus * 1000 - reserved_cpu_millicores(kind.vcpus)}m",
        "memory": f"{kind.memory_mib - reserved_mib}Mi",
        **shared,
    }
    return capacity, allocatable


def volume_name(handle: str) -> str:
    """Return how a node's status names an EBS volume."""
    return f"kubernetes.io/csi/{EBS_CSI_DRIVER}^{handle}"


def node_object(instance: RunningInstance, *, boot_id: str) -> Object:
    """Return the Node an instance registers itself with, not yet ready."""
    capacity, allocatable = resources(instance.type)
    region = instance.zone.rstrip("abcdefghijklmnopqrstuvwxyz")
    labels = {
        **instance.config.labels,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": instance.type.architecture,
        "kubernetes.io/hostname": instance.node_name,
        "node.kubernetes.io/instance-type": instance.type_name,
        "topology.kubernetes.io/region": region,
        ZONE_LABEL: instance.zone,
        EBS_ZONE_LABEL: instance.zone,
    }
    if instance.node_group:
        labels["eks.amazonaws.com/nodegroup"] = instance.node_group
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": instance.node_name,
            "labels": labels,
            "annotations": {
                ATTACH_DETACH_ANNOTATION: "true",
                "csi.volume.kubernetes.io/nodeid": json.dumps(
                    {EBS_CSI_DRIVER: instance.instance_id}
                ),
            },
        },
        "spec": {
            "providerID": instance.provider_id,
            "taints": [taint.as_json() for taint in instance.config.taints],
        },
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "addresses": [
                {"type": "InternalIP", "address": instance.private_ip},
                {"type": "InternalDNS", "address": instance.node_name},
                {"type": "Hostname", "address": instance.node_name},
            ],
            "nodeInfo": {
                "machineID": instance.instance_id,
                "systemUUID": instance.instance_id,
                "bootID": boot_id,
                "kernelVersion": platform.release(),
                "osImage": "Stillwater twin",
                "containerRuntimeVersion": "processes://1",
                "kubeletVersion": KUBELET_VERSION,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": instance.type.architecture,
            },
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }


def csi_node_object(instance: RunningInstance, node_uid: str) -> Object:
    """Return the CSINode by which the EBS CSI driver's node plug-in announces itself."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": instance.node_name,
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": instance.node_name,
                    "uid": node_uid,
                }
            ],
        },
        "spec": {
            "drivers": [
                {
                    "name": EBS_CSI_DRIVER,
                    "nodeID": instance.instance_id,
                    "topologyKeys": [EBS_ZONE_LABEL, ZONE_LABEL],
                    "allocatable": {"count": ATTACHABLE_VOLUMES},
                }
            ]
        },
    }


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
LEASE_SECONDS = 40
STATUS_REPORT_SECONDS = 300.0


class NodeAgent:
    """The Node of one running instance; every method may be called from any thread."""

    def __init__(
        self, api: Api, instance: RunningInstance, journal: Journal, *, boot: str = ""
    ) -> None:
        self.instance = instance
        # A kubelet that is started again finds the boot it was in.
        self._boot_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{instance.instance_id} {boot}"))
        self.name = instance.node_name
        self.path = f"/api/v1/nodes/{self.name}"
        self.ready = False
        self._api, self._journal = api, journal
        self._lock = threading.Lock()
        self._in_use: dict[str, str | None] = {}
        # The Node as the API last showed it.
        self.observed: Object = {}
        self._changed_at = timestamp()
        self._reported_at = 0.0
        self._uid = ""

    def register(self) -> bool:
        """Create the Node, or take over the one this instance registered before; say which.

        A Node of the same name with another providerID belongs to an instance that had the same
        address before; providerID cannot be changed, so that Node goes first.
        """
        body = node_object(self.instance, boot_id=self._boot_id)
        try:
            node = self._api.post("/api/v1/nodes", body)
            created = True
        except ApiError as error:
            if error.status != 409:
                raise
            node = self._api.get(self.path)
            created = node["spec"].get("providerID") != self.instance.provider_id
            if created:
                self._api.delete(self.path)
                node = self._api.post("/api/v1/nodes", body)
        self._uid = node["metadata"]["uid"]
        # A kubelet that comes back finds its node as ready as it left it.
        rebooted = not created and self.has_rebooted(node)
        self.ready = not (created or rebooted) and has_condition(node)
        # After a restart these stay reported until the pods that use them are found again: a
        # volume dropped from the list may be detached under its reader.
        in_use = () if rebooted else node["status"].get("volumesInUse") or ()
        self._in_use = dict.fromkeys(in_use)
        self.heartbeat()
        self.report()
        return created

    def has_rebooted(self, node: Object) -> bool:
        """Say whether a Node was last reported by an earlier boot of this machine."""
        known = (node.get("status", {}).get("nodeInfo") or {}).get("bootID")
        return bool(known) and known != self._boot_id

    def become_ready(self) -> None:
        if self.ready:
            return
        self.ready = True
        self._changed_at = timestamp()
        self.report()
        instance = self.instance
        self._journal.write(
            "kubelet",
            "node_ready",
            node=self.name,
            instance_id=instance.instance_id,
            zone=instance.zone,
        )

    def register_driver(self) -> None:
        """Announce the EBS CSI driver, as its node plug-in does once it runs."""
        body = csi_node_object(self.instance, self._uid)
        try:
            self._api.post(CSI_NODES, body)
        except ApiError as error:
            if error.status != 409:
                raise
            known = self._api.get(f"{CSI_NODES}/{self.name}")
            if known["spec"]["drivers"] != body["spec"]["drivers"]:
                self._api.delete(f"{CSI_NODES}/{self.name}")
                self._api.post(CSI_NODES, body)

    def heartbeat(self) -> None:
        """Renew the Lease; report the status again when it is due, or was called unknown."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": self.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
        }
        try:
            self._api.merge(f"{LEASES}/{self.name}", {"spec": spec})
        except ApiError as error:
            if error.status != 404:
                raise
            metadata = {"name": self.name, "namespace": "kube-node-lease"}
            self._api.post(LEASES, {"metadata": metadata, "spec": spec})
        unknown = self.ready and self.observed and not has_condition(self.observed)
        if unknown or time.monotonic() - self._reported_at > STATUS_REPORT_SECONDS:
            self.report()

    def report(self) -> None:
        """Write conditions and volumesInUse."""
        with self._lock:
            in_use = sorted(self._in_use)
            self._reported_at = time.monotonic()
            status = {
                "conditions": self._conditions(),
                "volumesInUse": in_use or None,
                "nodeInfo": {"bootID": self._boot_id},
            }
            self._api.strategic(f"{self.path}/status", {"status": status})

    def observe(self, node: Object) -> None:
        self.observed = node

    def attached_volumes(self) -> set[str]:
        """Return the volumes the attach-detach controller says are attached here."""
        return {volume["name"] for volume in self._status().get("volumesAttached") or []}

    def claim(self, volumes: Iterable[str], uid: str) -> None:
        """Report volumes as used by a pod before it waits for them."""
        with self._lock:
            self._in_use.update(dict.fromkeys(volumes, uid))
        self.report()

    def release(self, volumes: Iterable[str], uid: str) -> None:
        """Report volumes as unmounted: the attach-detach controller may now detach them."""
        with self._lock:
            mine = [volume for volume in volumes if self._in_use.get(volume) == uid]
            for volume in mine:
                del self._in_use[volume]
        if mine:
            self.report()

    def forget_unclaimed(self) -> None:
        """Drop volumes that no pod claimed since this kubelet started.

        A stale volumesInUse on a healthy node would hold its attachment for ever.
        """
        with self._lock:
            stale = [volume for volume, uid in self._in_use.items() if uid is None]
            for volume in stale:
                del self._in_use[volume]
        if stale:
            self.report()

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.observed.get("status") or {}
        return status

    def _conditions(self) -> list[dict[str, str]]:
        pressures = {
            "MemoryPressure": "KubeletHasSufficientMemory",
            "DiskPressure": "KubeletHasNoDiskPressure",
            "PIDPressure": "KubeletHasSufficientPID",
        }
        ready = ("True", "KubeletReady") if self.ready else ("False", "KubeletNotReady")
        rows = [(kind, "False", reason) for kind, reason in pressures.items()]
        rows.append(("Ready", *ready))
        return [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": f"the twin's kubelet reports {reason}",
                "lastHeartbeatTime": timestamp(),
                "lastTransitionTime": self._changed_at,
            }
            for kind, status, reason in rows
        ]
