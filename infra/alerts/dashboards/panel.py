"""Defines a dashboard's parts, and writes them as Grafana wants them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core import metric_names as counted
from core.cluster import ClusterSpec

# Grafana moves older ones forward by itself.
SCHEMA_VERSION = 39
UID_LIMIT = 40
COLUMNS, HEIGHT = 24, 8
PROMETHEUS, CLOUDWATCH = "prometheus", "cloudwatch"
# Variables by which whoever opens a dashboard chooses where its figures come from.
VARIABLES = {PROMETHEUS: "prometheus", CLOUDWATCH: "cloudwatch"}
# Grafana's own: at least four scrapes, whatever the zoom.
RATE = "$__rate_interval"


@dataclass(frozen=True, kw_only=True)
class Prom:
    """One PromQL expression and what its series are called."""

    expression: str
    legend: str = ""


def by_pod(expression: str) -> tuple[Prom, ...]:
    """Return the query of one series for each pod."""
    return (Prom(expression=expression, legend="{{pod}}"),)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """One of the functions' own counters, in CloudWatch."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A graph, or a figure of now; its queries are all of one source."""

    title: str
    description: str
    unit: str
    queries: tuple[Prom | Counted, ...]
    kind: Literal["timeseries", "stat"] = "timeseries"
    width: Literal[4, 6, 8, 12, 24] = 12

    @property
    def source(self) -> str:
        return CLOUDWATCH if isinstance(self.queries[0], Counted) else PROMETHEUS


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """Panels in reading order; `pods` adds a choice of pod, as the variable $pod."""

    key: str
    title: str
    description: str
    panels: Sequence[Panel]
    pods: str | None = None


def uid(prefix: str, key: str) -> str:
    """Return a dashboard's address, shortened with a hash where Grafana's 40 characters are short.

    Stable: links to it stand in messages and runbooks.
    """
    full = f"stillwater-{prefix}-{key}"
    if len(full) <= UID_LIMIT:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:8]
    return f"{full[: UID_LIMIT - 9].rstrip('-')}-{digest}"


def render_dashboard(dashboard: Dashboard, spec: ClusterSpec) -> dict[str, Any]:
    """Return a dashboard as Grafana's JSON."""
    sources = {panel.source for panel in dashboard.panels}
    variables = [_source_variable(source) for source in VARIABLES if source in sources]
    if dashboard.pods is not None:
        variables.append(_pod_variable(dashboard.pods))
    return {
        "uid": uid(spec.prefix, dashboard.key),
        "title": f"{dashboard.title}: {spec.prefix}",
        "description": dashboard.description,
        "tags": ["kafka", "stillwater", spec.prefix],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": variables},
        "annotations": {"list": []},
        "links": [],
        "panels": _laid_out_panels(dashboard.panels, spec),
    }


def _laid_out_panels(panels: Sequence[Panel], spec: ClusterSpec) -> list[dict[str, Any]]:
    """Lay panels out in reading order, a new line where one does not fit."""
    placed, x, y = [], 0, 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > COLUMNS:
            x, y = 0, y + HEIGHT
        where = {"x": x, "y": y, "w": panel.width, "h": HEIGHT}
        placed.append({"id": number, "gridPos": where, **_panel(panel, spec)})
        x += panel.width
    return placed


def _panel(panel: Panel, spec: ClusterSpec) -> dict[str, Any]:
    source = {"type": panel.source, "uid": f"${{{VARIABLES[panel.source]}}}"}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": _options(panel.kind),
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": source, **_target(query, spec)}
            for number, query in enumerate(panel.queries)
        ],
    }


def _options(kind: str) -> dict[str, Any]:
    if kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}}
    return {"legend": {"displayMode": "list", "placement": "bottom"}}


def _target(query: Prom | Counted, spec: ClusterSpec) -> dict[str, Any]:
    if isinstance(query, Prom):
        return {"expr": query.expression, "legendFormat": query.legend or "__auto"}
    return {
        "namespace": counted.NAMESPACE,
        "metricName": query.name,
        "dimensions": {counted.CLUSTER_DIMENSION: [spec.prefix]},
        "matchExact": True,
        "statistic": "Sum",
        "period": "300",
        "region": spec.region,
        "queryMode": "Metrics",
        "metricQueryType": 0,
        "metricEditorMode": 0,
        "label": query.name,
    }


def _source_variable(source: str) -> dict[str, Any]:
    return {
        "name": VARIABLES[source],
        "label": source.capitalize(),
        "type": "datasource",
        "query": source,
        "hide": 0,
        "multi": False,
        "includeAll": False,
    }


def _pod_variable(series: str) -> dict[str, Any]:
    query = f"label_values({series}, pod)"
    return {
        "name": "pod",
        "label": "Pod",
        "type": "query",
        "datasource": {"type": PROMETHEUS, "uid": f"${{{VARIABLES[PROMETHEUS]}}}"},
        "definition": query,
        "query": {"query": query, "refId": "pods"},
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "hide": 0,
    }
