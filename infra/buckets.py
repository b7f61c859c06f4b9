"""Builds every bucket of ours, and grants the volumes' key to who launches nodes or makes volumes.

Buckets are encrypted, closed to the public and TLS only; overwritten objects keep versions. Without
the grant an instance ends with Client.InternalError seconds after its launch, and a claim stays
pending. A grant knows no condition `kms:GrantIsForAWSResource`. Sources: Amazon EC2 Auto Scaling,
"Required KMS key policy for use with encrypted volumes"; aws-ebs-csi-driver, docs/install.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from infra import iam
from infra.iam import Account

BUCKET_NAME_LIMIT = 63


def bucket_name(prefix: str, purpose: str, account_id: str) -> str:
    """Return a name no other account has, shortened with a hash to S3's 63 characters."""
    full = f"{prefix}-{purpose}-{account_id}"
    if len(full) <= BUCKET_NAME_LIMIT:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:8]
    return f"{full[: BUCKET_NAME_LIMIT - 9].rstrip('-')}-{digest}"


def close(
    name: str,
    bucket: aws.s3.Bucket,
    *,
    parent: pulumi.Resource,
    statements: Sequence[Mapping[str, Any]] = (),
) -> aws.s3.BucketPolicy:
    """Encrypt a bucket, and let nobody in from outside or without TLS; return its policy.

    `statements` let an AWS service in.
    """
    child = pulumi.ResourceOptions(parent=parent)
    aws.s3.BucketServerSideEncryptionConfiguration(
        f"{name}-encryption",
        bucket=bucket.bucket,
        rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}],
        opts=child,
    )
    block = aws.s3.BucketPublicAccessBlock(
        f"{name}-private",
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=child,
    )
    everything = [bucket.arn, bucket.arn.apply(lambda arn: f"{arn}/*")]
    return aws.s3.BucketPolicy(
        f"{name}-policy",
        bucket=bucket.bucket,
        policy=iam.document([iam.only_over_tls("s3:*", everything), *statements]),
        # S3 refuses two changes of a bucket's access at once.
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[block]),
    )


def keep_versions(
    name: str,
    bucket: aws.s3.Bucket,
    rules: Sequence[aws.s3.BucketLifecycleConfigurationRuleArgsDict],
    *,
    parent: pulumi.Resource,
) -> None:
    """Keep what is overwritten, until a rule forgets it."""
    versioning = aws.s3.BucketVersioning(
        f"{name}-versions",
        bucket=bucket.bucket,
        versioning_configuration={"status": "Enabled"},
        opts=pulumi.ResourceOptions(parent=parent),
    )
    aws.s3.BucketLifecycleConfiguration(
        f"{name}-lifecycle",
        bucket=bucket.bucket,
        rules=list(rules),
        # Rules on versions mean nothing before there are any.
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[versioning]),
    )


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
