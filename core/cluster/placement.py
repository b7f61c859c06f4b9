"""Refuses pools whose zones or node ids do not fit together, for ClusterSpec."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.cluster.fields import named_twice
from core.cluster.nodes import NodePool

if TYPE_CHECKING:
    from core.cluster.spec import ClusterSpec


def problems(spec: ClusterSpec) -> list[str]:
    """Return what is wrong with zones, pools and ids, a clause each."""
    return [*_zone_problems(spec), *_pool_problems(spec)]


def node_ids(spec: ClusterSpec, pool: NodePool) -> list[int]:
    """Return every node id reserved for a pool."""
    return [node_id for ids in spec.node_ids_of(pool).values() for node_id in ids]


def _zone_problems(spec: ClusterSpec) -> Iterator[str]:
    zones, existing = spec.availability_zones, spec.network.existing
    for zone in zones:
        if zone[:-1] != spec.region:
            yield f"availability zone {zone} is not in region {spec.region}"
    if len(set(zones)) != len(zones):
        yield "availability_zones names a zone twice; name each once"
    given = set(existing.private_subnet_ids) if existing else set(zones)
    for zone in zones:
        if zone not in given:
            yield f"network.existing names no private subnet for availability zone {zone}; add one"
    for zone in sorted(given - set(zones)):
        yield f"network.existing names a subnet in {zone}, which is not in availability_zones"


def _pool_problems(spec: ClusterSpec) -> Iterator[str]:
    if len({pool.name for pool in spec.pools}) != len(spec.pools):
        yield "two pools have the same name; give each its own"
    if not any(pool.role.is_broker for pool in spec.pools):
        yield "no pool has brokers; add one with role broker or combined"
    if not any(pool.role.is_controller for pool in spec.pools):
        yield "no pool has controllers; add one with role controller or combined"
    for pool in spec.pools:
        yield from _zone_problems_of(spec, pool)
    yield from _node_id_problems(spec)


def _zone_problems_of(spec: ClusterSpec, pool: NodePool) -> Iterator[str]:
    zones = pool.zones or ()
    for zone in dict.fromkeys(zones):
        if zone not in spec.availability_zones:
            yield (
                f"pool {pool.name} stands in {zone}, which is not in availability_zones "
                f"({', '.join(spec.availability_zones)}); add it there, at the end, or take it "
                f"from the pool's zones"
            )
    for zone in named_twice(zones):
        yield f"zones of pool {pool.name} names {zone} twice; name each once"


def _node_id_problems(spec: ClusterSpec) -> Iterator[str]:
    by_id = sorted(spec.pools, key=lambda pool: (pool.first_node_id, pool.name))
    for a, b in itertools.combinations(by_id, 2):
        ours, theirs = node_ids(spec, a), node_ids(spec, b)
        if not set(ours).isdisjoint(theirs):
            yield (
                f"node ids of pools {a.name} ({ours[0]}-{ours[-1]}) and {b.name} "
                f"({theirs[0]}-{theirs[-1]}) overlap; move first_node_id of one"
            )
