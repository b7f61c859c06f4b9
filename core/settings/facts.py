"""Hands the ClusterSpec's figures, which no bill says, to the report.

A plain document, so that a job on EMR needs no more than the standard library:
core.cluster.report_facts makes it where the ClusterSpec is, in `pulumi up` or for a report on one
machine, and `parse` reads it where the job runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.ground.errors import InvalidInput, one_line, passed_on
from core.settings import codec
from core.volumes.sizing import Policy


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


def to_json(facts: Facts) -> str:
    return json.dumps(codec.document(facts), indent=2, sort_keys=True)


def load(path: Path) -> Facts:
    """Read what `to_json` wrote; a file that is something else raises InvalidInput."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            [passed_on(f"The cluster's facts {path} cannot be read; name another file.", error)]
        ) from None
    return parse(text, str(path))


def parse(text: bytes, name: str) -> Facts:
    """Return the facts of a document that `to_json` made; another raises InvalidInput."""
    try:
        return codec.read(Facts, json.loads(text))
    except (InvalidInput, ValueError) as error:
        problem = (
            f"The cluster's facts {name} are not what this version writes ({one_line(error)}); "
            f"write them again: `stillwater up` does for the job on EMR."
        )
        raise InvalidInput([problem]) from None
