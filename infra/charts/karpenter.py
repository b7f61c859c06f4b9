"""Karpenter in place of Auto Scaling groups: the controller, its queue, the least it may do.

Its nodes are in no group and meet no lifecycle hook, so nothing of core.incidents can hold them;
docs/how-to/karpenter.md says which guarantees are left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from core import naming
from core.cluster import ClusterSpec, limits
from core.constants import (
    KARPENTER_MAX_RECEIVE_COUNT,
    KARPENTER_RETENTION_SECONDS,
    KARPENTER_VISIBILITY_SECONDS,
)
from infra import encryption, iam
from infra.charts import karpenter_policy, pods
from infra.functions.termination import OF_INSTANCES, MessageQueue, QueueArgs
from infra.versions import KARPENTER_CHART, KARPENTER_CHART_VERSION, KARPENTER_CRD_CHART

TYPE = "stillwater:infra:Karpenter"
RELEASE = "karpenter"
NAMESPACE = "kube-system"


class Karpenter(pulumi.ComponentResource):
    """The definitions, the controller, and the queue it hears interruptions from."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        account: iam.Account,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._prefix = name, spec.prefix
        self._child = pulumi.ResourceOptions(parent=self)
        queue = self._interruptions()
        role, association = iam.pod_role(
            f"{name}-role",
            role_name=f"{spec.prefix}-karpenter",
            eks_cluster=spec.prefix,
            namespace=NAMESPACE,
            service_account=RELEASE,
            parent=self,
        )
        statements = karpenter_policy.statements(spec.prefix, account, queue.arn)
        permission = iam.allow(f"{name}-policy", role, statements, self)
        may_encrypt = encryption.grant(f"{name}-grant", spec.encryption_key, role.arn, self)
        # Helm never upgrades definitions that a chart brings in its crds folder.
        definitions = self._release("definitions", KARPENTER_CRD_CHART, f"{RELEASE}-crd", {}, [])
        self._release(
            "release",
            KARPENTER_CHART,
            RELEASE,
            values(spec.prefix, spec.region),
            [definitions, association, permission, *may_encrypt],
        )
        self.register_outputs({})

    def _interruptions(self) -> MessageQueue:
        # Not Health's: an event weeks ahead would end its node at once
        # (karpenter-provider-aws#8524).
        rules = {
            key: aws.cloudwatch.EventRule(
                f"{self._name}-{key}",
                name=f"{self._prefix}-karpenter-{key}",
                description=f"Stillwater {self._prefix}: {key} for Karpenter",
                event_pattern=json.dumps(pattern),
                opts=self._child,
            )
            for key, pattern in OF_INSTANCES.items()
        }
        queue = MessageQueue(
            f"{self._name}-interruptions",
            QueueArgs(
                queue_name=queue_name(self._prefix),
                visibility_timeout_seconds=KARPENTER_VISIBILITY_SECONDS,
                retention_seconds=KARPENTER_RETENTION_SECONDS,
                max_receive_count=KARPENTER_MAX_RECEIVE_COUNT,
                rule_arns=[rule.arn for rule in rules.values()],
            ),
            opts=self._child,
        )
        for key, rule in rules.items():
            aws.cloudwatch.EventTarget(
                f"{self._name}-{key}-target",
                rule=rule.name,
                target_id="karpenter",
                arn=queue.arn,
                opts=pulumi.ResourceOptions(parent=self, depends_on=list(queue.policies)),
            )
        return queue

    def _release(
        self,
        role: str,
        chart: str,
        release: str,
        chosen: Mapping[str, Any],
        after: list[pulumi.Resource],
    ) -> k8s.helm.v3.Release:
        return k8s.helm.v3.Release(
            f"{self._name}-{role}",
            name=release,
            namespace=NAMESPACE,
            chart=chart,
            version=KARPENTER_CHART_VERSION,
            skip_crds=release == RELEASE,
            values=dict(chosen),
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )


def queue_name(prefix: str) -> str:
    return naming.queue(prefix, "karpenter")


def values(prefix: str, region: str) -> dict[str, Any]:
    """Return the chart's values."""
    return {
        "serviceAccount": {"name": RELEASE},
        "controller": {
            # Its documentation's own figures.
            "resources": pods.resources(limits.KARPENTER),
            # Given, since no pod reaches the metadata service.
            "env": [{"name": "AWS_REGION", "value": region}],
        },
        "settings": {
            "clusterName": prefix,
            "interruptionQueue": queue_name(prefix),
            "featureGates": {
                # It would end a node with a failed check at once, past every budget.
                "nodeRepair": False,
                "spotToSpotConsolidation": False,
            },
        },
    }
