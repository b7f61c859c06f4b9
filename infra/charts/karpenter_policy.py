"""Grants Karpenter its rights in AWS: launch into this cluster, tag and end what it launched.

Its documented policy (v1.14), without what this program does itself: the instance profile is made
here, so it needs no right to make one, and images are named by id, so it asks SSM for none.
"""

from __future__ import annotations

from typing import Any

import pulumi

from infra import iam
from infra.nodes import identity

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
            resources=[account.global_arn("iam", f"role/{identity.role_name(prefix)}")],
            conditions={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        ),
        iam.Statement(
            sid="ReadTheirProfile",
            actions=["iam:GetInstanceProfile"],
            resources=[account.global_arn("iam", f"instance-profile/{identity.role_name(prefix)}")],
        ),
        iam.Statement(
            sid="FindTheApiServer",
            actions=["eks:DescribeCluster"],
            resources=[account.arn("eks", f"cluster/{prefix}")],
        ),
        iam.Statement(
            sid="LookAround",
            actions=[
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
            ],
            # None of them takes a resource.
            resources=iam.ANY_RESOURCE,
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
