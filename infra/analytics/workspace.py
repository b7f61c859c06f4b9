"""Builds where bills are kept and Spark runs.

The bucket holds exports of cost and usage and what the jobs make of them. The EMR Serverless
application costs nothing between two reports: it starts with a job and stops when idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_aws as aws

from core import naming
from core.volumes import samples
from infra import buckets
from infra.analytics import bill_export
from infra.analytics.application import application
from infra.analytics.bill_export import BillExport, BillExportArgs
from infra.analytics.report_job import ReportJob, ReportJobArgs
from infra.analytics.report_request import LOGS, SCRATCH
from infra.iam import Account

TYPE = "stillwater:infra:Analytics"
OLD_VERSION_DAYS = 90
# What stays in the bucket for whoever asks why: a run by hand is fetched when it ends, and what was
# unzipped for a job is of no use after it.
EXPIRING = {
    "tables-of-runs": (f"{naming.REPORT_RUNS}/", 30),
    "logs-of-jobs": (f"{LOGS}/", 90),
    "unzipped": (f"{SCRATCH}/", 7),
    # A month is final two weeks after it closed; the one before is compared with.
    "samples": (f"{naming.SAMPLES_FOLDER}/{samples.KEY_PREFIX}", 120),
}
UNFINISHED_UPLOAD_DAYS = 7


@dataclass(frozen=True, kw_only=True)
class AnalyticsArgs:
    prefix: str
    cluster: str
    account: Account
    # What core.settings.facts writes of the cluster.
    facts: str
    # Where closed incidents are filed.
    incidents_bucket: pulumi.Input[str]
    tags: Mapping[str, str]
    # Its bills go with it.
    ephemeral: bool
    split_cost_allocation: bool = False
    # The tags that mean Kafka and its pools on the bill, where they are not ours.
    bill_cluster_tag: str | None = None
    bill_pool_tag: str | None = None
    own_prices: Path | None = None  # the price file of the directory that is built from


class Analytics(pulumi.ComponentResource):
    """A private, versioned bucket that AWS writes bills to, and the job that reads them."""

    bucket: pulumi.Output[str]
    application_id: pulumi.Output[str]
    # What `stillwater report --on emr` asks EMR for: StartJobRun's request as JSON.
    job: pulumi.Output[str]

    def __init__(
        self, name: str, args: AnalyticsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        bucket = aws.s3.Bucket(
            f"{name}-billing",
            bucket=buckets.bucket_name(args.prefix, "billing", args.account.account_id),
            force_destroy=args.ephemeral,
            opts=self._child,
        )
        self._keep_versions(bucket)
        policy = buckets.close(
            f"{name}-billing",
            bucket,
            parent=self,
            statements=[bill_export.delivery(bucket, args.account)],
        )
        export = BillExport(
            f"{name}-bill",
            BillExportArgs(
                account=args.account,
                prefix=args.prefix,
                bucket=bucket.bucket,
                bucket_region=args.account.region,
                policy=policy,
                split=args.split_cost_allocation,
            ),
            opts=self._child,
        )
        made = application(f"{name}-spark", args.prefix, self._child)
        job = ReportJob(
            f"{name}-job",
            ReportJobArgs(
                prefix=args.prefix,
                cluster=args.cluster,
                account=args.account,
                bucket=bucket.bucket,
                bucket_arn=bucket.arn,
                application_arn=made.arn,
                application_id=made.id,
                bill=f"{bill_export.PREFIX}/{export.name}",
                facts=args.facts,
                incidents_bucket=args.incidents_bucket,
                tags=args.tags,
                bill_cluster_tag=args.bill_cluster_tag,
                bill_pool_tag=args.bill_pool_tag,
                own_prices=args.own_prices,
            ),
            opts=self._child,
        )
        self.bucket, self.application_id = bucket.bucket, made.id
        self.job = job.job
        self.register_outputs(
            {"bucket": self.bucket, "application_id": self.application_id, "job": self.job}
        )

    def _keep_versions(self, bucket: aws.s3.Bucket) -> None:
        buckets.keep_versions(f"{self._name}-billing", bucket, _rules(), parent=self)


def _rules() -> list[aws.s3.BucketLifecycleConfigurationRuleArgs]:
    rule = aws.s3.BucketLifecycleConfigurationRuleArgs
    only = aws.s3.BucketLifecycleConfigurationRuleFilterArgs
    expiration = aws.s3.BucketLifecycleConfigurationRuleExpirationArgs
    replaced = aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs
    unfinished = aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs
    return [
        # A delivery that overwrites a month can be undone; but AWS writes the running month again
        # several times a day, and each would be kept for ever.
        rule(
            id="old-versions",
            status="Enabled",
            filter=only(prefix=""),
            noncurrent_version_expiration=replaced(noncurrent_days=OLD_VERSION_DAYS),
            # Once all versions behind it are gone.
            expiration=expiration(expired_object_delete_marker=True),
            abort_incomplete_multipart_upload=unfinished(
                days_after_initiation=UNFINISHED_UPLOAD_DAYS
            ),
        ),
        *(
            rule(
                id=name,
                status="Enabled",
                filter=only(prefix=prefix),
                expiration=expiration(days=days),
                # Nobody overwrites them: what has expired need not be kept as an old version.
                noncurrent_version_expiration=replaced(noncurrent_days=1),
            )
            for name, (prefix, days) in EXPIRING.items()
        ),
    ]
