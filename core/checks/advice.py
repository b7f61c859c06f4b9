"""Warns of what a ClusterSpec may say and its owner may regret (`stillwater check`).

Nothing here is refused: what cannot work at all is an error of the ClusterSpec itself.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from core.cluster import addresses, rights
from core.cluster.network import service_cidr
from core.cluster.spec import ClusterSpec

# Of a pod's memory; what Java needs beside it is rarely less than a fifth.
LARGEST_HEAP = 0.8
# Apache Kafka, "Apache Kafka Supports 200K Partitions Per Cluster": 4,000 of a broker at the most.
MOST_REPLICAS_OF_A_BROKER = 4000


def advice(spec: ClusterSpec) -> list[str]:
    """Return a sentence for each choice that works now and costs something later."""
    return [
        *rights.findings(spec),
        *_growing_quorum(spec),
        *_even_quorum(spec),
        *_a_zone_away(spec),
        *_karpenter(spec),
        *_services(spec),
        *_extended_support(spec),
        *_heaps(spec),
        *_nobody_told(spec),
        *_many_partitions(spec),
        *addresses.beyond_what_accounts_begin_with(spec),
    ]


def _growing_quorum(spec: ClusterSpec) -> Iterator[str]:
    for pool in spec.pools:
        if pool.role.is_controller and pool.zones is None:
            zones = ", ".join(spec.availability_zones)
            yield (
                f"Pool {pool.name} has controllers in all of availability_zones: a zone added "
                f"later adds controllers, and Strimzi cannot add a voter to a live cluster; set "
                f"zones of the pool to [{zones}], which changes nothing today."
            )


def _even_quorum(spec: ClusterSpec) -> Iterator[str]:
    voters = spec.controllers
    if voters % 2 == 0:
        yield (
            f"{voters} controllers are an even number of voters: their quorum bears the loss of "
            f"{(voters - 1) // 2}, as {voters - 1} would; let them be an odd number, before the "
            f"first `up`."
        )


def _a_zone_away(spec: ClusterSpec) -> Iterator[str]:
    """Warn of brokers in too few zones; a cluster in a single zone has chosen that."""
    racks = len(spec.broker_zones)
    factor, minimum = spec.kafka.default_replication_factor, spec.kafka.min_insync_replicas
    together = -(-factor // racks)
    if len(spec.availability_zones) > 1 and factor - together < minimum:
        yield (
            f"Brokers stand in {_zone_count(racks)}, so one of them can hold {together} of a "
            f"partition's {factor} replicas, and without it {factor - together} are left where "
            f"min_insync_replicas asks for {minimum}: the loss of a zone would stop producers "
            f"with acks=all; have brokers in more zones, or change one of the two numbers."
        )


def _karpenter(spec: ClusterSpec) -> Iterator[str]:
    """Say what node_provisioner karpenter does not give (docs/how-to/karpenter.md)."""
    if spec.node_provisioner != "karpenter":
        return
    if spec.eviction_gate is None:
        yield (
            "node_provisioner karpenter: an interrupted node is drained before its replacement is "
            "there, so a broker is away for a boot and a join longer, and `rotate` takes none; "
            "`eviction_gate` makes both wait for the replacement."
        )
        yield (
            "node_provisioner karpenter: nothing looks at in-sync replicas or the quorum before a "
            "drain; the PodDisruptionBudget counts Ready pods alone, and `eviction_gate` asks "
            "Kafka."
        )
    yield (
        "node_provisioner karpenter: nothing retains an instance whose drain is stuck, and a "
        "failed instance check ends the node past the PodDisruptionBudget."
    )
    yield (
        "node_provisioner karpenter: scheduled maintenance ends a node as soon as it is seen, "
        "outside of any window."
    )


def _extended_support(spec: ClusterSpec) -> Iterator[str]:
    if spec.kubernetes.upgrade_policy == "extended":
        yield (
            f"kubernetes.upgrade_policy extended: once {spec.kubernetes.version} has left standard "
            f"support, its control plane costs six times as much, which `estimate` counts from the "
            f"first month."
        )


def _heaps(spec: ClusterSpec) -> Iterator[str]:
    """Warn of a heap beside which Java itself has too little room."""
    asked = {f"pool {pool.name}": (pool.heap_mib, pool.memory_request_mib) for pool in spec.pools}
    if spec.connect is not None:
        asked["connect"] = (spec.connect.heap_mib, spec.connect.memory_request_mib)
    for whose, (heap, memory) in asked.items():
        if heap > LARGEST_HEAP * memory:
            yield (
                f"heap_mib of {whose} is {heap} of {memory} MiB: Java takes memory beside its "
                f"heap, for threads, classes and buffers, and the kernel kills a pod that goes "
                f"beyond; lower it to {int(LARGEST_HEAP * memory)} or less."
            )


def _nobody_told(spec: ClusterSpec) -> Iterator[str]:
    told = [*spec.alerts.email, *([spec.alerts.sns_topic_arn] if spec.alerts.sns_topic_arn else [])]
    if told and not spec.alerts.enabled:
        yield (
            f"alerts.enabled is false, so that {', '.join(told)} would never be told; set it to "
            f"true, or leave them out."
        )


def _many_partitions(spec: ClusterSpec) -> Iterator[str]:
    """Warn of more replicas than a broker hands over before it is killed."""
    default = spec.kafka.default_replication_factor
    sizes = {t.name: t.partitions * (t.replication_factor or default) for t in spec.topics}
    each = sum(sizes.values()) // max(1, spec.brokers)
    if each > MOST_REPLICAS_OF_A_BROKER:
        largest = max(sizes, key=lambda name: sizes[name])
        yield (
            f"topics make {sum(sizes.values())} replicas, {each} of each broker ({largest} alone "
            f"{sizes[largest]}), and Kafka advises {MOST_REPLICAS_OF_A_BROKER} at the most: "
            f"a broker that stops hands that many over, and one that starts opens as many logs; "
            f"lower partitions, which are never taken away again, or have more brokers."
        )


def _services(spec: ClusterSpec) -> Iterator[str]:
    """Warn of clients whose answers would go to a Service of the cluster instead."""
    services = ipaddress.ip_network(service_cidr(spec.network.blocks))
    for block in spec.load_balancer.client_cidrs:
        network = ipaddress.ip_network(block)
        if network.version == services.version and network.overlaps(services):
            yield (
                f"load_balancer.client_cidrs names {block}, which overlaps {services}, the "
                f"addresses of Kubernetes' Services here: pods cannot answer clients there; choose "
                f"another vpc_cidr, or have those clients come by PrivateLink."
            )


def _zone_count(zones: int) -> str:
    return "1 zone" if zones == 1 else f"{zones} zones"
