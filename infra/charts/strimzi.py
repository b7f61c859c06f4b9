"""Strimzi's cluster operator from its chart: two replicas that watch Kafka's namespace.

The chart adds its own namespace to those watched, and makes three ClusterRoleBindings: of what has
no namespace, and of what brokers and Connect's workers read of nodes.

It runs on the system nodes, since it tolerates no taint of Kafka's: losing a broker's node must not
take away the one program that brings the broker back. Its definitions come with the chart.
"""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec
from core.cluster.limits import OPERATOR
from core.ground import naming
from infra.alerts.metrics import operator_monitor
from infra.charts.lbc import ChartWithDefinitions, definitions
from infra.versions import STRIMZI_CHART, STRIMZI_CHART_VERSION

TYPE = "stillwater:infra:StrimziOperator"
# The label its Deployment sets on every pod, whatever the release is called.
POD_LABELS = {"name": naming.STRIMZI_OPERATOR}
MEMORY = f"{OPERATOR.memory_mib}Mi"


class StrimziOperator(pulumi.ComponentResource):
    """The chart's release, in a namespace of its own."""

    def __init__(
        self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        chart = ChartWithDefinitions(chart=STRIMZI_CHART, version=STRIMZI_CHART_VERSION)
        release = k8s.helm.v3.Release(
            f"{name}-release",
            name=naming.STRIMZI_OPERATOR,
            namespace=spec.strimzi.namespace,
            create_namespace=True,
            chart=STRIMZI_CHART,
            version=STRIMZI_CHART_VERSION,
            skip_crds=True,
            values=values(spec),
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=definitions(f"{name}-definitions", chart, self)
            ),
        )
        if spec.metrics.prometheus_operator:
            # The chart makes the namespace.
            after = pulumi.ResourceOptions(parent=self, depends_on=[release])
            operator_monitor(f"{name}-pod-monitor", spec, after)
        self.register_outputs({})


def values(spec: ClusterSpec) -> dict[str, Any]:
    """Return the chart's values."""
    replicas = spec.strimzi.replicas
    return {
        "replicas": replicas,
        # RoleBindings there and in its own: the namespace must exist before.
        "watchNamespaces": [spec.kubernetes.namespace],
        # How long it waits for a pod to be Ready, and a gated pod waits for the load balancer.
        "operationTimeoutMs": spec.timings.strimzi_operation_timeout_seconds * 1000,
        # 384 MiB is enough for a small cluster; an operator killed for memory rolls nothing.
        "resources": {
            "requests": {"cpu": f"{OPERATOR.cpu_millis}m", "memory": MEMORY},
            "limits": {"cpu": "1000m", "memory": MEMORY},
        },
        # Its pods lose what Kafka never needs: capabilities, unfiltered system calls.
        "extraEnvs": [{"name": "STRIMZI_POD_SECURITY_PROVIDER_CLASS", "value": "restricted"}],
        "podDisruptionBudget": {"enabled": replicas > 1, "minAvailable": 1},
        # Two budgets over one pod are an error of the eviction API, not a choice.
        "generatePodDisruptionBudget": not spec.strimzi.own_budgets,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": naming.ZONE_LABEL,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": POD_LABELS},
            }
        ],
    }
