"""The ports of the load balancer: one per broker id, spare ones included, and the bootstrap's."""

from __future__ import annotations

from dataclasses import dataclass

from core import naming
from core.cluster.spec import ClusterSpec

BOOTSTRAP: None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One port of the load balancer and the Kubernetes Service whose pods it leads to."""

    # Names the route's resources, zone and pool first, so that adding either adds only its own.
    key: str
    node_id: int | None
    port: int
    service: str
    binding: str
    # Nobody runs under this id yet, so that its Service may be missing.
    spare: bool = False


def routes(spec: ClusterSpec) -> list[Route]:
    """Return the bootstrap's route and every broker id's, spare ones included."""
    listener = spec.kafka.listener
    bootstrap = Route(
        "bootstrap",
        BOOTSTRAP,
        listener.bootstrap_port,
        naming.listener_bootstrap_service(spec.name, listener.name, listener.port),
        naming.target_group_binding(spec.name, BOOTSTRAP),
    )
    return [bootstrap, *_broker_routes(spec)]


def _broker_routes(spec: ClusterSpec) -> list[Route]:
    listener = spec.kafka.listener
    found = []
    for pool in spec.pools:
        if not pool.role.is_broker:
            continue
        prepared = pool.nodes_per_zone + pool.spare_nodes_per_zone
        for zone, ids in spec.node_ids_of(pool).items():
            node_pool = naming.kafka_node_pool(pool.name, zone)
            found += [
                Route(
                    f"{zone}-{pool.name}-{node_id}",
                    node_id,
                    naming.advertised_port(listener.first_advertised_port, node_id),
                    naming.listener_broker_service(
                        spec.name, node_pool, node_id, listener.name, listener.port
                    ),
                    naming.target_group_binding(spec.name, node_id),
                    spare=node_id not in ids[: pool.nodes_per_zone],
                )
                for node_id in ids[:prepared]
            ]
    return found
