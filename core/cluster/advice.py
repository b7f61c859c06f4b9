"""What a ClusterSpec may say and its owner may come to regret: `stillwater check` warns of it.

Nothing here is refused: what cannot work at all is an error of the ClusterSpec itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.cluster import rights
from core.cluster.spec import ClusterSpec


def advice(spec: ClusterSpec) -> list[str]:
    """Return a sentence for each choice that works now and costs something later."""
    return [
        *rights.findings(spec),
        *_growing_quorum(spec),
        *_even_quorum(spec),
        *_a_zone_away(spec),
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
            f"Brokers stand in {_counted(racks)}, so one of them can hold {together} of a "
            f"partition's {factor} replicas, and without it {factor - together} are left where "
            f"min_insync_replicas asks for {minimum}: the loss of a zone would stop producers "
            f"with acks=all; have brokers in more zones, or change one of the two numbers."
        )


def _counted(zones: int) -> str:
    return "1 zone" if zones == 1 else f"{zones} zones"
