"""One alert, and what the expressions of one cluster have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from core import naming
from core.cluster import ClusterSpec

Severity = Literal["critical", "warning"]
BROKER_STATE = "kafka_server_kafkaserver_brokerstate"
ACTIVE_CONTROLLER = "kafka_controller_kafkacontroller_activecontrollercount"


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert; `minutes` is how long it must hold."""

    name: str
    expression: str
    minutes: int
    severity: Severity
    summary: str

    def rule(self, runbooks_url: str) -> dict[str, Any]:
        """Return the alert as Prometheus takes it."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "runbook_url": f"{runbooks_url}/{self.name}.md",
            },
        }


@dataclass(frozen=True)
class Scope:
    """Selectors by which a rule hears one cluster and no other."""

    spec: ClusterSpec

    @property
    def kafka(self) -> str:
        """Select what Kafka's own pods say."""
        return f'{{namespace="{self.spec.kubernetes.namespace}",cluster="{self.spec.name}"}}'

    @property
    def connect(self) -> str:
        """Select what Connect's workers say."""
        name = naming.connect(self.spec.name)
        return f'{{namespace="{self.spec.kubernetes.namespace}",cluster="{name}"}}'

    @property
    def pods(self) -> str:
        """Return Kafka's pods as kube-state-metrics knows them: by the pod set that owns each.

        1 for every pod, with its node; a pod that stands nowhere yet has none.
        """
        sets = "|".join(
            naming.pod_set(self.spec.name, naming.kafka_node_pool(pool.name, zone))
            for pool in self.spec.pools
            for zone in self.spec.zones_of(pool)
        )
        return (
            f'max by (namespace, pod, node) (kube_pod_info{{namespace="{self.namespace}",'
            f'created_by_kind="StrimziPodSet",created_by_name=~"{sets}"}})'
        )

    @property
    def namespace(self) -> str:
        return self.spec.kubernetes.namespace

    @property
    def claims(self) -> str:
        """Return the pattern of the claims' names, made from the names node pools really give."""
        pools = "|".join(
            naming.kafka_node_pool(pool.name, zone)
            for pool in self.spec.pools
            for zone in self.spec.zones_of(pool)
        )
        return f"data-[0-9]+-{self.spec.name}-({pools})-[0-9]+"

    @property
    def brokers(self) -> int:
        return self.spec.brokers

    @property
    def controllers(self) -> int:
        return self.spec.controllers


def fewer(series: str, promised: int) -> str:
    """Return an expression for fewer series than promised."""
    # A count over nothing is no number at all, and would never be below anything.
    return f"(count({series}) or vector(0)) < {promised}"


def whole_minutes(seconds: float) -> int:
    """Return seconds as minutes, rounded up: an alert never comes before its limit."""
    return math.ceil(seconds / 60)
