"""Decides whether a node's own pods fit it, and what every cluster needs beside Kafka its nodes.

A pod takes an address of its node's network interfaces, which a small type has few of, and what it
requests. What finds no room is Pending for ever, and `up` waits for it until its time is out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core import instances
from core.cluster.spec import ClusterSpec
from core.instances import InstanceType

OPERATOR_CPU_MILLIS, OPERATOR_MEMORY_MIB = 200, 768
KARPENTER_CPU_MILLIS, KARPENTER_MEMORY_MIB = 1000, 1024
# One pod on every node: vpc-cni, kube-proxy, eks-pod-identity-agent, aws-ebs-csi-driver.
ON_EVERY_NODE = 4
# Cluster Autoscaler may double the groups of the system nodes (infra.eks.cluster).
GROWTH = 2


@dataclass(frozen=True, slots=True)
class _Pods:
    whose: str
    replicas: int
    cpu_millis: int = 0
    memory_mib: int = 0


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each kind of node that cannot run what must run on it."""
    known = instances.table().types
    daemons = ON_EVERY_NODE + spec.kubernetes.node_monitoring
    for pool in spec.pools:
        kind = known.get(pool.instance_type)
        if kind is not None and daemons + 1 > kind.addressable_pods:
            yield (
                f"pool {pool.name} runs {daemons + 1} pods on a node, Kafka's among them, and an "
                f"{kind.name} has addresses for {kind.addressable_pods}: the last would wait for "
                f"ever; choose a larger instance type."
            )
    kind = known.get(spec.kubernetes.system_instance_type)
    if kind is not None:
        yield from _system(spec, kind, daemons)


def _system(spec: ClusterSpec, kind: InstanceType, daemons: int) -> Iterator[str]:
    pods = list(_pods(spec))
    grows = spec.node_provisioner == "asg" and spec.cluster_autoscaler
    nodes = spec.kubernetes.system_nodes_per_zone * len(spec.availability_zones)
    most = nodes * (GROWTH if grows else 1)
    room = most * max(0, kind.addressable_pods - daemons)
    wanted = sum(each.replicas for each in pods)
    if wanted > room:
        yield (
            f"kubernetes.system_instance_type is {kind.name}, which has addresses for "
            f"{kind.addressable_pods} pods, {daemons} of them every node's own: {most} such nodes "
            f"have room for {room} and {wanted} are needed ({_listed(pods)}); choose a larger type "
            f"or raise kubernetes.system_nodes_per_zone."
        )
        return
    for each in pods:
        for unit, asked, has in (
            ("MiB of memory", each.memory_mib, kind.allocatable_memory_mib),
            ("m of CPU", each.cpu_millis, kind.allocatable_cpu_millis),
        ):
            if asked > has:
                yield (
                    f"kubernetes.system_instance_type is {kind.name}, which leaves its pods {has} "
                    f"{unit} beside what the system keeps, and each pod of {each.whose} requests "
                    f"{asked}: none could ever run; choose a larger type."
                )


def _pods(spec: ClusterSpec) -> Iterator[_Pods]:
    """Yield what runs on the system nodes and not on every one of them."""
    yield _Pods("CoreDNS", 2)
    yield _Pods("the EBS driver's controller", 2)
    yield _Pods("the snapshot controller", 2)
    yield _Pods("the load balancer controller", 2)
    if spec.node_provisioner == "karpenter":
        yield _Pods("Karpenter", 2, KARPENTER_CPU_MILLIS, KARPENTER_MEMORY_MIB)
    else:
        yield _Pods("the node termination handler", 1)
        if spec.cluster_autoscaler:
            yield _Pods("Cluster Autoscaler", 2)
    if spec.strimzi.operator == "chart":
        yield _Pods(
            "Strimzi's operator",
            spec.strimzi.replicas,
            OPERATOR_CPU_MILLIS,
            OPERATOR_MEMORY_MIB,
        )
    if spec.connect is not None:
        yield _Pods(
            "connect",
            spec.connect.replicas,
            spec.connect.cpu_request_millis,
            spec.connect.memory_request_mib,
        )


def _listed(pods: list[_Pods]) -> str:
    return ", ".join(f"{each.replicas} of {each.whose}" for each in pods)
