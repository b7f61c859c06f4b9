"""Grafana's dashboards as code: how a cluster does; what is wrong with it is in infra.alerts.rules.

Pure functions from a description to Grafana's JSON; ConfigMaps carry them to Grafana's sidecar,
which loads what has the label. A dashboard's uid comes from the cluster's name, so links last.

`cost` multiplies what Prometheus sees with the price book, because nothing else exists live: the
functions' counters in CloudWatch carry no dollars, and no Athena table is made. It says what the
running cluster costs at list price by the hour; the bill itself is `stillwater report`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec
from core.cost import pricing
from core.errors import InvalidInput
from infra.alerts.dashboards import broker, cluster, cost, rotation
from infra.alerts.dashboards.panel import Dashboard, render_dashboard

TYPE = "stillwater:infra:Dashboards"
# What the sidecar of Grafana's chart looks for unless it is told otherwise.
LABEL = "grafana_dashboard"


def dashboards(spec: ClusterSpec, own_prices: Path | None = None) -> Mapping[str, dict[str, Any]]:
    """Return every dashboard of a cluster by its name.

    Without prices for the region or an instance type there is no `cost`.
    """
    found = [cluster.dashboard(spec), broker.dashboard(spec), rotation.dashboard(spec)]
    try:
        found.append(cost.dashboard(spec, pricing.book(spec.region, own=own_prices)))
    except InvalidInput as error:
        pulumi.log.warn(f"No dashboard of costs is made. {error}")
    return {each.key: render_dashboard(each, spec) for each in found}


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


__all__ = ["Dashboard", "Dashboards", "dashboards", "text"]
