"""Lists Prometheus' alerts, one group per module.

No rule reads a Kafka pod's name by a pattern. Strimzi's examples do, by one that no node pool's pod
matches, and so never fire (strimzi#13163); ours go by the labels the PodMonitors give, by the pod
sets that own a pod, and by how many pods the description promises. Every alert has a page of its
own name in docs/runbooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClusterSpec
from infra.alerts.metrics import POD_MONITOR_API
from infra.alerts.rules import (
    brokers,
    certificates,
    connect,
    controllers,
    probe,
    replicas,
    rotation,
    volumes,
)
from infra.alerts.rules.alert import Alert, Scope

__all__ = ["Alert", "Scope", "alerts", "groups", "prometheus_rule"]


def groups(spec: ClusterSpec) -> Mapping[str, list[Alert]]:
    """Return every alert of a cluster by its group; Prometheus evaluates a group in one go."""
    scope = Scope(spec)
    found = {
        "controllers": controllers.alerts(scope),
        "metadata": controllers.metadata(scope),
        "replicas": replicas.alerts(scope),
        "brokers": brokers.alerts(scope),
        "rotation": rotation.alerts(scope),
        "volumes": volumes.alerts(scope),
        "probe": probe.alerts(scope),
        "certificates": certificates.alerts(scope),
        "connect": connect.alerts(scope),
    }
    return {name: each for name, each in found.items() if each}


def alerts(spec: ClusterSpec) -> list[Alert]:
    """Return every alert of a cluster."""
    return [alert for group in groups(spec).values() for alert in group]


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
    return {
        "groups": [
            {
                "name": f"{spec.name}-{group}",
                "rules": [alert.rule(spec.alerts.runbooks_url) for alert in found],
            }
            for group, found in groups(spec).items()
        ]
    }
