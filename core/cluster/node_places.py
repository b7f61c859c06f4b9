"""Lists the Kafka nodes of a description: their ids, their node pools and their roles."""

from __future__ import annotations

from core import naming
from core.cluster.spec import ClusterSpec
from core.settings.node_place import NodePlace


def nodes(spec: ClusterSpec) -> tuple[NodePlace, ...]:
    """Return every Kafka node.

    Strimzi gives a pool's nodes the first ids of those reserved in a zone.
    """
    return tuple(
        NodePlace(
            node_id=node_id,
            node_pool=naming.kafka_node_pool(pool.name, zone),
            role=pool.role.value,
        )
        for pool in spec.pools
        for zone, reserved in spec.node_ids_of(pool).items()
        for node_id in reserved[: pool.nodes_per_zone]
    )
