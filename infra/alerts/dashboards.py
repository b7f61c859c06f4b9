"""Fills Prometheus' alerts and Grafana's dashboards with one cluster's values, and registers them.

rules.yaml and grafana/*.json have `@{name}` where a cluster's own selector or limit stands.
ConfigMaps carry dashboards to Grafana's sidecar; a uid comes from the cluster's name, so links
last. `cost` is the running cluster at list price, without discounts, and names each price with the
day it was read; the bill itself is `stillwater report`.
"""

from __future__ import annotations

import hashlib
import json
import math
import string
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import yaml
from pulumi_kubernetes.apiextensions import CustomResource

from core.availability.budget import HOUR, WINDOWS, BudgetWindow
from core.cluster import ClusterSpec, NodePool, Storage
from core.cost import pricing
from core.cost.pricing import BYTES_PER_GIB, HOURS_PER_MONTH, PriceBook
from core.ground import naming
from core.ground.errors import InvalidInput
from core.settings.prometheus import ATTEMPTS, FAILED
from infra.alerts.metrics import POD_MONITOR_API


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


TYPE = "stillwater:infra:Dashboards"
# What the sidecar of Grafana's chart looks for unless it is told otherwise.
LABEL = "grafana_dashboard"
FOLDER = Path(__file__).with_name("grafana")
COST = "cost"
UID_LIMIT = 40
# A byte between zones is billed to the one who sends and to the one who receives.
SIDES = 2
REPLICATION = "kafka_server_brokertopicmetrics_replicationbytesinpersec_total"
ASKED = "kube_persistentvolumeclaim_resource_requests_storage_bytes"
# Panels with a query for each pool.
NODES_PANEL, VOLUMES_PANEL = "Nodes, by the hour", "Volumes, by the hour"


def dashboards(spec: ClusterSpec, own_prices: Path | None = None) -> Mapping[str, dict[str, Any]]:
    """Return every dashboard of a cluster by its name.

    Without prices for the region or an instance type there is no `cost`.
    """
    values = cluster_values(spec)
    found = {key: _dashboard(key, values) for key in ("cluster", "broker", "rotation")}
    try:
        found[COST] = _cost_dashboard(spec, values, pricing.book(spec.region, own=own_prices))
    except InvalidInput as error:
        pulumi.log.warn(f"No dashboard of costs is made. {error}")
    return found


class Dashboards(pulumi.ComponentResource):
    """A ConfigMap for each dashboard, beside Kafka."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        opts: pulumi.ResourceOptions | None = None,
        *,
        own_prices: Path | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        for key, dashboard in dashboards(spec, own_prices).items():
            k8s.core.v1.ConfigMap(
                f"{name}-{key}",
                metadata=k8s.meta.v1.ObjectMetaArgs(
                    name=f"{spec.name}-dashboard-{key}",
                    namespace=spec.kubernetes.namespace,
                    labels={LABEL: "1"},
                ),
                data={f"{spec.prefix}-{key}.json": text(dashboard)},
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def text(dashboard: Mapping[str, Any]) -> str:
    """Return a dashboard as Grafana reads it; the same description, the same text."""
    return json.dumps(dashboard, indent=1, sort_keys=True) + "\n"


def uid(prefix: str, key: str) -> str:
    """Return a dashboard's address, shortened with a hash where Grafana's 40 characters are short.

    Stable: links to it stand in messages and runbooks.
    """
    full = f"stillwater-{prefix}-{key}"
    if len(full) <= UID_LIMIT:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:8]
    return f"{full[: UID_LIMIT - 9].rstrip('-')}-{digest}"


def _dashboard(key: str, values: Mapping[str, str]) -> dict[str, Any]:
    read = json.loads((FOLDER / f"{key}.json").read_text())
    return {"uid": uid(values["prefix"], key), **filled(read, values)}


def _cost_dashboard(
    spec: ClusterSpec, values: Mapping[str, str], book: PriceBook
) -> dict[str, Any]:
    """Return the dashboard of costs; raises InvalidInput where the price book lacks a price."""
    nodes = {pool.name: _compute(spec, pool, book) for pool in spec.pools}
    volumes = {pool.name: _storage(spec, pool, book) for pool in spec.pools}
    between = _zone_traffic(values, book)
    fixed = f"vector({book.price('eks_cluster_hour').usd + book.price('nlb_hour').usd})"
    parts = [*nodes.values(), *volumes.values(), between, fixed]
    instances = {f"{pricing.INSTANCE_HOUR}:{pool.instance_type}" for pool in spec.pools}
    items = ("eks_cluster_hour", "nlb_hour", "inter_zone_gib")
    speeds = ("gp3_gib_month", "gp3_iops_month", "gp3_gibps_month")
    prices = {f"price_{item}": _price_text(book, item) for item in (*items, *speeds)}
    dashboard = _dashboard(
        COST,
        {
            **values,
            **prices,
            "price_instances": "; ".join(sorted(_price_text(book, item) for item in instances)),
            "whole": " + ".join(f"({part} or vector(0))" for part in parts),
            "between_zones": between,
            "fixed": fixed,
            "hours": str(HOURS_PER_MONTH),
        },
    )
    for panel in dashboard["panels"]:
        pools = {NODES_PANEL: nodes, VOLUMES_PANEL: volumes}.get(panel["title"], {})
        panel["targets"] += [
            {
                "refId": chr(ord("A") + number),
                "datasource": panel["datasource"],
                "expr": expression,
                "legendFormat": pool,
            }
            for number, (pool, expression) in enumerate(pools.items())
        ]
    return dashboard


def _compute(spec: ClusterSpec, pool: NodePool, book: PriceBook) -> str:
    pods = pod_info(spec, [pool], ',node!=""')
    # One Kafka pod a node: nodes, not pods, are billed, and a node in rotation is counted twice.
    return f"count(count by (node) ({pods})) * {book.instance_hour(pool.instance_type).usd}"


def _storage(spec: ClusterSpec, pool: NodePool, book: PriceBook) -> str:
    return " + ".join(
        _volume(spec, pool, number, volume, book) for number, volume in enumerate(pool.volumes)
    )


def _volume(
    spec: ClusterSpec, pool: NodePool, number: int, volume: Storage, book: PriceBook
) -> str:
    """Return what a pool's volumes of one number cost by the hour: room, and speed beyond gp3's."""
    names = claims(spec, [pool], str(number))
    asked = f'{ASKED}{{namespace="{spec.kubernetes.namespace}",persistentvolumeclaim=~"{names}"}}'
    speed = (
        pricing.billed_iops(volume.iops) * book.price("gp3_iops_month").usd
        + pricing.billed_gib_per_s(volume.throughput_mib_per_s) * book.price("gp3_gibps_month").usd
    )
    room = f"sum({asked}) / {BYTES_PER_GIB} * {book.price('gp3_gib_month').usd}"
    # A volume that is not there yet costs nothing; without 0 for it, neither would the others.
    return f"(({room} + count({asked}) * {_number(speed)}) / {HOURS_PER_MONTH} or vector(0))"


def _zone_traffic(values: Mapping[str, str], book: PriceBook) -> str:
    price = book.price("inter_zone_gib").usd * SIDES * pricing.SECONDS_PER_HOUR
    fetched = f"sum(rate({REPLICATION}{{{values['kafka']}}}[$__rate_interval]))"
    return f"{fetched} / {BYTES_PER_GIB} * {_number(price)}"


def _price_text(book: PriceBook, item: str) -> str:
    price = book.price(item)
    return f"{item} {price.usd} USD (read {price.as_of})"


def _number(amount: Decimal) -> str:
    return f"{pricing.plain(amount):f}"


RULES = Path(__file__).with_name("rules.yaml")
# Groups and alerts on what a description may leave out.
_CONNECT, _PROBE, _GATE = "connect", "probe", "KafkaEvictionGateAway"


def prometheus_rule(name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions) -> CustomResource:
    """Return the PrometheusRule of a cluster."""
    return CustomResource(
        name,
        api_version=POD_MONITOR_API,
        kind="PrometheusRule",
        metadata={"name": f"{spec.name}-kafka", "namespace": spec.kubernetes.namespace},
        spec=rule_file(spec),
        opts=opts,
    )


def rule_file(spec: ClusterSpec) -> dict[str, Any]:
    """Return the rules as Prometheus reads them from a file, and the operator from a resource."""
    read = yaml.safe_load(RULES.read_text())["groups"]
    described = {_CONNECT: spec.connect, _PROBE: spec.probe, _GATE: spec.eviction_gate}
    left_out = {name for name, setting in described.items() if setting is None}
    return {
        "groups": [
            {
                "name": f"{spec.name}-{group['name']}",
                "rules": [
                    _rule(each, spec) for each in group["rules"] if each["alert"] not in left_out
                ],
            }
            for group in read
            if group["name"] not in left_out
        ]
    }


def _rule(alert: dict[str, Any], spec: ClusterSpec) -> dict[str, Any]:
    rule: dict[str, Any] = filled(alert, cluster_values(spec))
    rule["annotations"]["runbook_url"] = f"{spec.alerts.runbooks_url}/{alert['alert']}.md"
    return rule
