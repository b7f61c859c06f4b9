"""Asks all sources at once how the cluster does, and answers within a bound whatever they do.

200 healthy, 503 starting or degraded, 500 unhealthy or unable to tell; a JSON body with the reason
and every part.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger

from core.availability.operator import KafkaConditions
from core.examination import LEDGER, Expected, Seen, parts
from core.ground.constants import CLUSTER_HEALTH
from core.ground.errors import StillwaterError
from core.ground.fields import Unknown
from core.health.node import NodeMetrics
from core.health.verdict import (
    NEEDED,
    ClusterHealth,
    Part,
    PartKind,
    cluster_health,
    document,
    not_known,
)
from core.settings.codec import setting_text
from core.views import ClusterView
from handlers.adapters import metrics
from handlers.adapters.calls import ask_within, first_of
from handlers.adapters.kafka import KafkaAdmin
from handlers.adapters.pods import EksPods, Fetch, PodExporters, ask
from handlers.store.documents import Freezes
from handlers.store.ledger import Ledger

logger = Logger(service="stillwater")
# A broker that is frozen costs whoever asks it first many seconds, so the next is asked beside it.
STAGGER_SECONDS = 2.0
# What a worker's answer takes on its way, on top of the time its probe has.
MARGIN_SECONDS = 2.0
# All exporters are asked at once, by a function that has a third of a processor.
EXPORTER_SECONDS = 6.0
# What CloudWatch is told (core.ground.constants).
SEVERITY = {200: 0, 503: 1, 500: 2}
KAFKA, PODS, INCIDENTS, FREEZES, NODES = "kafka", "pods", "incidents", "freezes", "nodes"
OPERATOR = "operator"


@dataclass(frozen=True, kw_only=True)
class Examiner:
    """Asks everybody who knows something about the cluster."""

    cluster: str
    expected: Expected
    kafka: Sequence[KafkaAdmin]  # one per bootstrap address
    pods: EksPods
    workers: Mapping[str, Fetch]
    exporters: PodExporters
    exporting: Mapping[int, str]  # node id -> pod, of those that export metrics
    ledger: Ledger
    freezes: Freezes
    operator: Callable[[], KafkaConditions]
    probe_seconds: float
    # Node id -> role, of a cluster whose description names no nodes.
    nodes: Callable[[], Mapping[int, str]] | None = None

    @property
    def seconds(self) -> float:
        """How long an examination takes at most."""
        return self.probe_seconds + MARGIN_SECONDS

    def examine(self, now: float) -> ClusterHealth:
        """Return the cluster's health; a source that is silent leaves its parts unknown."""
        questions: dict[str, Callable[[], Any]] = {
            KAFKA: self._kafka,
            PODS: self.pods.pods,
            INCIDENTS: self.ledger.open_incidents,
            FREEZES: lambda: self.freezes.current(now),
            OPERATOR: self.operator,
            **({} if self.nodes is None else {NODES: self.nodes}),
            **{
                worker: functools.partial(ask, fetch, self.probe_seconds)
                for worker, fetch in self.workers.items()
            },
            **{pod: functools.partial(self._metrics, pod) for pod in self.exporting.values()},
        }
        answers = ask_within(self.seconds, questions)
        seen = Seen(
            kafka=answers[KAFKA],
            pods=answers[PODS],
            incidents=answers[INCIDENTS],
            freezes=answers[FREEZES],
            operator=answers[OPERATOR],
            nodes=answers.get(NODES),
            workers={worker: answers[worker] for worker in self.workers},
            metrics={node_id: answers[pod] for node_id, pod in self.exporting.items()},
        )
        return cluster_health(parts(seen, self.expected, now))

    def answer(self, now: float) -> dict[str, Any]:
        """Return the answer in the form in which Lambda speaks HTTP."""
        started = time.monotonic()
        health = self.examine(now)
        return _response(self.cluster, health, now, time.monotonic() - started)

    def _kafka(self) -> ClusterView:
        if not self.kafka:
            raise StillwaterError("No bootstrap address is known.")
        return first_of(
            [each.read for each in self.kafka],
            stagger_seconds=STAGGER_SECONDS,
            seconds=self.seconds,
        )

    def _metrics(self, pod: str) -> NodeMetrics | Unknown:
        # One at a time: each has its own thread already, and its own silence.
        found = self.exporters.scrape([pod])
        told, silent = [*found.metrics.values()], [*found.silent.values()]
        return told[0] if told else Unknown(" ".join(silent) or f"Pod {pod} has no Kafka node.")


def _response(cluster: str, health: ClusterHealth, now: float, seconds: float) -> dict[str, Any]:
    if not health.verdict.healthy:
        # So that a caller's 503 can still be explained when nobody has kept its body.
        logger.warning(health.verdict.reason, status_code=health.status_code)
    metrics.count(CLUSTER_HEALTH, SEVERITY[health.status_code])
    return {
        "statusCode": health.status_code,
        "headers": {"content-type": "application/json", "cache-control": "no-store"},
        "body": json.dumps(document(cluster, health, now, seconds), ensure_ascii=False),
    }


def unable(error: Exception, now: float, started: float) -> dict[str, Any]:
    """Answer while the ledger is silent at a start: whom to ask stands in it."""
    reason = f"The addresses stand in the ledger's table, which does not answer: {error}"
    verdict = not_known(reason, (LEDGER,))
    health = cluster_health(
        Part(kind, kind.value, verdict) for kind in (*NEEDED, PartKind.INCIDENTS)
    )
    cluster = setting_text(os.environ, "cluster") or ""
    return _response(cluster, health, now, time.monotonic() - started)
