"""Returns what reports need of a cluster's description (core.settings.facts)."""

from __future__ import annotations

from collections.abc import Mapping

from core.cluster.spec import ClusterSpec
from core.ground.naming import FOLLOWER_FETCHING, REPLICA_SELECTOR
from core.settings.facts import Facts, Pool, Volume

# Kafka's own default (log.retention.hours).
RETENTION_SECONDS = 168 * 3600
# How soon a broker should be in sync again after a rotation, where nobody said.
RESYNC_WITHIN_SECONDS = 600
_RETENTION = (
    ("log.local.retention.ms", 0.001),
    ("log.retention.ms", 0.001),
    ("log.retention.minutes", 60.0),
    ("log.retention.hours", 3600.0),
)


def report_facts(spec: ClusterSpec) -> Facts:
    """Return the facts of a ClusterSpec."""
    return Facts(
        cluster=spec.name,
        archive_name=spec.prefix,
        region=spec.region,
        zones=len(spec.broker_zones),
        replication_factor=spec.kafka.default_replication_factor,
        retention_seconds=_retention(spec.kafka.config),
        resync_within_seconds=RESYNC_WITHIN_SECONDS,
        pools=tuple(
            Pool(
                name=pool.name,
                is_broker=pool.role.is_broker,
                instance_type=pool.instance_type,
                nodes=spec.nodes_of(pool),
                volumes=tuple(
                    Volume(v.size_gib, v.iops, v.throughput_mib_per_s) for v in pool.volumes
                ),
                policy=pool.policy(apply=spec.volumes.applies),
            )
            for pool in spec.pools
        ),
        # infra.kafka sets the selector unless the spec says otherwise.
        follower_fetching=spec.kafka.config.get(REPLICA_SELECTOR, FOLLOWER_FETCHING)
        == FOLLOWER_FETCHING,
    )


def _retention(config: Mapping[str, object]) -> float:
    """Return how long a broker keeps records on its own disk; Kafka takes the finest unit set."""
    for key, seconds in _RETENTION:
        try:
            value = float(str(config[key]))
        except (KeyError, ValueError):
            continue
        if value > 0:
            return value * seconds
    return RETENTION_SECONDS
