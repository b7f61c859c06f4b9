"""Lists the metrics Kafka and Connect expose to Prometheus: no default has what counts.

Strimzi's own list leaves out both metadata error counters of brokers (KIP-859), replication lag and
offline log directories (strimzi-kafka-operator 1.2.0, DEFAULT_METRICS_ALLOW_LIST). metrics.yaml has
regular expressions over the names of the Strimzi Metrics Reporter. It compares them with a name
before Prometheus's own ending is put on (seen with reporter 0.2.0 and Kafka 4.2.0), so an entry
that insists on `_total` or `_info` lets nothing through: both forms are written. What it tells of
its own process (jvm_*, process_*) is always there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClusterSpec, Metrics
from core.ground import naming

REPORTER = "strimziMetricsReporter"
# The port of that name on every container whose reporter is on.
PORT_NAME = "tcp-prometheus"
POD_MONITOR_API = "monitoring.coreos.com/v1"

_ALLOWED = yaml.safe_load(Path(__file__).with_name("metrics.yaml").read_text("utf-8"))
KAFKA_ALLOW, CONNECT_ALLOW = tuple(_ALLOWED["kafka"]), tuple(_ALLOWED["connect"])


def metrics_config(metrics: Metrics, allow: tuple[str, ...]) -> dict[str, Any]:
    """Return a resource's `metricsConfig` as a mapping to merge; empty when metrics are off."""
    if not metrics.enabled:
        return {}
    values = {"allowList": [*allow, *metrics.allow]}
    return {"metricsConfig": {"type": REPORTER, "values": values}}


def pod_monitor(
    name: str,
    spec: ClusterSpec,
    resource: str,
    strimzi_kind: str,
    opts: pulumi.ResourceOptions,
) -> CustomResource:
    """Return the PodMonitor of one Strimzi resource's pods (a Kafka or a KafkaConnect)."""
    return CustomResource(
        name,
        api_version=POD_MONITOR_API,
        kind="PodMonitor",
        metadata={
            "name": f"{resource}-{strimzi_kind.lower()}",
            "namespace": spec.kubernetes.namespace,
        },
        spec=pod_monitor_spec(resource, strimzi_kind),
        opts=opts,
    )


def operator_monitor(name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions) -> CustomResource:
    """Return the PodMonitor of Strimzi's operator, which knows when certificates end."""
    return CustomResource(
        name,
        api_version=POD_MONITOR_API,
        kind="PodMonitor",
        metadata={"name": naming.STRIMZI_OPERATOR, "namespace": spec.strimzi.namespace},
        spec={
            "selector": {"matchLabels": naming.OPERATOR_LABELS},
            "podMetricsEndpoints": [{"port": "http", "path": "/metrics"}],
        },
        opts=opts,
    )


def pod_monitor_spec(resource: str, strimzi_kind: str) -> dict[str, Any]:
    return {
        "selector": {
            "matchLabels": {
                naming.CLUSTER_LABEL: resource,
                "strimzi.io/kind": strimzi_kind,
            }
        },
        "podMetricsEndpoints": [
            {
                "port": PORT_NAME,
                "path": "/metrics",
                # Rules and dashboards speak of pools, zones and nodes, not of addresses.
                "relabelings": [
                    {
                        "action": "labelmap",
                        "regex": "__meta_kubernetes_pod_label_strimzi_io_(cluster|pool_name)",
                        "replacement": "$1",
                    },
                    {
                        "action": "replace",
                        "sourceLabels": ["__meta_kubernetes_pod_node_name"],
                        "targetLabel": "node",
                    },
                ],
            }
        ],
    }
