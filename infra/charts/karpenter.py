"""Karpenter in place of Auto Scaling groups: the controller, its queue, the least it may do.

Its nodes are in no group and meet no lifecycle hook, so nothing of core.incidents can hold them;
docs/how-to/karpenter.md says which guarantees are left. Its rights are its documented policy
(v1.14), without what this program does itself: the instance profile is made here, so it needs no
right to make one, and images are named by id, so it asks SSM for none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from core.cluster import ClusterSpec, limits
from core.ground import naming
from core.ground.constants import (
    KARPENTER_MAX_RECEIVE_COUNT,
    KARPENTER_RETENTION_SECONDS,
    KARPENTER_VISIBILITY_SECONDS,
)
from infra import buckets, iam, pods
from infra.functions.termination import OF_INSTANCES, MessageQueue, QueueArgs
from infra.nodes import groups
from infra.versions import KARPENTER_CHART, KARPENTER_CHART_VERSION, KARPENTER_CRD_CHART

LAUNCH = ("ec2:CreateFleet", "ec2:RunInstances")
NODE_POOL_TAG = "karpenter.sh/nodepool"


def statements(
    prefix: str, account: iam.Account, queue_arn: pulumi.Input[str]
) -> list[iam.Statement]:
    """Return the statements of the controller's policy."""
    return [
        *_launching(prefix, account),
        *_ending(prefix, account),
        iam.Statement(
            sid="HearInterruptions",
            actions=["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
            resources=[queue_arn],
        ),
        iam.Statement(
            sid="GiveNodesTheirRole",
            actions=["iam:PassRole"],
            resources=[account.global_arn("iam", f"role/{groups.role_name(prefix)}")],
            conditions={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        ),
        iam.Statement(
            sid="ReadTheirProfile",
            actions=["iam:GetInstanceProfile"],
            resources=[account.global_arn("iam", f"instance-profile/{groups.role_name(prefix)}")],
        ),
        iam.Statement(
            sid="FindTheApiServer",
            actions=["eks:DescribeCluster"],
            resources=[account.arn("eks", f"cluster/{prefix}")],
        ),
        iam.look(
            "ec2:DescribeCapacityReservations",
            "ec2:DescribeImages",
            "ec2:DescribeInstanceStatus",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribePlacementGroups",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSpotPriceHistory",
            "ec2:DescribeSubnets",
            "iam:ListInstanceProfiles",
            "pricing:GetProducts",
        ),
    ]


def _ownership_condition(kind: str, eks_cluster: str) -> dict[str, Any]:
    """Return the condition that a request or a resource carries this cluster's tags."""
    return {
        "StringEquals": {f"aws:{kind}/kubernetes.io/cluster/{eks_cluster}": "owned"},
        "StringLike": {f"aws:{kind}/{NODE_POOL_TAG}": "*"},
    }


def _launching(eks_cluster: str, account: iam.Account) -> list[iam.Statement]:
    made = [
        account.arn("ec2", f"{kind}/*")
        for kind in ("fleet", "instance", "launch-template", "network-interface", "volume")
    ]
    # Public images and their snapshots belong to no account.
    shared = [
        f"arn:{account.partition}:ec2:{account.region}::{kind}/*" for kind in ("image", "snapshot")
    ]
    used = ("capacity-reservation", "security-group", "subnet")
    creating = {"ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"]}
    asked = _ownership_condition("RequestTag", eks_cluster)
    return [
        iam.Statement(
            sid="LaunchFrom",
            actions=LAUNCH,
            resources=[*shared, *(account.arn("ec2", f"{kind}/*") for kind in used)],
        ),
        iam.Statement(
            sid="LaunchFromItsTemplates",
            actions=LAUNCH,
            resources=[account.arn("ec2", "launch-template/*")],
            conditions=_ownership_condition("ResourceTag", eks_cluster),
        ),
        iam.Statement(
            sid="LaunchIntoThisCluster",
            actions=[*LAUNCH, "ec2:CreateLaunchTemplate"],
            resources=made,
            conditions=asked,
        ),
        iam.Statement(
            sid="TagWhatItCreates",
            actions=["ec2:CreateTags"],
            resources=made,
            conditions={**asked, "StringEquals": {**asked["StringEquals"], **creating}},
        ),
    ]


def _ending(eks_cluster: str, account: iam.Account) -> list[iam.Statement]:
    owned = _ownership_condition("ResourceTag", eks_cluster)
    instances = account.arn("ec2", "instance/*")
    own_keys = {"aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]}
    return [
        iam.Statement(
            sid="NameItsInstances",
            actions=["ec2:CreateTags"],
            resources=[instances],
            conditions={**owned, "ForAllValues:StringEquals": own_keys},
        ),
        iam.Statement(
            sid="EndWhatItLaunched",
            actions=["ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"],
            resources=[instances, account.arn("ec2", "launch-template/*")],
            conditions=owned,
        ),
    ]


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
        role, first = iam.controller_role(
            name,
            role_name=f"{spec.prefix}-karpenter",
            eks_cluster=spec.prefix,
            service_account=RELEASE,
            statements=statements(spec.prefix, account, queue.arn),
            parent=self,
        )
        may_encrypt = buckets.grant(f"{name}-grant", spec.encryption_key, role.arn, self)
        # Helm never upgrades definitions that a chart brings in its crds folder.
        definitions = self._release("definitions", KARPENTER_CRD_CHART, f"{RELEASE}-crd", {}, [])
        self._release(
            "release",
            KARPENTER_CHART,
            RELEASE,
            values(spec.prefix, spec.region),
            [definitions, *first, *may_encrypt],
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
                queue_name=naming.queue(self._prefix, RELEASE),
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
            "interruptionQueue": naming.queue(prefix, RELEASE),
            "featureGates": {
                # It would end a node with a failed check at once, past every budget.
                "nodeRepair": False,
                "spotToSpotConsolidation": False,
            },
        },
    }
