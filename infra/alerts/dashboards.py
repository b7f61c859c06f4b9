"""Fills Grafana's dashboards (grafana/*.json) with one cluster's values: how the cluster does.

ConfigMaps carry them to Grafana's sidecar, which loads what has the label. A dashboard's uid comes
from the cluster's name, so links last.

`cost` multiplies what Prometheus sees with the price book: what the running cluster costs at list
price by the hour, without discounts. Every price that goes in is named in its panel, with the day
it was read; the bill itself is `stillwater report`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec, NodePool, Storage
from core.cost import pricing
from core.cost.pricing import BYTES_PER_GIB, HOURS_PER_MONTH, PriceBook
from core.ground.errors import InvalidInput
from infra.alerts.values import claims, cluster_values, filled, pod_info

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
    between = _between_zones(values, book)
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


def _between_zones(values: Mapping[str, str], book: PriceBook) -> str:
    price = book.price("inter_zone_gib").usd * SIDES * pricing.SECONDS_PER_HOUR
    fetched = f"sum(rate({REPLICATION}{{{values['kafka']}}}[$__rate_interval]))"
    return f"{fetched} / {BYTES_PER_GIB} * {_number(price)}"


def _price_text(book: PriceBook, item: str) -> str:
    price = book.price(item)
    return f"{item} {price.usd} USD (read {price.as_of})"


def _number(amount: Decimal) -> str:
    return f"{pricing.plain(amount):f}"
