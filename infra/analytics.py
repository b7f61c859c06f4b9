"""Where bills are kept and Spark runs.

The bucket holds exports of cost and usage and what the jobs make of them. The EMR Serverless
application costs nothing between two reports: it starts with a job and stops when idle.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import iam
from infra.versions import EMR_RELEASE

TYPE = "stillwater:infra:Analytics"
BUCKET_NAME_LIMIT = 63
IDLE_MINUTES = 15
OLD_VERSION_DAYS = 90
UNFINISHED_UPLOAD_DAYS = 7
# What a month of a large account needs, and a bound on what a runaway job can cost.
MAXIMUM_CPU, MAXIMUM_MEMORY, MAXIMUM_DISK = "64 vCPU", "256 GB", "1000 GB"


def bucket_name(prefix: str, account_id: str) -> str:
    """Return a name no other account has, shortened with a hash to S3's 63 characters."""
    full = f"{prefix}-billing-{account_id}"
    if len(full) <= BUCKET_NAME_LIMIT:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:8]
    return f"{full[: BUCKET_NAME_LIMIT - 9].rstrip('-')}-{digest}"


@dataclass(frozen=True, kw_only=True)
class AnalyticsArgs:
    prefix: str
    account_id: str


class Analytics(pulumi.ComponentResource):
    """A private, versioned, encrypted bucket, and the application that reads it."""

    bucket: pulumi.Output[str]
    application_id: pulumi.Output[str]

    def __init__(
        self, name: str, args: AnalyticsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        bucket = aws.s3.Bucket(
            f"{name}-billing",
            bucket=bucket_name(args.prefix, args.account_id),
            opts=self._child,
        )
        self._keep_versions(bucket)
        self._keep_private(bucket)
        application = self._application(args.prefix)
        self.bucket, self.application_id = bucket.bucket, application.id
        self.register_outputs({"bucket": self.bucket, "application_id": self.application_id})

    def _keep_versions(self, bucket: aws.s3.Bucket) -> None:
        # A delivery that overwrites a month can be undone.
        versioning = aws.s3.BucketVersioning(
            f"{self._name}-billing-versions",
            bucket=bucket.bucket,
            versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(
                status="Enabled"
            ),
            opts=self._child,
        )
        rule = aws.s3.BucketLifecycleConfigurationRuleArgs(
            id="old-versions",
            status="Enabled",
            filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
            # AWS writes the running month again several times a day: each would be kept for ever.
            noncurrent_version_expiration=(
                aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                    noncurrent_days=OLD_VERSION_DAYS
                )
            ),
            abort_incomplete_multipart_upload=(
                aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                    days_after_initiation=UNFINISHED_UPLOAD_DAYS
                )
            ),
        )
        aws.s3.BucketLifecycleConfiguration(
            f"{self._name}-billing-lifecycle",
            bucket=bucket.bucket,
            rules=[rule],
            # Rules on versions mean nothing before there are any.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[versioning]),
        )

    def _keep_private(self, bucket: aws.s3.Bucket) -> None:
        by_default = (
            aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            f"{self._name}-billing-encryption",
            bucket=bucket.bucket,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                    apply_server_side_encryption_by_default=by_default(sse_algorithm="AES256")
                )
            ],
            opts=self._child,
        )
        block = aws.s3.BucketPublicAccessBlock(
            f"{self._name}-billing-private",
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._child,
        )
        everything = [bucket.arn, bucket.arn.apply(lambda arn: f"{arn}/*")]
        aws.s3.BucketPolicy(
            f"{self._name}-billing-policy",
            bucket=bucket.bucket,
            policy=iam.document([iam.only_over_tls("s3:*", everything)]),
            # S3 refuses two changes of a bucket's access at once.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[block]),
        )

    def _application(self, prefix: str) -> aws.emrserverless.Application:
        return aws.emrserverless.Application(
            f"{self._name}-spark",
            name=f"{prefix}-reports",
            type="SPARK",
            release_label=EMR_RELEASE,
            architecture="ARM64",
            auto_start_configuration=aws.emrserverless.ApplicationAutoStartConfigurationArgs(
                enabled=True
            ),
            auto_stop_configuration=aws.emrserverless.ApplicationAutoStopConfigurationArgs(
                enabled=True, idle_timeout_minutes=IDLE_MINUTES
            ),
            maximum_capacity=aws.emrserverless.ApplicationMaximumCapacityArgs(
                cpu=MAXIMUM_CPU, memory=MAXIMUM_MEMORY, disk=MAXIMUM_DISK
            ),
            opts=self._child,
        )
