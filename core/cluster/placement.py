"""Refuses pools whose zones or node ids do not fit together, for ClusterSpec."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from core.cluster.nodes import NodePool

if TYPE_CHECKING:
    from core.cluster.spec import ClusterSpec


def problems(spec: ClusterSpec) -> list[str]:
    """Return what is wrong with zones, pools and ids, a clause each."""
    return [*_zone_problems(spec), *_pool_problems(spec)]


def node_ids(spec: ClusterSpec, pool: NodePool) -> list[int]:
    """Return every node id reserved for a pool."""
    return [node_id for ids in spec.node_ids_of(pool).values() for node_id in ids]


def _zone_problems(spec: ClusterSpec) -> list[str]:
    problems = [
        f"availability zone {zone} is not in region {spec.region}"
        for zone in spec.availability_zones
        if zone[:-1] != spec.region
    ]
    if len(set(spec.availability_zones)) != len(spec.availability_zones):
        problems.append("availability_zones names a zone twice; name each once")
    existing = spec.network.existing
    given = set(existing.private_subnet_ids) if existing else set(spec.availability_zones)
    problems += [
        f"network.existing names no private subnet for availability zone {zone}; add one"
        for zone in spec.availability_zones
        if zone not in given
    ]
    problems += [
        f"network.existing names a subnet in {zone}, which is not in availability_zones"
        for zone in sorted(given - set(spec.availability_zones))
    ]
    return problems


def _pool_problems(spec: ClusterSpec) -> list[str]:
    problems = []
    if len({pool.name for pool in spec.pools}) != len(spec.pools):
        problems.append("two pools have the same name; give each its own")
    if not any(pool.role.is_broker for pool in spec.pools):
        problems.append("no pool has brokers; add one with role broker or combined")
    if not any(pool.role.is_controller for pool in spec.pools):
        problems.append("no pool has controllers; add one with role controller or combined")
    for pool in spec.pools:
        problems += _zone_problems_of(spec, pool)
    return [*problems, *_node_id_problems(spec)]


def _zone_problems_of(spec: ClusterSpec, pool: NodePool) -> list[str]:
    zones = pool.zones or ()
    problems = [
        f"pool {pool.name} stands in {zone}, which is not in availability_zones "
        f"({', '.join(spec.availability_zones)}); add it there, at the end, or take it from "
        f"the pool's zones"
        for zone in dict.fromkeys(zones)
        if zone not in spec.availability_zones
    ]
    problems += [
        f"zones of pool {pool.name} names {zone} twice; name each once"
        for zone in sorted({zone for zone in zones if zones.count(zone) > 1})
    ]
    return problems


def _node_id_problems(spec: ClusterSpec) -> list[str]:
    problems = []
    by_id = sorted(spec.pools, key=lambda pool: (pool.first_node_id, pool.name))
    for a, b in itertools.combinations(by_id, 2):
        ours, theirs = node_ids(spec, a), node_ids(spec, b)
        if not set(ours).isdisjoint(theirs):
            problems.append(
                f"node ids of pools {a.name} ({ours[0]}-{ours[-1]}) and {b.name} "
                f"({theirs[0]}-{theirs[-1]}) overlap; move first_node_id of one"
            )
    return problems
