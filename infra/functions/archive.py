"""Builds the archive of closed incidents: one JSON line each, by the day they ended.

The sweep writes, Spark reads. A key names its incident, so filing one again replaces the same line.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from infra import buckets
from infra.functions.definition import Scope

TYPE = "stillwater:infra:Archive"
# No cheaper class in between: one bills an object of a few KiB as 128.
KEPT_DAYS = 3 * 365
ABANDONED_UPLOAD_DAYS = 7
FOLDER = "incidents"
PREFIX = f"{FOLDER}/"


class ArchiveBucket(pulumi.ComponentResource):
    """An encrypted, private bucket that forgets after three years."""

    bucket: pulumi.Output[str]

    def __init__(self, name: str, scope: Scope, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(TYPE, name, None, opts)
        bucket = aws.s3.Bucket(
            f"{name}-bucket",
            bucket=bucket_name(scope.cluster.prefix, scope.account.account_id),
            force_destroy=scope.cluster.ephemeral,
            opts=pulumi.ResourceOptions(parent=self),
        )
        buckets.close(f"{name}-bucket", bucket, parent=self)
        # The only copy once the ledger has forgotten: a line that is overwritten can be read again.
        buckets.keep_versions(f"{name}-bucket", bucket, _RULES, parent=self)
        self.bucket = bucket.bucket
        self.register_outputs({"bucket": self.bucket})


def bucket_name(prefix: str, account_id: str) -> str:
    return buckets.bucket_name(prefix, "incidents", account_id)


_RULES: list[aws.s3.BucketLifecycleConfigurationRuleArgsDict] = [
    {
        "id": "forget",
        "status": "Enabled",
        "filter": {"prefix": PREFIX},
        "expiration": {"days": KEPT_DAYS},
        "noncurrent_version_expiration": {"noncurrent_days": KEPT_DAYS},
    },
    {
        "id": "half-written",
        "status": "Enabled",
        "filter": {"prefix": ""},
        "abort_incomplete_multipart_upload": {"days_after_initiation": ABANDONED_UPLOAD_DAYS},
    },
]
