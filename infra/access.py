"""What the functions may do inside the cluster.

An EKS access entry maps a function's role to the group `stillwater:handlers`; RBAC says what the
group may read, and that it may patch nodes: RBAC knows no single taint or annotation. Through the
API server it reads the metrics of Kafka's own pods, each by name and port (ADR 0012). It places the
out-of-service taint on a node whose instance EC2 says has ended, and keeps a waiting replacement
from Cluster Autoscaler. Nodes are drained by the node termination handler alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from core import kafka_metrics

TYPE = "stillwater:infra:HandlerAccess"
GROUP = "stillwater:handlers"
ROLE = "stillwater-handlers"
RBAC = "rbac.authorization.k8s.io"
# Where a volume is attached, and how many a node still takes.
ATTACHMENTS = ("csinodes", "volumeattachments")


@dataclass(frozen=True, kw_only=True)
class HandlerAccessArgs:
    eks_cluster: str
    namespace: str
    # The Secret with Kafka's certificate authority; None: its listener is not encrypted.
    kafka_ca_secret: str | None
    # The Kafka pods whose metrics are read, spare ones included; none where metrics are off.
    metrics_pods: Sequence[str] = ()
    # Function name -> role; only those that call Kubernetes.
    role_arns: Mapping[str, pulumi.Input[str]]


class HandlerAccess(pulumi.ComponentResource):
    """Access entries and the two RBAC roles behind them."""

    def __init__(
        self, name: str, args: HandlerAccessArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        for function, role_arn in args.role_arns.items():
            aws.eks.AccessEntry(
                f"{name}-{function}-entry",
                cluster_name=args.eks_cluster,
                principal_arn=role_arn,
                type="STANDARD",
                kubernetes_groups=[GROUP],
                opts=self._child,
            )
        self._cluster_wide()
        self._in_namespace(args)
        self.register_outputs({})

    def _cluster_wide(self) -> None:
        role = k8s.rbac.v1.ClusterRole(
            f"{self._name}-cluster-role",
            metadata=ObjectMetaArgs(name=ROLE),
            rules=[
                _may("", ["nodes"], ["get", "list", "patch"]),
                _may("storage.k8s.io", ATTACHMENTS, ["list"]),
            ],
            opts=self._child,
        )
        k8s.rbac.v1.ClusterRoleBinding(
            f"{self._name}-cluster-role-binding",
            metadata=ObjectMetaArgs(name=ROLE),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=ROLE),
            subjects=[k8s.rbac.v1.SubjectArgs(api_group=RBAC, kind="Group", name=GROUP)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )

    def _in_namespace(self, args: HandlerAccessArgs) -> None:
        namespace = args.namespace
        rules = [
            _may("", ["pods"], ["list"]),
            _may("policy", ["poddisruptionbudgets"], ["list"]),
        ]
        if args.kafka_ca_secret is not None:
            rules.append(_may_get_secret(args.kafka_ca_secret))
        if args.metrics_pods:
            rules.append(may_read_metrics(args.metrics_pods))
        role = k8s.rbac.v1.Role(
            f"{self._name}-role",
            metadata=ObjectMetaArgs(name=ROLE, namespace=namespace),
            rules=rules,
            opts=self._child,
        )
        k8s.rbac.v1.RoleBinding(
            f"{self._name}-role-binding",
            metadata=ObjectMetaArgs(name=ROLE, namespace=namespace),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name=ROLE),
            subjects=[k8s.rbac.v1.SubjectArgs(api_group=RBAC, kind="Group", name=GROUP)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )


def _may(
    api_group: str, resources: Sequence[str], verbs: Sequence[str]
) -> k8s.rbac.v1.PolicyRuleArgs:
    return k8s.rbac.v1.PolicyRuleArgs(
        api_groups=[api_group], resources=list(resources), verbs=list(verbs)
    )


def _may_get_secret(name: str) -> k8s.rbac.v1.PolicyRuleArgs:
    # By name: a right to list Secrets would be a right to read every user's key.
    return k8s.rbac.v1.PolicyRuleArgs(
        api_groups=[""], resources=["secrets"], resource_names=[name], verbs=["get"]
    )


def may_read_metrics(pods: Sequence[str]) -> k8s.rbac.v1.PolicyRuleArgs:
    # By name and port: a right to reach every port of every pod would be one to read Connect's
    # connectors, whose configuration may hold credentials.
    return k8s.rbac.v1.PolicyRuleArgs(
        api_groups=[""],
        resources=["pods/proxy"],
        resource_names=[f"{pod}:{kafka_metrics.PORT}" for pod in pods],
        verbs=["get"],
    )
