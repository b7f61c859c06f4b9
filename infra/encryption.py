"""Grants the volumes' key to whoever launches a node or makes a volume.

A volume encrypted under a customer's key whose user has none fails where nobody looks: the instance
ends with Client.InternalError seconds after its launch, the claim stays pending. Source: Amazon EC2
Auto Scaling, "Required KMS key policy for use with encrypted volumes"; aws-ebs-csi-driver,
docs/install.md.

A grant knows no condition `kms:GrantIsForAWSResource`, which policies know. Whoever holds one with
CreateGrant may hand on these operations of this key, and no others.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from infra.iam import Account

OPERATIONS = (
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "Encrypt",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
)


def scaling_role_arn(account: Account) -> str:
    """Return the role under which Auto Scaling launches; managed node groups launch by it too."""
    return account.global_arn(
        "iam", "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
    )


def grant(
    name: str, key: str | None, principal_arn: pulumi.Input[str], parent: pulumi.Resource
) -> list[pulumi.Resource]:
    """Let a principal use a volume's key; nothing to do for the account's default key."""
    if key is None:
        return []
    return [
        aws.kms.Grant(
            name,
            key_id=key,
            grantee_principal=principal_arn,
            operations=list(OPERATIONS),
            opts=pulumi.ResourceOptions(parent=parent),
        )
    ]
