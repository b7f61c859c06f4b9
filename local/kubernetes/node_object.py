"""Builds what a node registers: the Node and the CSINode of one EC2 instance. Pure functions."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime

from core.ground.naming import EBS_CSI_DRIVER, EBS_ZONE_LABEL, ZONE_LABEL
from local.kubernetes.client import Object
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


def resources(kind: NodeCapacity, max_pods: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return (capacity, allocatable) of an instance type, with the reservations of EKS's AMI."""
    shared = {"pods": str(max_pods), "ephemeral-storage": "80Gi"}
    reserved_mib = 255 + 11 * max_pods + EVICTION_MIB
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
    max_pods = instance.config.max_pods or instance.type.max_pods
    capacity, allocatable = resources(instance.type, max_pods)
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
