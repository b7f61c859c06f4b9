"""Fills Prometheus' alerts (rules.yaml) with one cluster's values, and registers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClusterSpec
from infra.alerts.metrics import POD_MONITOR_API
from infra.alerts.values import cluster_values, filled

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
