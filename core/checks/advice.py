"""Judges what only a ClusterSpec says, and its owner may regret. Nothing here is refused."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from functools import wraps

from core.checks.facts import ClusterFacts
from core.checks.finding import Finding, Judge, rule, worth_knowing
from core.checks.pods import LARGEST_HEAP, heap_large
from core.cluster.kafka import TAKES_EVERYTHING
from core.cluster.network import service_cidr
from core.cluster.rights import listeners
from core.cluster.spec import ClusterSpec
from core.ground.fields import Unknown

# Apache Kafka, "Apache Kafka Supports 200K Partitions Per Cluster": 4,000 of a broker at the most.
MOST_REPLICAS_OF_A_BROKER = 4000


def description_rule(judge: Callable[[ClusterSpec], Iterator[Finding]]) -> Judge:
    """Enter a judge of a ClusterSpec in the table of rules."""

    @rule("description", described=True)
    @wraps(judge)
    def asked(seen: ClusterFacts) -> Iterator[Finding]:
        if not isinstance(seen.description, Unknown):
            yield from judge(seen.description)

    return asked


@description_rule
def doors(spec: ClusterSpec) -> Iterator[Finding]:
    """Find doors without a lock, and users who may unlock the others."""
    kafka = spec.kafka
    for key, listener in listeners(kafka).items():
        if kafka.authorization == "none":
            yield worth_knowing(
                "authorization-none",
                "kafka.authorization",
                f"it is none: each client that {key} admits may do everything",
                "set it to simple and give each client ACLs in users",
            )
        if not listener.tls:
            yield worth_knowing(
                "tls-missing",
                key,
                "it has no TLS: every record can be read on the way",
                "set tls to true",
            )
    if kafka.authorization == "none":
        return
    for user in spec.users:
        given = {op for acl in user.acls if acl.resource == "cluster" for op in acl.operations}
        if taken := sorted(given & TAKES_EVERYTHING):
            yield worth_knowing(
                "user-takes-everything",
                f"user {user.name}",
                f"it has {taken[0]} on the cluster, with which it may give itself every other "
                f"right",
                "take it away unless it administers Kafka",
            )


@description_rule
def growing_quorum(spec: ClusterSpec) -> Iterator[Finding]:
    """Find pools of controllers that would follow a new zone."""
    for pool in spec.pools:
        if pool.role.is_controller and pool.zones is None:
            zones = ", ".join(spec.availability_zones)
            yield worth_knowing(
                "quorum-grows",
                f"pool {pool.name}",
                "it has controllers in all of availability_zones: a zone added later adds "
                "controllers, and Strimzi cannot add a voter to a live cluster",
                f"set zones of the pool to [{zones}], which changes nothing today",
            )


@description_rule
def karpenter(spec: ClusterSpec) -> Iterator[Finding]:
    """Find what node_provisioner karpenter does not give (docs/how-to/karpenter.md)."""
    if spec.node_provisioner != "karpenter":
        return
    subject = "node_provisioner karpenter"
    if spec.eviction_gate is None:
        yield worth_knowing(
            "karpenter-unasked",
            subject,
            "no drain waits for in-sync replicas or the quorum. An interrupted node is drained "
            "before its replacement is there, so its broker is away longer. `rotate` takes no "
            "node",
            "set eviction_gate, which asks Kafka and waits for the replacement",
        )
    yield worth_knowing(
        "karpenter-unheld",
        subject,
        "nothing retains an instance whose drain is stuck. A failed instance check ends the node "
        "past the PodDisruptionBudget. Scheduled maintenance ends a node at once, outside of any "
        "window",
        "set node_provisioner to asg where that is not meant",
    )


@description_rule
def extended_support(spec: ClusterSpec) -> Iterator[Finding]:
    """Find a control plane that becomes dearer by itself."""
    if spec.kubernetes.upgrade_policy == "extended":
        yield worth_knowing(
            "support-paid",
            "kubernetes.upgrade_policy",
            f"it is extended: once {spec.kubernetes.version} has left standard support, its "
            f"control plane costs six times as much, which `estimate` counts from the first month",
            "set it to standard where AWS may upgrade the control plane",
        )


@description_rule
def connect_heap(spec: ClusterSpec) -> Iterator[Finding]:
    """Find a heap of Connect's that leaves Java too little beside it."""
    connect = spec.connect
    if connect is not None and connect.heap_mib > LARGEST_HEAP * connect.memory_request_mib:
        yield heap_large("connect", "its workers")


@description_rule
def nobody_told(spec: ClusterSpec) -> Iterator[Finding]:
    """Find addresses that nobody writes to."""
    told = [*spec.alerts.email, *([spec.alerts.sns_topic_arn] if spec.alerts.sns_topic_arn else [])]
    if told and not spec.alerts.enabled:
        yield worth_knowing(
            "alerts-off",
            "alerts.enabled",
            f"it is false, so that {', '.join(told)} would never hear of it",
            "set it to true, or leave them out",
        )


@description_rule
def many_partitions(spec: ClusterSpec) -> Iterator[Finding]:
    """Find more replicas than a broker hands over before it is killed."""
    default = spec.kafka.default_replication_factor
    sizes = {t.name: t.partitions * (t.replication_factor or default) for t in spec.topics}
    each = sum(sizes.values()) // max(1, spec.brokers)
    if each > MOST_REPLICAS_OF_A_BROKER:
        largest = max(sizes, key=lambda name: sizes[name])
        yield worth_knowing(
            "partitions-many",
            "topics",
            f"they make {sum(sizes.values())} replicas, {each} of each broker ({largest} alone "
            f"{sizes[largest]}), and Kafka advises {MOST_REPLICAS_OF_A_BROKER} at most. A broker "
            "that stops hands them all over, and one that starts opens as many logs",
            "lower partitions, which are never taken away again, or have more brokers",
        )


@description_rule
def services(spec: ClusterSpec) -> Iterator[Finding]:
    """Find clients whose answers would go to a Service of the cluster instead."""
    taken = ipaddress.ip_network(service_cidr(spec.network.blocks))
    for block in spec.load_balancer.client_cidrs:
        network = ipaddress.ip_network(block)
        if network.version == taken.version and network.overlaps(taken):
            yield worth_knowing(
                "clients-overlap",
                "load_balancer.client_cidrs",
                f"it names {block}, which overlaps {taken}, the addresses of Kubernetes' Services "
                f"here: pods cannot answer clients there",
                "choose another vpc_cidr, or have those clients come by PrivateLink",
            )
