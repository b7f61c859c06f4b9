"""Grants λ tick the replacement of root volumes, of instances in groups it may change.

AWS writes the tag that names an instance's group, and lets nobody else write it. The image, its
snapshot and the volumes are whatever EC2 makes of the request, so that no name can be given.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.naming import INCIDENT_TAG
from infra import iam
from infra.functions.definition import Scope

GROUP_TAG = "ec2:ResourceTag/aws:autoscaling:groupName"
ACTION = "CreateReplaceRootVolumeTask"


def replace_roots(scope: Scope, groups: Sequence[str]) -> Sequence[iam.Statement]:
    """Return the rights to replace the root volumes of these groups' instances."""
    account = scope.account
    public = f"arn:{account.partition}:ec2:{account.region}::"
    task = account.arn("ec2", "replace-root-volume-task/*")
    return [
        iam.Statement(
            sid="ReplaceRootVolumesOfNodes",
            actions=[f"ec2:{ACTION}"],
            resources=[account.arn("ec2", "instance/*")],
            conditions={"StringLike": {GROUP_TAG: list(groups)}},
        ),
        iam.Statement(
            sid="MakeThemOfImages",
            actions=[f"ec2:{ACTION}"],
            resources=[
                task,
                account.arn("ec2", "volume/*"),
                f"{public}image/*",
                f"{public}snapshot/*",
            ],
        ),
        iam.Statement(
            sid="NameTheIncident",
            actions=["ec2:CreateTags"],
            resources=[task],
            conditions={
                "StringEquals": {"ec2:CreateAction": ACTION},
                "ForAllValues:StringEquals": {"aws:TagKeys": [INCIDENT_TAG]},
            },
        ),
    ]
