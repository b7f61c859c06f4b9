"""The named values of one cluster that its rules and dashboards are filled with.

rules.yaml and grafana/*.json are what Prometheus and Grafana read, with `@{name}` where a cluster's
own selector or limit stands: by these they hear one cluster and no other.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

from core.availability.budget import HOUR, WINDOWS, BudgetWindow
from core.cluster import ClusterSpec, NodePool
from core.ground import naming
from core.settings.probe import ATTEMPTS, FAILED


class _Text(string.Template):
    # Prometheus writes $labels, Grafana $__rate_interval.
    delimiter = "@"


def filled(data: Any, values: Mapping[str, str]) -> Any:
    """Return what YAML or JSON holds with every `@{name}` replaced; raises KeyError for another."""
    if isinstance(data, str):
        return _Text(data).substitute(values)
    if isinstance(data, list):
        return [filled(each, values) for each in data]
    if isinstance(data, dict):
        return {key: filled(each, values) for key, each in data.items()}
    return data


def cluster_values(spec: ClusterSpec) -> dict[str, str]:
    """Return the selectors and limits of a cluster by name."""
    namespace, timings = spec.kubernetes.namespace, spec.timings
    pods = f"max by (namespace, pod, node) ({pod_info(spec)})"
    waiting = f'kube_pod_status_phase{{namespace="{namespace}",phase="Pending"}}'
    return {
        "cluster": spec.name,
        "namespace": namespace,
        "prefix": spec.prefix,
        "region": spec.region,
        # Labels of what Kafka's own pods and Connect's workers say, and what is said of its claims.
        "kafka": _kafka_labels(spec),
        "connect": f'namespace="{namespace}",cluster="{naming.connect(spec.name)}"',
        "volumes": f'namespace="{namespace}",persistentvolumeclaim=~"{claims(spec)}"',
        # 1 for every pod of Kafka's, with its node; a pod that stands nowhere yet has none.
        "pods": pods,
        "pending": f"max by (namespace, pod) ({waiting}) == 1 and on (namespace, pod) {pods}",
        "cordoned": "max by (node) (kube_node_spec_unschedulable) == 1",
        "claims": claims(spec),
        "brokers": str(spec.brokers),
        "controllers": str(spec.controllers),
        "workers": str(spec.connect.replicas if spec.connect else 0),
        "drain_minutes": _whole_minutes(2 * timings.nth_drain_timeout_seconds),
        "shutdown_minutes": _whole_minutes(timings.pod_grace_seconds + 60),
        "return_minutes": _whole_minutes(timings.post_condition_wait_seconds),
        "fast_burn": _burns(spec, "critical"),
        "slow_burn": _burns(spec, "warning"),
    }


def _kafka_labels(spec: ClusterSpec) -> str:
    return f'namespace="{spec.kubernetes.namespace}",cluster="{spec.name}"'


def pod_info(spec: ClusterSpec, pools: Sequence[NodePool] | None = None, more: str = "") -> str:
    """Select the pods of these pools, or of all, by the pod set that owns each."""
    sets = "|".join(naming.pod_set(spec.name, each) for each in node_pools(spec, pools))
    return (
        f'kube_pod_info{{namespace="{spec.kubernetes.namespace}",created_by_kind="StrimziPodSet",'
        f'created_by_name=~"{sets}"{more}}}'
    )


def claims(
    spec: ClusterSpec, pools: Sequence[NodePool] | None = None, number: str = "[0-9]+"
) -> str:
    """Return the pattern of the claims' names, made from the names node pools really give."""
    return f"data-{number}-{spec.name}-({'|'.join(node_pools(spec, pools))})-[0-9]+"


def node_pools(spec: ClusterSpec, pools: Sequence[NodePool] | None = None) -> list[str]:
    """Return the names of the KafkaNodePools of these pools, or of all."""
    return [
        naming.kafka_node_pool(pool.name, zone)
        for pool in pools or spec.pools
        for zone in spec.zones_of(pool)
    ]


def _whole_minutes(seconds: float) -> str:
    """Return seconds as minutes, rounded up: an alert never comes before its limit."""
    return str(math.ceil(seconds / 60))


def _burns(spec: ClusterSpec, severity: str) -> str:
    """Return an expression that holds while both windows of a pair burn faster than its limit."""
    if spec.probe is None:
        return ""
    may_fail = 1 - spec.probe.objective_percent / 100
    return " or ".join(
        _burns_in(window, f"{window.burn_rate * may_fail:.6g}", _kafka_labels(spec))
        for window in WINDOWS
        if window.severity == severity
    )


def _burns_in(window: BudgetWindow, limit: str, kafka: str) -> str:
    long, short = (
        f"sum(rate({FAILED}{{{kafka}}}{over})) / sum(rate({ATTEMPTS}{{{kafka}}}{over}))"
        for over in (_range(window.long_seconds), _range(window.short_seconds))
    )
    return f"({long} > {limit} and {short} > {limit})"


def _range(seconds: int) -> str:
    return f"[{seconds // HOUR}h]" if seconds % HOUR == 0 else f"[{seconds // 60}m]"
