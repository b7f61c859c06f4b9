"""Kafka's disruption budgets, which never change: a pod's label says under which of two it stands.

`staying`: every Kafka pod without the label, brokers and controllers together. One of them may be
evicted while all are Ready and nobody is labelled; as soon as anybody is, nobody of these.
`leaving`: the labelled ones, all of whom may go (core.incidents.consenting puts the label on).

In the console: `kubectl get pdb` shows what may go now. Strimzi's own generation is off meanwhile:
over a pod with two budgets the eviction API answers 500. Connect's workers have one of their own.
"""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from core import naming
from core.cluster import ClusterSpec
from core.constants import EVICTED_AT_A_TIME

TYPE = "stillwater:infra:DisruptionBudgets"


class DisruptionBudgets(pulumi.ComponentResource):
    """The budgets over those who stay, over those who leave, and over Connect's workers."""

    def __init__(
        self, name: str, spec: ClusterSpec, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        called = {
            "staying": naming.budget_of_the_staying(spec.name),
            "leaving": naming.budget_of_the_leaving(spec.name),
            "connect": naming.connect(spec.name),
        }
        for key, budget in budgets(spec).items():
            k8s.policy.v1.PodDisruptionBudget(
                f"{name}-{key}",
                metadata={
                    "name": called[key],
                    "namespace": spec.kubernetes.namespace,
                    "labels": {naming.CLUSTER_LABEL: spec.name},
                },
                spec=budget,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


def budgets(spec: ClusterSpec) -> dict[str, Any]:
    """Return each budget's spec: an integer, since Kafka's pods have no owner with a scale."""
    mine = {
        naming.CLUSTER_LABEL: spec.name,
        naming.KIND_LABEL: "Kafka",
        "strimzi.io/name": naming.kafka_component(spec.name),
    }
    nodes = sum(spec.nodes_of(pool) for pool in spec.pools)
    found = {
        "staying": _budget(max(0, nodes - EVICTED_AT_A_TIME), mine, labelled=False),
        "leaving": _budget(0, mine, labelled=True),
    }
    if spec.connect is not None and spec.connect.replicas > 1:
        workers = {
            naming.CLUSTER_LABEL: naming.connect(spec.name),
            naming.KIND_LABEL: naming.CONNECT_KIND,
        }
        found["connect"] = {
            "minAvailable": spec.connect.replicas - 1,
            "selector": {"matchLabels": workers},
        }
    return found


def _budget(least: int, mine: dict[str, str], *, labelled: bool) -> dict[str, Any]:
    operator = "Exists" if labelled else "DoesNotExist"
    expression = {"key": naming.MAY_LEAVE_LABEL, "operator": operator}
    return {
        "minAvailable": least,
        "selector": {"matchLabels": mine, "matchExpressions": [expression]},
    }
