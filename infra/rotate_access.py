"""What λ rotate may do inside the cluster: read what a plan rests on, and change nothing.

It starts runs and answers people; whatever is done to nodes is done by the tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from infra.access import may_read_metrics

TYPE = "stillwater:infra:RotateAccess"
GROUP = "stillwater:rotate"
ROLE = "stillwater-rotate"
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class RotateAccessArgs:
    eks_cluster: str
    namespace: str
    # The Secret with Kafka's certificate authority; None: its listener is not encrypted.
    kafka_ca_secret: str | None
    # The Kafka pods whose metrics are read; none where metrics are off.
    metrics_pods: Sequence[str] = ()
    role_arn: pulumi.Input[str]


class RotateAccess(pulumi.ComponentResource):
    """An access entry; a role that lists nodes, and one that lists Kafka's pods."""

    def __init__(
        self, name: str, args: RotateAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        aws.eks.AccessEntry(
            f"{name}-entry",
            cluster_name=args.eks_cluster,
            principal_arn=args.role_arn,
            type="STANDARD",
            kubernetes_groups=[GROUP],
            opts=self._child,
        )
        self._cluster_wide()
        self._in_namespace(args)
        self.register_outputs({})

    def _cluster_wide(self) -> None:
        rules = {"": "nodes", "storage.k8s.io": "csinodes"}
        role = k8s.rbac.v1.ClusterRole(
            f"{self._name}-cluster-role",
            metadata=ObjectMetaArgs(name=ROLE),
            rules=[_may_list(group, resource) for group, resource in rules.items()],
            opts=self._child,
        )
        k8s.rbac.v1.ClusterRoleBinding(
            f"{self._name}-cluster-role-binding",
            metadata=ObjectMetaArgs(name=ROLE),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=ROLE),
            subjects=[k8s.rbac.v1.SubjectArgs(api_group=RBAC, kind="Group", name=GROUP)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )

    def _in_namespace(self, args: RotateAccessArgs) -> None:
        rules = [_may_list("", "pods")]
        if args.metrics_pods:
            rules.append(may_read_metrics(args.metrics_pods))
        if args.kafka_ca_secret is not None:
            # By name: a right to list Secrets would be a right to read every user's key.
            rules.append(
                k8s.rbac.v1.PolicyRuleArgs(
                    api_groups=[""],
                    resources=["secrets"],
                    resource_names=[args.kafka_ca_secret],
                    verbs=["get"],
                )
            )
        role = k8s.rbac.v1.Role(
            f"{self._name}-role",
            metadata=ObjectMetaArgs(name=ROLE, namespace=args.namespace),
            rules=rules,
            opts=self._child,
        )
        k8s.rbac.v1.RoleBinding(
            f"{self._name}-role-binding",
            metadata=ObjectMetaArgs(name=ROLE, namespace=args.namespace),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name=ROLE),
            subjects=[k8s.rbac.v1.SubjectArgs(api_group=RBAC, kind="Group", name=GROUP)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )


def _may_list(api_group: str, resource: str) -> k8s.rbac.v1.PolicyRuleArgs:
    return k8s.rbac.v1.PolicyRuleArgs(api_groups=[api_group], resources=[resource], verbs=["list"])
