"""Reads what Prometheus remembers of a cluster, and what its counters added between two samples.

It comes as answers of the range-query API, or the same as Parquet. Raw series, not rates: a query
must keep names and labels, as a bare selector does ({__name__=~"kafka_server_.*"}). Counters keep
their resets, which is how a restart is seen.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from core.ground.errors import InvalidInput
from spark.files import Files, address_of, files_of, parquet

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


# A name, its labels, when it was sampled (seconds since 1970), and the value.
Sample = tuple[str | None, Mapping[str, str], float, float]
_PARQUET = ("name", "labels", "at", "value")
_PARQUET_SUFFIX = ".parquet"
_JSON = (".json", ".json.gz")
_CLAIM = re.compile(r"^data-\d+-")
_NODE = re.compile(r"-(\d+)$")
# A scraper's own name for whom it asked changes with every restart and replica of Prometheus.
_SCRAPERS = ("__name__", "prometheus", "prometheus_replica", "instance", "node", "uid")


def read(address: str, cluster: str) -> list[Series]:
    """Return the series of one cluster; volumes' series name no cluster and all come along.

    `address` is a file or a folder: .json (and .json.gz) answers, or .parquet with the columns
    name, labels, at and value. Raises InvalidInput for anything else.
    """
    what = f"The metrics {address}"
    place = address_of(address)
    found = _of_parquet if place.endswith(_PARQUET_SUFFIX) else _of_answers
    return series_of(found(files_of(place), place, what), cluster)


def _of_answers(files: Files, place: str, what: str) -> Iterator[Sample]:
    found = [place] if files.is_file(place) else []
    if files.is_folder(place):
        found = [name for suffix in _JSON for name in files.below(place, suffix)]
    elif not found:
        raise InvalidInput([f"{what} are not there; name a file of answers, or their folder."])
    for name in found:
        data = files.read(name)
        answer = _parsed(gzip.decompress(data) if name.endswith(".gz") else data)
        if answer.get("status") != "success":
            reason = answer.get("error") or "it is not an answer of the range-query API"
            raise InvalidInput([f"{what} holds no result: {reason}; query again."])
        data_of = answer.get("data") or {}
        if data_of.get("resultType") != "matrix":
            problem = (
                f"{what} holds a {data_of.get('resultType')}, not a matrix; ask "
                f"/api/v1/query_range with start, end and step."
            )
            raise InvalidInput([problem])
        for one in data_of["result"]:
            labels = one["metric"]
            for at, value in one.get("values", ()):
                yield labels.get("__name__"), labels, float(at), float(value)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _of_parquet(files: Files, place: str, what: str) -> Iterator[Sample]:
    found = [place] if files.is_file(place) else files.below(place, _PARQUET_SUFFIX)
    for address in found:
        with parquet(address) as file:
            table = file.read()
        missing = [name for name in _PARQUET if name not in table.column_names]
        if missing:
            problem = f"{what} has no column {missing[0]}; write {', '.join(_PARQUET)}."
            raise InvalidInput([problem])
        at = table["at"].cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        columns = (table["name"], table["labels"], at, table["value"])
        for name, labels, micros, value in zip(
            *map(pa.ChunkedArray.to_pylist, columns), strict=True
        ):
            if None not in (labels, micros, value):
                yield name, dict(labels), micros / 1e6, float(value)


def series_of(samples: Iterable[Sample], cluster: str) -> list[Series]:
    """Return samples as series of one cluster, in order; what is sampled twice counts once."""
    values: dict[tuple[str, tuple[tuple[str, str], ...]], dict[float, float]] = defaultdict(dict)
    labels_of: dict[int, tuple[tuple[str, str], ...] | None] = {}
    kept: dict[int, Mapping[str, str]] = {}
    for name, labels, at, value in samples:
        # An answer names a series' labels once for all of its samples.
        if id(labels) not in kept:
            kept[id(labels)] = labels
            labels_of[id(labels)] = _telling(labels) if _is_wanted(labels, cluster) else None
        telling = labels_of[id(labels)]
        if name is not None and telling is not None and not math.isnan(value):
            values[name.removesuffix("_total"), telling][round(at, 6)] = value
    return [
        _series(name, dict(telling), cluster, found) for (name, telling), found in values.items()
    ]


def _telling(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that tell one series from another."""
    return tuple(sorted((key, each) for key, each in labels.items() if key not in _SCRAPERS))


def _is_wanted(labels: Mapping[str, str], cluster: str) -> bool:
    named = _cluster(labels, cluster)
    return named == cluster or (named is None and "volume_id" in labels)


def _cluster(labels: Mapping[str, str], cluster: str) -> str | None:
    """Return whose series this is: what an operator labels, or else by the pod's name."""
    said = labels.get("cluster", labels.get("strimzi_io_cluster"))
    if said is not None:
        return said
    return cluster if re.search(rf"^{re.escape(cluster)}-.+-\d+$", _pod(labels)) else None


def _pod(labels: Mapping[str, str]) -> str:
    return labels.get("pod", _CLAIM.sub("", labels.get("persistentvolumeclaim", "")))


def _series(
    name: str, labels: Mapping[str, str], cluster: str, values: Mapping[float, float]
) -> Series:
    pod, volume_id = _pod(labels), labels.get("volume_id")
    node = _NODE.search(pod)
    pool = re.search(rf"^{re.escape(cluster)}-(.+)-\d+$", pod)
    return Series(
        name=name,
        cluster=None if volume_id is not None else cluster,
        pool=labels.get("pool_name", pool[1] if pool else None),
        node_id=int(node[1]) if node else None,
        claim=labels.get("persistentvolumeclaim"),
        volume_id=volume_id,
        topic=labels.get("topic"),
        points=sorted(values.items()),
    )
