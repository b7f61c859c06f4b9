"""Cluster Autoscaler: adds a node when a pod fits nowhere; takes none of Kafka's away.

It finds groups by their tags: the system nodes', which EKS tags itself, and Kafka's, whose tags
also describe a node that does not exist yet. A broker's node ends only through the flow of
core.incidents, so three things stand in the way of a scale-down: Kafka's groups have
`min = desired`, their tags put an idle node's end off beyond anybody's patience (infra.tags), and
the role may end instances of the system groups alone.
"""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec, limits
from infra import iam, pods
from infra.nodes.groups import group_arns
from infra.versions import (
    CLUSTER_AUTOSCALER_CHART,
    CLUSTER_AUTOSCALER_CHART_VERSION,
    CLUSTER_AUTOSCALER_REPOSITORY,
)

TYPE = "stillwater:infra:ClusterAutoscaler"
RELEASE = "cluster-autoscaler"
NAMESPACE = "kube-system"
# An instance that has not joined by then is given up, and another one asked for.
NODE_PROVISION_TIMEOUT = "15m"


class ClusterAutoscaler(pulumi.ComponentResource):
    """The chart's release and the least it may do in AWS."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        account: iam.Account,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        _, first = iam.controller_role(
            name,
            role_name=f"{spec.prefix}-autoscaler",
            eks_cluster=spec.prefix,
            service_account=RELEASE,
            statements=_statements(spec, account),
            parent=self,
        )
        k8s.helm.v3.Release(
            f"{name}-release",
            name=RELEASE,
            namespace=NAMESPACE,
            chart=CLUSTER_AUTOSCALER_CHART,
            version=CLUSTER_AUTOSCALER_CHART_VERSION,
            repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo=CLUSTER_AUTOSCALER_REPOSITORY),
            values=values(spec),
            opts=pulumi.ResourceOptions(parent=self, depends_on=first),
        )
        self.register_outputs({})


def values(spec: ClusterSpec) -> dict[str, Any]:
    """Return the chart's values."""
    return {
        # Services and Deployment are named by the release, whatever the chart is called.
        "fullnameOverride": RELEASE,
        "cloudProvider": "aws",
        "awsRegion": spec.region,
        "autoDiscovery": {"clusterName": spec.prefix},
        "rbac": {"serviceAccount": {"name": RELEASE}},
        "replicaCount": 2,
        "securityContext": pods.FILTERED_CALLS,
        "containerSecurityContext": pods.NO_CAPABILITIES,
        "resources": pods.resources(limits.CLUSTER_AUTOSCALER, memory_limit_mib=600),
        "extraArgs": {
            # A volume pins its broker to one group: nothing to balance, nothing to choose.
            "balance-similar-node-groups": False,
            "expander": "least-waste",
            # Kafka's pods have an emptyDir, and kube-system's run on every system node.
            "skip-nodes-with-local-storage": False,
            "skip-nodes-with-system-pods": False,
            "max-node-provision-time": NODE_PROVISION_TIMEOUT,
            "max-graceful-termination-sec": spec.timings.pod_grace_seconds,
        },
    }


def _statements(spec: ClusterSpec, account: iam.Account) -> list[iam.Statement]:
    # EKS names the group of a node group after it, with an id behind.
    system = account.group_arn(f"eks-{spec.prefix}-system-*")
    return [
        iam.Statement(
            sid="AddNodes",
            actions=["autoscaling:SetDesiredCapacity"],
            resources=[system, *group_arns(spec, account)],
        ),
        iam.Statement(
            sid="EndIdleSystemNodes",
            actions=["autoscaling:TerminateInstanceInAutoScalingGroup"],
            resources=[system],
        ),
        iam.Statement(
            sid="ReadNodeGroups",
            actions=["eks:DescribeNodegroup"],
            resources=[account.arn("eks", f"nodegroup/{spec.prefix}/*/*")],
        ),
        iam.look(
            "autoscaling:DescribeAutoScalingGroups",
            "autoscaling:DescribeAutoScalingInstances",
            "autoscaling:DescribeLaunchConfigurations",
            "autoscaling:DescribeScalingActivities",
            "autoscaling:DescribeTags",
            "ec2:DescribeImages",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeLaunchTemplateVersions",
            "ec2:GetInstanceTypesFromInstanceRequirements",
        ),
    ]
