"""Refuses changes of what AWS keeps as it was made, and says what is protected from others.

Sources: EKS's user guide, network-reqs.html (subnets of the zones a cluster was made with) and
CreateCluster (`serviceIpv4Cidr`); pulumi-aws#4226 (a target group with a name of its own is not
replaced while a listener uses it); CreateListener (`DuplicateListener`); EBS's user guide on
encryption (a volume keeps its key, and whoever attaches it needs a grant of that).
"""

from __future__ import annotations

from collections.abc import Iterator

from core import naming
from core.cluster.network import service_cidr
from core.cluster.routes import routes
from core.cluster.spec import ClusterSpec


def problems(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each change that AWS refuses, or that would replace the cluster."""
    yield from _zones(before, after)
    yield from _services(before, after)
    yield from _ports(before, after)
    yield from _key(before, after)


def _zones(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Refuse to take away a zone of a VPC of ours: its subnet goes first, and is in use."""
    gone = [each for each in before.availability_zones if each not in after.availability_zones]
    if gone and after.network.existing is None:
        yield (
            f"availability_zones no longer names {', '.join(gone)}, and AWS deletes no subnet in "
            f"which the control plane, whose zones stay, and the load balancer have interfaces; "
            f"leave it there, and take pools out of the zone by their zones."
        )


def _services(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = (service_cidr(spec.network.blocks) for spec in (before, after))
    if was != is_:
        yield (
            f"network.secondary_cidrs changes the block of Kubernetes' Services from {was} to "
            f"{is_}, and EKS would make the cluster anew for it; leave out of secondary_cidrs what "
            f"overlaps {was}, or leave there what did."
        )


def _ports(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = before.kafka.listener, after.kafka.listener
    if was.port != is_.port:
        yield (
            f"kafka.listener.port was {was.port} and is {is_.port}, and a target group keeps its "
            f"port and is not replaced while a listener uses it; leave it: clients come by the "
            f"ports of the load balancer."
        )
    moves = (was.first_advertised_port, was.bootstrap_port) != (
        is_.first_advertised_port,
        is_.bootstrap_port,
    )
    # Where nodes change their ids instead, core.cluster.changes says so.
    owners = {route.port: route.key for route in routes(before) if moves}
    taken = [r.port for r in routes(after) if owners.get(r.port, r.key) != r.key]
    if taken:
        yield (
            f"kafka.listener would give port {min(taken)} of the load balancer to another broker "
            f"than has it now, and {len(taken)} ports in all; AWS takes no second listener at a "
            f"port; choose first_advertised_port and bootstrap_port so that none is used already."
        )


def _key(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Refuse to give up a key: the grants go by which its volumes are attached."""
    was, is_ = before.encryption_key, after.encryption_key
    if was is not None and was != is_:
        yield (
            f"encryption_key was {was} and is {is_ or 'not set'}: volumes keep the key they were "
            f"made with, and the grants by which nodes attach them would go, so that no broker "
            f"that moves finds its own; leave it, or move the partitions to another environment."
        )


def protected(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Say where `up` stops, since what would go is protected (infra.protection) until it is not."""
    going = [] if before.ephemeral else list(_protected_losses(before, after))
    if going:
        yield (
            f"{', '.join(going)} would be deleted or replaced, and what is protected is not: `up` "
            f"stops there; once that is meant, take its protection away (`pulumi state unprotect`)."
        )


def _protected_losses(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    was, is_ = before.load_balancer, after.load_balancer
    if was.private_zone not in {None, is_.private_zone}:
        yield f"the private zone {was.private_zone}"
    if was.endpoint_principals and not is_.endpoint_principals:
        yield "the endpoint service"
    if _moved_subnets(before, after):
        yield "the load balancer"
    if before.encryption_key != after.encryption_key:
        yield "the storage class of Kafka's volumes"
    if _own_topic(before) and not _own_topic(after):
        yield "the key of the alarms' topic"
    for gone in sorted(_node_pools(before) - _node_pools(after)):
        yield f"the KafkaNodePool {gone}"


def _moved_subnets(before: ClusterSpec, after: ClusterSpec) -> bool:
    was, is_ = before.network.existing, after.network.existing
    if was is None or is_ is None:
        return False
    return not set(was.private_subnet_ids.values()) <= set(is_.private_subnet_ids.values())


def _own_topic(spec: ClusterSpec) -> bool:
    return spec.alerts.enabled and spec.alerts.sns_topic_arn is None


def _node_pools(spec: ClusterSpec) -> set[str]:
    return {
        naming.kafka_node_pool(pool.name, zone)
        for pool in spec.pools
        for zone in spec.zones_of(pool)
    }
