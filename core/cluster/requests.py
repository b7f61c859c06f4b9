"""Knows what the pods beside Kafka request of a node, and what of a node those on every one leave.

Source of ours: the charts and Deployments of infra/, which read these figures. Of EKS's add-ons:
the values of their charts (vpc-cni with its network policy agent, kube-proxy, the EBS CSI driver's
three containers on a node and six in its controller, eks-node-monitoring-agent, CoreDNS).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.instances import InstanceType


@dataclass(frozen=True, slots=True)
class Request:
    """What one pod requests."""

    cpu_millis: int
    memory_mib: int


NONE = Request(0, 0)
OPERATOR = Request(200, 768)
KARPENTER = Request(1000, 1024)
LOAD_BALANCER_CONTROLLER = Request(100, 128)
CLUSTER_AUTOSCALER = Request(100, 300)
TERMINATION_HANDLER = Request(50, 64)
GATE = Request(100, 256)
PROBE = Request(50, 128)
COREDNS = Request(100, 70)
VOLUME_CONTROLLER = Request(60, 240)
# EKS's add-ons that run one pod on every node.
NODE_MONITORING = "eks-node-monitoring-agent"
ON_EVERY_NODE: Mapping[str, Request] = {
    "vpc-cni": Request(50, 0),
    "kube-proxy": Request(100, 0),
    "eks-pod-identity-agent": NONE,
    "aws-ebs-csi-driver": Request(30, 120),
    NODE_MONITORING: Request(10, 30),
}
# Karpenter reckons that so much of a machine's memory is its kernel's and firmware's
# (VM_MEMORY_OVERHEAD_PERCENT), and launches nothing for a pod that the rest does not hold.
KARPENTERS_OVERHEAD = 0.075


def daemons(*, node_monitoring: bool) -> Mapping[str, Request]:
    """Return what runs on every node, by its add-on."""
    return {
        addon: request
        for addon, request in ON_EVERY_NODE.items()
        if node_monitoring or addon != NODE_MONITORING
    }


def room(instance: InstanceType, *, node_monitoring: bool) -> Request:
    """Return what the system and the pods of every node leave the other pods of a node."""
    every = daemons(node_monitoring=node_monitoring).values()
    return Request(
        instance.allocatable_cpu_millis - sum(each.cpu_millis for each in every),
        instance.allocatable_memory_mib - sum(each.memory_mib for each in every),
    )


def overhead_mib(instance: InstanceType) -> int:
    """Return what a machine's memory may be short of what EC2 says it has."""
    return int(instance.memory_mib * KARPENTERS_OVERHEAD)
