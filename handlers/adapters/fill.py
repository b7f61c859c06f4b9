"""Reads how full Kafka's volumes are: from the brokers, and now and before from a Prometheus.

Since KIP-827 a broker tells the size of the file system below a log directory and what is free of
it (DescribeLogDirs). That needs no agent and no Prometheus; controllers, which are no brokers, do
not tell. A Prometheus tells an hour of the volumes' load as well. Every series that is missing is
told as a sentence; the caller asks whoever else may know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafka.errors import KafkaError

from core.availability.wholeness import KafkaRequest
from core.volumes import series
from core.volumes.series import AVAILABLE, CAPACITY, CLAIM_LABEL, VOLUME_LABEL
from core.volumes.views import Load
from handlers.adapters.calls import known_shape
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.kafka_reading import (
    WireAdmin,
    brokers_there,
    log_dirs_request,
    raise_where_refused,
)
from handlers.adapters.prometheus import Prometheus

# Strimzi mounts volume n of every node there.
LOG_DIRECTORY = re.compile(r"/var/lib/kafka/data-(?P<number>\d+)/")


@dataclass(frozen=True, slots=True)
class FillView:
    """What one log directory holds; the file system's figures where the broker tells them."""

    logs_bytes: int
    total_bytes: int | None = None
    usable_bytes: int | None = None

    def used_bytes(self, volume_bytes: int) -> int:
        """Return what is used of a volume.

        The file system's word, where it is the volume's own: one of another size is not, as for
        logs in a directory beside other things; then the logs alone count.
        """
        if self.total_bytes is None or self.usable_bytes is None:
            return self.logs_bytes
        if not 0.8 * volume_bytes <= self.total_bytes <= 1.05 * volume_bytes:
            return self.logs_bytes
        # What a file system keeps for itself is gone as well: it is missing from the total.
        return volume_bytes - self.usable_bytes


class KafkaFills(KafkaAdmin):
    """Asks every broker that is there."""

    @known_shape("Kafka")
    def fills(self) -> Mapping[tuple[int, int], FillView]:
        """Return what every broker's volumes hold, by node id and volume number."""
        return self._ask(_fills)


def _fills(wire: WireAdmin) -> Mapping[tuple[int, int], FillView]:
    found = {}
    ids = brokers_there(wire)
    answers = wire.ask_each([(broker_id, log_dirs_request()) for broker_id in ids])
    for broker_id, answer in zip(ids, answers, strict=True):
        if isinstance(answer, KafkaError):
            continue  # one that is frozen says nothing of its fill, and is another alert's
        raise_where_refused(answer.error_code, KafkaRequest.DESCRIBE_LOG_DIRS)
        # A directory that failed says nothing of its fill either.
        for each in (d for d in answer.results if not d.error_code):
            named = LOG_DIRECTORY.search(f"{each.log_dir}/")
            if named is not None:
                found[broker_id, int(named["number"])] = _fill(each)
            elif len(answer.results) == 1:
                # Mounted elsewhere, as on the twin: one directory is the one volume.
                found[broker_id, 0] = _fill(each)
    return found


def _fill(directory: Any) -> FillView:
    logs = sum(
        partition.partition_size for topic in directory.topics for partition in topic.partitions
    )
    total, usable = directory.total_bytes, directory.usable_bytes
    if total is None or usable is None or total < 0 or usable < 0:
        return FillView(logs)
    return FillView(logs, total, usable)


# A query names its volumes, and a URL has an end.
VOLUMES_A_QUERY = 100
PAST_SECONDS = 14 * 24 * 3600.0
PAST_STEP_SECONDS = 3600.0
SCRAPE_KUBELETS = "let it scrape the kubelets, whose own endpoint tells of claims"
SCRAPE_DRIVER = "let it scrape the EBS driver's nodes (node.enableMetrics) at least once a minute"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SeriesResult(Generic[T]):
    """What was found, and what was not, as sentences."""

    found: Mapping[str, T] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()


class PrometheusVolumes:
    """One cluster's volumes in a Prometheus; `labels` tell it from others that are there."""

    def __init__(
        self,
        prometheus: Prometheus,
        namespace: str,
        kafka_cluster: str,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._prometheus, self._labels = prometheus, dict(labels or {})
        self._namespace, self._cluster = namespace, kafka_cluster

    def fills(self, claims: Sequence[str], now: float) -> SeriesResult[FillView]:
        """Return how full claims are, by their names."""
        said = {
            metric: {
                each.labels.get(CLAIM_LABEL, ""): each.points
                for each in self._prometheus.instant(self._room(metric), now)
            }
            for metric in series.ROOM_METRICS
        }
        found = {}
        for claim in claims:
            capacity = next(iter(said[CAPACITY].get(claim, {}).values()), None)
            available = next(iter(said[AVAILABLE].get(claim, {}).values()), None)
            if capacity is not None and available is not None:
                used = max(0, int(capacity - available))
                found[claim] = FillView(used, int(capacity), int(available))
        return SeriesResult(
            found, tuple(series.gaps(said, claims, series.ROOM_METRICS, SCRAPE_KUBELETS))
        )

    def past(self, claims: Sequence[str], now: float) -> Mapping[str, Mapping[float, float]]:
        """Return what was used of claims' file systems before, by the hour."""
        begin = now - PAST_SECONDS
        said = {
            metric: {
                each.labels.get(CLAIM_LABEL, ""): each.points
                for each in self._prometheus.over(
                    self._room(metric), begin, now - PAST_STEP_SECONDS, PAST_STEP_SECONDS
                )
            }
            for metric in series.ROOM_METRICS
        }
        return {
            claim: {
                at: capacity - said[AVAILABLE][claim][at]
                for at, capacity in points.items()
                if at in said[AVAILABLE].get(claim, {})
            }
            for claim, points in said[CAPACITY].items()
            if claim in claims
        }

    def loads(self, volumes: Sequence[str], now: float) -> SeriesResult[Load]:
        """Return the load of volumes, by their ids; a figure nobody has is None."""
        found = {metric: dict(self._rates(metric, volumes, now)) for metric in series.LOAD_METRICS}
        return SeriesResult(
            {volume: series.load(volume, found) for volume in volumes},
            tuple(series.gaps(found, volumes, series.LOAD_METRICS, SCRAPE_DRIVER)),
        )

    def _room(self, metric: str) -> str:
        return series.room(metric, self._namespace, self._cluster, self._labels)

    def _rates(
        self, metric: str, volumes: Sequence[str], now: float
    ) -> Iterator[tuple[str, Mapping[float, float]]]:
        begin = now - series.LOOK_BACK_SECONDS
        for first in range(0, len(volumes), VOLUMES_A_QUERY):
            some = volumes[first : first + VOLUMES_A_QUERY]
            query = series.rate(metric, some, self._labels)
            for each in self._prometheus.over(query, begin, now, series.STEP_SECONDS):
                yield each.labels.get(VOLUME_LABEL, ""), each.points
