"""Builds the archive of closed incidents: one JSON line each, by the day they ended.

The sweep writes, Spark reads. A key names its incident, so filing one again replaces the same line.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import buckets

TYPE = "stillwater:infra:Archive"
# No cheaper class in between: one bills an object of a few KiB as 128.
KEPT_DAYS = 3 * 365
ABANDONED_UPLOAD_DAYS = 7
FOLDER = "incidents"
PREFIX = f"{FOLDER}/"


@dataclass(frozen=True, kw_only=True)
class ArchiveArgs:
    prefix: str
    account_id: str
    # May be deleted with what is in it.
    ephemeral: bool


class ArchiveBucket(pulumi.ComponentResource):
    """An encrypted, private bucket that forgets after three years."""

    bucket: pulumi.Output[str]

    def __init__(
        self, name: str, args: ArchiveArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        bucket = aws.s3.Bucket(
            f"{name}-bucket",
            bucket=bucket_name(args.prefix, args.account_id),
            force_destroy=args.ephemeral,
            opts=pulumi.ResourceOptions(parent=self),
        )
        buckets.close(f"{name}-bucket", bucket, parent=self)
        # The only copy once the ledger has forgotten: a line that is overwritten can be read again.
        buckets.keep_versions(f"{name}-bucket", bucket, _rules(), parent=self)
        self.bucket = bucket.bucket
        self.register_outputs({"bucket": self.bucket})


def bucket_name(prefix: str, account_id: str) -> str:
    return buckets.bucket_name(prefix, "incidents", account_id)


def _rules() -> list[aws.s3.BucketLifecycleConfigurationRuleArgs]:
    rule = aws.s3.BucketLifecycleConfigurationRuleArgs
    return [
        rule(
            id="forget",
            status="Enabled",
            filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=PREFIX),
            expiration=aws.s3.BucketLifecycleConfigurationRuleExpirationArgs(days=KEPT_DAYS),
            noncurrent_version_expiration=(
                aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                    noncurrent_days=KEPT_DAYS
                )
            ),
        ),
        rule(
            id="half-written",
            status="Enabled",
            filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
            abort_incomplete_multipart_upload=(
                aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                    days_after_initiation=ABANDONED_UPLOAD_DAYS
                )
            ),
        ),
    ]
