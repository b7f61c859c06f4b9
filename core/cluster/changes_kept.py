"""Refuses changes of what AWS keeps as it was made, for core.cluster.changes.

Sources: EKS's user guide, network-reqs.html (subnets of the zones a cluster was made with) and
CreateCluster (`serviceIpv4Cidr`); pulumi-aws#4226 (a target group with a name of its own is not
replaced while a listener uses it); CreateListener (`DuplicateListener`).
"""

from __future__ import annotations

from collections.abc import Iterator

from core.cluster.network import service_cidr
from core.cluster.routes import routes
from core.cluster.spec import ClusterSpec


def problems(before: ClusterSpec, after: ClusterSpec) -> Iterator[str]:
    """Yield a sentence for each change that AWS refuses, or that would replace the cluster."""
    yield from _zones(before, after)
    yield from _services(before, after)
    yield from _ports(before, after)


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
