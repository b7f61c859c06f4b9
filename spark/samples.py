"""Holds what a cluster's series said, and what its counters added from sample to sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise

BYTES_IN = "kafka_server_brokertopicmetrics_bytesinpersec"
BYTES_OUT = "kafka_server_brokertopicmetrics_bytesoutpersec"
REPLICATION_IN = "kafka_server_brokertopicmetrics_replicationbytesinpersec"
UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
PARTITIONS = "kafka_server_replicamanager_partitioncount"
LOG_SIZE = "kafka_log_log_size"
VOLUME_USED = "kubelet_volume_stats_used_bytes"
VOLUME_OPS = ("aws_ebs_csi_read_ops", "aws_ebs_csi_write_ops")
# Seconds in which more was asked than the volume gives, and than its instance does.
VOLUME_EXCEEDED = ("aws_ebs_csi_exceeded_iops_seconds", "aws_ebs_csi_exceeded_tp_seconds")
INSTANCE_EXCEEDED = ("aws_ebs_csi_ec2_exceeded_iops_seconds", "aws_ebs_csi_ec2_exceeded_tp_seconds")
VOLUME_BYTES = ("aws_ebs_csi_read_bytes", "aws_ebs_csi_write_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of Prometheus, its labels read as far as a job looks.

    `points` are times (seconds since 1970) and values, in order. A volume's series has no cluster.
    """

    name: str  # without the ending _total
    cluster: str | None = None
    pool: str | None = None  # KafkaNodePool
    node_id: int | None = None  # Kafka's
    claim: str | None = None
    volume_id: str | None = None
    topic: str | None = None
    points: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class Increase:
    """What a counter added between two samples, in seconds since 1970."""

    since: float
    at: float
    value: float
    # A counter that is lower than before has begun again at 0: what it shows is what it counted
    # since, and nothing is lost but what came between the last sample and the stop.
    began_again: bool

    @property
    def seconds(self) -> float:
        return self.at - self.since


def increases(series: Series) -> Iterator[Increase]:
    """Yield a counter's increases; a series' first sample has none."""
    for (since, before), (at, value) in pairwise(series.points):
        began_again = value < before
        yield Increase(since, at, value if began_again else value - before, began_again)


def of_all_topics(series: Iterable[Series], *names: str) -> list[Series]:
    """Return brokers' own counters; Kafka keeps one per topic beside them."""
    return [each for each in series if each.name in names and each.topic is None]


def day_of(at: float) -> date:
    """Return the UTC day of a time."""
    return datetime.fromtimestamp(at, UTC).date()


def moment_of(at: float | None) -> datetime | None:
    """Return a time as tables hold it: of UTC, without a zone."""
    return None if at is None else datetime.fromtimestamp(at, UTC).replace(tzinfo=None)


def seconds_of(moment: datetime | None) -> float | None:
    """Return a table's time in seconds since 1970."""
    return None if moment is None else moment.replace(tzinfo=UTC).timestamp()
