"""What the sweep may do inside the cluster: see which Nodes there are, and nothing else.

Its group is its own: what the tick is allowed to change, the sweep has no use for.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

TYPE = "stillwater:infra:SweepAccess"
GROUP = "stillwater:sweep"
ROLE = "stillwater-sweep"
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class SweepAccessArgs:
    eks_cluster: str
    role_arn: pulumi.Input[str]


class SweepAccess(pulumi.ComponentResource):
    """An access entry, and a role that lists nodes."""

    def __init__(
        self, name: str, args: SweepAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        aws.eks.AccessEntry(
            f"{name}-entry",
            cluster_name=args.eks_cluster,
            principal_arn=args.role_arn,
            type="STANDARD",
            kubernetes_groups=[GROUP],
            opts=child,
        )
        rules = {"": "nodes", "storage.k8s.io": "csinodes"}
        role = k8s.rbac.v1.ClusterRole(
            f"{name}-role",
            metadata=ObjectMetaArgs(name=ROLE),
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(
                    api_groups=[api_group], resources=[resource], verbs=["list"]
                )
                for api_group, resource in rules.items()
            ],
            opts=child,
        )
        k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-role-binding",
            metadata=ObjectMetaArgs(name=ROLE),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=ROLE),
            subjects=[k8s.rbac.v1.SubjectArgs(api_group=RBAC, kind="Group", name=GROUP)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
        self.register_outputs({})
