"""Decides which instance types can be no node here, and whether a node's own pods fit it.

A pod takes an address of its node's network interfaces and what it requests; what finds no room is
Pending for ever. Sources: AL2023's system requirements (ARMv8.2, so no A1), EC2's user guide on Mac
instances, accelerated computing and EBS-optimized types; DescribeInstanceTypes as recorded in moto
5.2.5 (EbsOptimizedSupport, GpuInfo, FpgaInfo, NeuronInfo).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.cluster import limits
from core.cluster.limits import Request
from core.cluster.spec import ClusterSpec
from core.ground import instances
from core.ground.instances import InstanceType

_ACCELERATED = (
    "its accelerators need an image with their drivers, and every node here runs the standard one"
)
_NOT_OPTIMIZED = (
    "every node here is launched EBS-optimized, which EC2 refuses of it as it does not support that"
)
# How instance types begin that no node here can be.
NEVER_NODES = {
    r"a1": "A1's processors are too old for Amazon Linux 2023, which every node runs",
    r"mac\d*(-\w+)?": "EC2 launches it on a Dedicated Host alone, and it runs macOS",
    r"(g\d\w*|gr\d\w*|p\d\w*(-\w+)?|dl\d\w*|trn\d\w*|inf\d|vt1|f\d)": _ACCELERATED,
    r"t[12]|[cm]1|m2|m3\.(medium|large)|c[cgr][12]|hs1": _NOT_OPTIMIZED,
}
_NOT_OPTIMIZED_SIZES = frozenset({"c3.large", "c3.8xlarge", "r3.large", "r3.8xlarge", "i2.8xlarge"})


def problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each instance type that can be no node."""
    asked = {f"pool {pool.name}": pool.instance_type for pool in spec.pools}
    asked["the system nodes"] = spec.kubernetes.system_instance_type
    for whose, name in asked.items():
        why = _never(name)
        if why is not None:
            yield f"{name} of {whose} cannot be a node here: {why}; choose another type."


def _never(name: str) -> str | None:
    if name in _NOT_OPTIMIZED_SIZES:
        return _NOT_OPTIMIZED
    family = name.partition(".")[0]
    for pattern, why in NEVER_NODES.items():
        if re.fullmatch(pattern, family) or re.fullmatch(pattern, name):
            return why
    return None


# Cluster Autoscaler may double the groups of the system nodes (infra.eks.cluster).
GROWTH = 2


@dataclass(frozen=True, slots=True)
class _Pods:
    whose: str
    replicas: int
    request: Request = limits.NONE


def system_node_problems(spec: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each kind of node that cannot run what must run on it."""
    known = instances.table().types
    daemons = len(limits.daemons(node_monitoring=spec.kubernetes.node_monitoring))
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
        yield from _addresses(spec, kind, daemons) or _requests(spec, kind)


def _addresses(spec: ClusterSpec, kind: InstanceType, daemons: int) -> list[str]:
    pods, most = list(_pods(spec)), _most_nodes(spec)
    room = most * max(0, kind.addressable_pods - daemons)
    wanted = sum(each.replicas for each in pods)
    if wanted <= room:
        return []
    problem = (
        f"kubernetes.system_instance_type is {kind.name}, which has addresses for "
        f"{kind.addressable_pods} pods, {daemons} of them every node's own: {most} such nodes "
        f"have room for {room} and {wanted} are needed ({_join_pods(pods)}); choose a larger type "
        f"or raise kubernetes.system_nodes_per_zone."
    )
    return [problem]


def _requests(spec: ClusterSpec, kind: InstanceType) -> Iterator[str]:
    """Yield what is requested beyond what the nodes have: of each alone, of a kind, and in all."""
    room, most = (
        limits.requested_room(kind, node_monitoring=spec.kubernetes.node_monitoring),
        _most_nodes(spec),
    )
    pods = [each for each in _pods(spec) if each.request != limits.NONE]
    fitting = True
    for each in pods:
        for unit, asked, has in _figures(each.request, room):
            if asked > has:
                fitting = False
                yield (
                    f"kubernetes.system_instance_type is {kind.name}, which leaves its pods {has} "
                    f"{unit} beside what the system and the pods of every node keep, and each pod "
                    f"of {each.whose} requests {asked}: none could ever run; choose a larger type."
                )
    for each in pods if fitting else ():
        on_a_node = min(has // asked for _, asked, has in _figures(each.request, room) if asked)
        if each.replicas > most * on_a_node:
            fitting = False
            yield (
                f"{each.replicas} pods of {each.whose} are asked for, each with "
                f"{each.request.cpu_millis} m of CPU and {each.request.memory_mib} MiB, and the "
                f"{most} system nodes ({kind.name}) have room for {most * on_a_node}: the others "
                f"would wait for ever; ask for fewer, raise kubernetes.system_nodes_per_zone, or "
                f"choose a larger kubernetes.system_instance_type."
            )
    wanted = Request(
        sum(each.replicas * each.request.cpu_millis for each in pods),
        sum(each.replicas * each.request.memory_mib for each in pods),
    )
    for unit, asked, has in _figures(
        wanted, Request(most * room.cpu_millis, most * room.memory_mib)
    ):
        if fitting and asked > has:
            yield (
                f"kubernetes.system_instance_type is {kind.name}, of which the {most} system nodes "
                f"have {has} {unit} for pods, and {asked} are requested ({_join_pods(pods)}): some "
                f"would wait for ever; choose a larger type or raise "
                f"kubernetes.system_nodes_per_zone."
            )


def _figures(asked: Request, has: Request) -> tuple[tuple[str, int, int], ...]:
    return (
        ("MiB of memory", asked.memory_mib, has.memory_mib),
        ("m of CPU", asked.cpu_millis, has.cpu_millis),
    )


def _most_nodes(spec: ClusterSpec) -> int:
    nodes = spec.kubernetes.system_nodes_per_zone * len(spec.availability_zones)
    grows = spec.node_provisioner == "asg" and spec.cluster_autoscaler
    return nodes * (GROWTH if grows else 1)


def _pods(spec: ClusterSpec) -> Iterator[_Pods]:
    """Yield what runs on the system nodes and not on every one of them."""
    yield _Pods("CoreDNS", 2, limits.COREDNS)
    yield _Pods("the EBS driver's controller", 2, limits.VOLUME_CONTROLLER)
    yield _Pods("the snapshot controller", 2)
    yield _Pods("the load balancer controller", 2, limits.LOAD_BALANCER_CONTROLLER)
    yield _Pods("Kafka's topic and user operators", 1)
    if spec.node_provisioner == "karpenter":
        yield _Pods("Karpenter", 2, limits.KARPENTER)
    else:
        yield _Pods("the node termination handler", 1, limits.TERMINATION_HANDLER)
        if spec.cluster_autoscaler:
            yield _Pods("Cluster Autoscaler", 2, limits.CLUSTER_AUTOSCALER)
    if spec.strimzi.operator == "chart":
        yield _Pods("Strimzi's operator", spec.strimzi.replicas, limits.OPERATOR)
    if spec.eviction_gate is not None:
        yield _Pods("the eviction gate", 2, limits.GATE)
    if spec.probe is not None:
        yield _Pods("the probe", 1, limits.PROBE)
    connect = spec.connect
    if connect is not None:
        each = Request(connect.cpu_request_millis, connect.memory_request_mib)
        yield _Pods("connect", connect.replicas, each)


def _join_pods(pods: list[_Pods]) -> str:
    return ", ".join(f"{each.replicas} of {each.whose}" for each in pods)
