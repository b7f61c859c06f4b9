"""Builds where bills are kept and Spark runs.

The bucket holds exports of cost and usage and what the jobs make of them. The EMR Serverless
application costs nothing between two reports: it starts with a job and stops when idle.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec
from core.cluster.report_facts import report_facts
from core.ground import naming
from core.settings import facts
from core.volumes import series
from infra import buckets
from infra.analytics import bill_export
from infra.analytics.bill_export import BillExport, BillExportArgs
from infra.analytics.report_job import LOGS, SCRATCH, ReportJob, ReportJobArgs, application
from infra.iam import Account
from infra.tags import cluster_tags

TYPE = "stillwater:infra:Analytics"
OLD_VERSION_DAYS = 90
# What stays in the bucket for whoever asks why: a run by hand is fetched when it ends, and what was
# unzipped for a job is of no use after it.
EXPIRING = {
    "tables-of-runs": (f"{naming.REPORT_RUNS}/", 30),
    "logs-of-jobs": (f"{LOGS}/", 90),
    "unzipped": (f"{SCRATCH}/", 7),
    # A month is final two weeks after it closed; the one before is compared with.
    "samples": (f"{naming.SAMPLES_FOLDER}/{series.KEY_PREFIX}", 120),
}
UNFINISHED_UPLOAD_DAYS = 7


@dataclass(frozen=True, kw_only=True)
class AnalyticsArgs:
    spec: ClusterSpec
    account: Account
    # Where closed incidents are filed.
    incidents_bucket: pulumi.Input[str]
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
        spec, child = args.spec, pulumi.ResourceOptions(parent=self)
        bucket, policy = bill_export.bill_bucket(
            f"{name}-billing", spec.prefix, args.account, ephemeral=spec.ephemeral, parent=self
        )
        rules = [_OLD_VERSIONS, *(_expiring(key, *each) for key, each in EXPIRING.items())]
        buckets.keep_versions(f"{name}-billing", bucket, rules, parent=self)
        export = BillExport(
            f"{name}-bill",
            BillExportArgs(
                account=args.account,
                prefix=spec.prefix,
                bucket=bucket.bucket,
                bucket_region=args.account.region,
                policy=policy,
                split=spec.split_cost_allocation,
            ),
            opts=child,
        )
        made = application(f"{name}-spark", spec.prefix, child)
        job = ReportJob(
            f"{name}-job",
            ReportJobArgs(
                prefix=spec.prefix,
                cluster=spec.name,
                account=args.account,
                bucket=bucket.bucket,
                bucket_arn=bucket.arn,
                application_arn=made.arn,
                application_id=made.id,
                bill=f"{bill_export.PREFIX}/{export.name}",
                facts=facts.to_json(report_facts(spec)),
                incidents_bucket=args.incidents_bucket,
                tags=cluster_tags(spec).everywhere,
                bill_cluster_tag=spec.bill_cluster_tag,
                bill_pool_tag=spec.bill_pool_tag,
                own_prices=args.own_prices,
            ),
            opts=child,
        )
        self.bucket, self.application_id = bucket.bucket, made.id
        self.job = job.job
        self.register_outputs(
            {"bucket": self.bucket, "application_id": self.application_id, "job": self.job}
        )


# A delivery that overwrites a month can be undone; but AWS writes the running month again several
# times a day, and each would be kept for ever.
_OLD_VERSIONS: aws.s3.BucketLifecycleConfigurationRuleArgsDict = {
    "id": "old-versions",
    "status": "Enabled",
    "filter": {"prefix": ""},
    "noncurrent_version_expiration": {"noncurrent_days": OLD_VERSION_DAYS},
    # Once all versions behind it are gone.
    "expiration": {"expired_object_delete_marker": True},
    "abort_incomplete_multipart_upload": {"days_after_initiation": UNFINISHED_UPLOAD_DAYS},
}


def _expiring(name: str, prefix: str, days: int) -> aws.s3.BucketLifecycleConfigurationRuleArgsDict:
    return {
        "id": name,
        "status": "Enabled",
        "filter": {"prefix": prefix},
        "expiration": {"days": days},
        # Nobody overwrites them: what has expired need not be kept as an old version.
        "noncurrent_version_expiration": {"noncurrent_days": 1},
    }
