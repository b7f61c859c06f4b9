"""The metrics of Kafka's pods, read through the API server's proxy, within a bound.

A function may reach the API server already, so nothing new is opened in the network: RBAC lets it
`get` the proxy of each Kafka pod by name and metrics port, and of nothing else (ADR 0012). Pods are
asked side by side, and one that is frozen costs its own timeout and nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote, urlencode

from core.errors import StillwaterError
from core.health import kafka_metrics
from core.health.kafka_metrics import NodeMetrics
from core.naming import node_id_of_pod
from handlers.adapters.eks import EksApi
from handlers.adapters.shapes import known_shape

# An exporter that is asked for what is wanted answers in milliseconds, the JMX exporter with every
# bean in a second; a broker that takes longer is no better than one that does not answer.
SCRAPE_SECONDS = 3.0
AT_ONCE = 8
_WANTED = urlencode([("name[]", name) for name in kafka_metrics.wanted_names()])


@dataclass(frozen=True, slots=True)
class Scrapes:
    """One round: what each Kafka node told, and why the others did not, as sentences."""

    metrics: Mapping[int, NodeMetrics] = field(default_factory=dict)
    silent: Mapping[int, str] = field(default_factory=dict)


class Exporters(Protocol):
    """What the handlers ask of the exporters."""

    def scrape(self, pods: Iterable[str]) -> Scrapes:
        """Ask every named Kafka pod once; never raises."""


class PodExporters:
    """Asks the exporters of an EKS cluster's pods; `api` should keep AT_ONCE connections."""

    def __init__(self, api: EksApi, namespace: str, seconds: float = SCRAPE_SECONDS) -> None:
        self._api, self._namespace, self._seconds = api, namespace, seconds

    def scrape(self, pods: Iterable[str]) -> Scrapes:
        names = {node_id: pod for pod in pods if (node_id := node_id_of_pod(pod)) is not None}
        metrics: dict[int, NodeMetrics] = {}
        silent: dict[int, str] = {}
        with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="scrape") as workers:
            for node_id, told in zip(
                names, workers.map(self._metrics_of, names.values()), strict=True
            ):
                if isinstance(told, NodeMetrics):
                    metrics[node_id] = told
                else:
                    silent[node_id] = told
        return Scrapes(metrics, silent)

    def _metrics_of(self, pod: str) -> NodeMetrics | str:
        path = (
            f"/api/v1/namespaces/{quote(self._namespace)}/pods/"
            f"{quote(pod)}:{kafka_metrics.PORT}/proxy/metrics"
        )
        try:
            found = self._parsed(f"{path}?{_WANTED}")
            if not found.samples:  # an exporter that spells everything its own way
                found = self._parsed(path)
        except StillwaterError as error:
            return f"The metrics of pod {pod} could not be read: {error}"
        if not found.samples:
            return (
                f"The exporter of pod {pod} tells nothing of what is wanted; let its allow list "
                f"name it."
            )
        return found

    @known_shape("Its exporter")
    def _parsed(self, path: str) -> NodeMetrics:
        return kafka_metrics.parse(self._api.text(path, self._seconds))
