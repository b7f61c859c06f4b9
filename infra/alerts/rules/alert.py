"""One alert, and what the expressions of one cluster have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core import naming
from core.cluster import ClusterSpec, NodePool

Severity = Literal["critical", "warning"]
BROKER_STATE = "kafka_server_kafkaserver_brokerstate"
ACTIVE_CONTROLLER = "kafka_controller_kafkacontroller_activecontrollercount"
# KIP-859's counters of records that a node could not load or apply.
METADATA_ERRORS = {
    "load": "kafka_server_broker_metadata_metrics_metadata_load_error_count",
    "apply": "kafka_server_broker_metadata_metrics_metadata_apply_error_count",
    "controller": "kafka_controller_kafkacontroller_metadataerrorcount",
}


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

    def node_pools(self, pools: Sequence[NodePool] | None = None) -> list[str]:
        """Return the names of the KafkaNodePools of these pools, or of all."""
        return [
            naming.kafka_node_pool(pool.name, zone)
            for pool in pools or self.spec.pools
            for zone in self.spec.zones_of(pool)
        ]

    def pod_info(self, pools: Sequence[NodePool] | None = None, more: str = "") -> str:
        """Select the pods of these pools, or of all, by the pod set that owns each."""
        sets = "|".join(naming.pod_set(self.spec.name, each) for each in self.node_pools(pools))
        return (
            f'kube_pod_info{{namespace="{self.namespace}",created_by_kind="StrimziPodSet",'
            f'created_by_name=~"{sets}"{more}}}'
        )

    @property
    def pods(self) -> str:
        """Return Kafka's pods as kube-state-metrics knows them.

        1 for every pod, with its node; a pod that stands nowhere yet has none.
        """
        return f"max by (namespace, pod, node) ({self.pod_info()})"

    @property
    def pending(self) -> str:
        """Return an expression for Kafka's pods that wait for a node."""
        waiting = f'kube_pod_status_phase{{namespace="{self.namespace}",phase="Pending"}}'
        return f"max by (namespace, pod) ({waiting}) == 1 and on (namespace, pod) {self.pods}"

    @property
    def namespace(self) -> str:
        return self.spec.kubernetes.namespace

    @property
    def claims(self) -> str:
        """Return the pattern of the claims' names, made from the names node pools really give."""
        return f"data-[0-9]+-{self.spec.name}-({'|'.join(self.node_pools())})-[0-9]+"

    def volumes(self, more: str = "") -> str:
        """Select what is said of Kafka's claims; `more` are further conditions."""
        return f'{{namespace="{self.namespace}",persistentvolumeclaim=~"{self.claims}"{more}}}'

    @property
    def certificate_seconds(self) -> str:
        """Return the seconds that each of Strimzi's authorities is still valid, by its type."""
        ends = (
            f'strimzi_certificate_expiration_timestamp_ms{{cluster="{self.spec.name}",'
            f'resource_namespace="{self.namespace}"}}'
        )
        return f"min by (type) ({ends}) / 1000 - time()"

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
