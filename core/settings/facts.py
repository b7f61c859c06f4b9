"""What a cluster was described as: the ClusterSpec's figures that a bill does not say.

A plain document, so that a job on EMR needs no more than the standard library: `of_spec` makes it
where the ClusterSpec is, in `pulumi up` or for a report on one machine, and `parse` reads it where
the job runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InvalidInput
from core.naming import FOLLOWER_FETCHING, REPLICA_SELECTOR
from core.volumes import policy
from core.volumes.policy import Policy

if TYPE_CHECKING:
    from core.cluster import ClusterSpec

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


@dataclass(frozen=True, slots=True)
class Volume:
    """One gp3 volume of a node."""

    size_gib: int
    iops: int
    throughput_mib_per_s: int


@dataclass(frozen=True, slots=True)
class Pool:
    """Kafka nodes of one kind."""

    name: str
    is_broker: bool
    instance_type: str
    nodes: int
    volumes: tuple[Volume, ...]
    # How the advisor sizes its volumes; the storage report does by the same.
    policy: Policy = Policy()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Facts:
    """One cluster; `archive_name` is what it is called in the ledger's archive."""

    cluster: str
    archive_name: str
    region: str
    zones: int
    replication_factor: int
    retention_seconds: float
    resync_within_seconds: float
    pools: tuple[Pool, ...]
    # Whether brokers let consumers read from a replica in their own zone (KIP-392); None where
    # facts were written before this was one.
    follower_fetching: bool | None = None

    @property
    def brokers(self) -> Sequence[Pool]:
        return [pool for pool in self.pools if pool.is_broker]

    def pool_of(self, node_pool: str | None) -> Pool | None:
        """Return the pool a KafkaNodePool is of: `broker-a` stands in one zone of `broker`."""
        if node_pool is None:
            return None
        name = node_pool.rpartition("-")[0]
        return next((pool for pool in self.pools if pool.name in {node_pool, name}), None)


def of_spec(spec: ClusterSpec) -> Facts:
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


def to_json(facts: Facts) -> str:
    return json.dumps(asdict(facts), indent=2, sort_keys=True)


def load(path: Path) -> Facts:
    """Read what `to_json` wrote; a file that is something else raises InvalidInput."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InvalidInput([f"The cluster's facts {path} cannot be read: {error}."]) from None
    return parse(text, str(path))


def parse(text: bytes, name: str) -> Facts:
    """Return the facts of a document that `to_json` made; another raises InvalidInput."""
    try:
        return _facts(json.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        problem = (
            f"The cluster's facts {name} are not what this version writes ({error}); write them "
            f"again: `stillwater up` does for the job on EMR."
        )
        raise InvalidInput([problem]) from None


def _facts(document: Mapping[str, Any]) -> Facts:
    pools = tuple(
        Pool(
            **{
                **pool,
                "volumes": tuple(Volume(**volume) for volume in pool["volumes"]),
                "policy": policy.from_json(pool["policy"]),
            }
        )
        for pool in document["pools"]
    )
    return Facts(**{**document, "pools": pools})
