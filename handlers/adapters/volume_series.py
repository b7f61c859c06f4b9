"""Reads volumes from a Prometheus: their fill now and before, and an hour of their load.

Every series that is missing is told as a sentence; the caller asks whoever else may know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from core.volumes import series
from core.volumes.series import AVAILABLE, CAPACITY, CLAIM_LABEL, VOLUME_LABEL
from core.volumes.views import Load
from handlers.adapters.fill import FillView
from handlers.adapters.prometheus import Prometheus

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


class VolumeSeries(Protocol):
    """What λ volumes asks of a Prometheus; each raises StillwaterError where it fails."""

    def fills(self, claims: Sequence[str], now: float) -> SeriesResult[FillView]:
        """Return how full claims are, by their names."""

    def past(self, claims: Sequence[str], now: float) -> Mapping[str, Mapping[float, float]]:
        """Return what was used of claims' file systems before, by the hour."""

    def loads(self, volumes: Sequence[str], now: float) -> SeriesResult[Load]:
        """Return the load of volumes, by their ids; a figure nobody has is None."""


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
