"""The ledger, one DynamoDB table, and the archive of incidents that are closed.

Everything the handlers know lives in the table, written under conditions, so that any of them may
die at any line. Items end themselves by `expires_at`; the sparse index `open` holds unfinished
incidents. The sweep files a closed one as a JSON line by the day it ended, and Spark reads it. A
key names its incident, so filing one again replaces the same line.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from core.cluster.operated import Operated
from core.ground import naming
from infra import buckets
from infra.functions.definition import Scope

LEDGER_TYPE = "stillwater:infra:Ledger"
KEY = "pk"
EXPIRES_AT = "expires_at"
OPEN_INDEX = "open"


class LedgerTable(pulumi.ComponentResource):
    """On-demand, restorable to any second of the last 35 days."""

    table_name: pulumi.Output[str]

    def __init__(
        self, name: str, cluster: Operated, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(LEDGER_TYPE, name, None, opts)
        table = aws.dynamodb.Table(
            f"{name}-table",
            name=naming.ledger_table(cluster.prefix),
            billing_mode="PAY_PER_REQUEST",
            hash_key=KEY,
            attributes=[{"name": name, "type": "S"} for name in (KEY, OPEN_INDEX)],
            global_secondary_indexes=[
                {
                    "name": OPEN_INDEX,
                    "key_schemas": [{"attribute_name": OPEN_INDEX, "key_type": "HASH"}],
                    "projection_type": "ALL",
                }
            ],
            ttl={"attribute_name": EXPIRES_AT, "enabled": True},
            point_in_time_recovery={"enabled": True},
            # With it go the hooks that wait, the lease and every drain that has not ended.
            deletion_protection_enabled=not cluster.ephemeral,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.table_name = table.name
        self.register_outputs({"table_name": self.table_name})


ARCHIVE_TYPE = "stillwater:infra:Archive"
# No cheaper class in between: one bills an object of a few KiB as 128.
KEPT_DAYS = 3 * 365
ABANDONED_UPLOAD_DAYS = 7
FOLDER = "incidents"
PREFIX = f"{FOLDER}/"


class ArchiveBucket(pulumi.ComponentResource):
    """An encrypted, private bucket that forgets after three years."""

    bucket: pulumi.Output[str]

    def __init__(self, name: str, scope: Scope, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(ARCHIVE_TYPE, name, None, opts)
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
