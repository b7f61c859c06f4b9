"""Builds where bills are kept and Spark runs, and the export that AWS writes the bill by.

The EMR Serverless application costs nothing between two reports: it starts with a job and stops
when idle. The export is CUR 2.0, hourly, with resources, as Parquet, each refresh in place of the
one before. Data Exports exist in us-east-1 alone; the bucket may be anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

from core.cluster import ClusterSpec
from core.cluster.report_facts import report_facts
from core.ground import naming
from core.settings import facts
from core.volumes import series
from infra import buckets
from infra.analytics.report_job import LOGS, ReportJob, ReportJobArgs, application
from infra.iam import Account
from infra.tags import cluster_tags

EXPORT_TYPE = "stillwater:infra:BillExport"
PREFIX = "export"
COLUMNS = Path(__file__).with_name("export-columns.txt")
# How those begin that the table has only where split cost allocation is on.
SPLIT = "split_"
TABLE = "COST_AND_USAGE_REPORT"


def columns(*, split: bool) -> tuple[str, ...]:
    """Return what is selected, with split cost allocation's columns or without."""
    named = [line for line in COLUMNS.read_text("utf-8").splitlines() if not line.startswith("#")]
    return tuple(each for each in named if split or not each.startswith(SPLIT))


def configuration(account: Account, *, split: bool) -> dict[str, dict[str, str]]:
    """Return how the table is made: by the hour, with resources, of the account's whole bill.

    AWS adds the primary billing view where none is named, and any later difference replaces the
    export (terraform-provider-aws#46402).
    """
    view = f"arn:{account.partition}:billing::{account.account_id}:billingview/primary"
    return {
        TABLE: {
            "TIME_GRANULARITY": "HOURLY",
            "INCLUDE_RESOURCES": "TRUE",
            "INCLUDE_SPLIT_COST_ALLOCATION_DATA": str(split).upper(),
            "INCLUDE_MANUAL_DISCOUNT_COMPATIBILITY": "FALSE",
            "BILLING_VIEW_ARN": view,
        }
    }


@dataclass(frozen=True, kw_only=True)
class BillExportArgs:
    prefix: str
    account: Account
    bucket: pulumi.Input[str]
    bucket_region: str
    # The bucket lets AWS in.
    policy: pulumi.Resource
    # Two lines more for every pod of the account and hour.
    split: bool = False


class BillExport(pulumi.ComponentResource):
    """One data export of the account, in Parquet."""

    name: str

    def __init__(
        self, name: str, args: BillExportArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(EXPORT_TYPE, name, None, opts)
        self.name = f"{args.prefix}-bill"
        selected = columns(split=args.split)
        aws.bcmdata.Export(
            f"{name}-export",
            export={
                "name": self.name,
                "data_queries": [
                    {
                        "query_statement": f"SELECT {', '.join(selected)} FROM {TABLE}",  # noqa: S608 - our own names
                        "table_configurations": configuration(args.account, split=args.split),
                    }
                ],
                "destination_configurations": [
                    {
                        "s3_destinations": [
                            {
                                "s3_bucket": args.bucket,
                                "s3_prefix": PREFIX,
                                "s3_region": args.bucket_region,
                                "s3_output_configurations": [
                                    {
                                        "compression": "PARQUET",
                                        "format": "PARQUET",
                                        "output_type": "CUSTOM",
                                        # Each refresh in place of the one before.
                                        "overwrite": "OVERWRITE_REPORT",
                                    }
                                ],
                            }
                        ]
                    }
                ],
                "refresh_cadences": [{"frequency": "SYNCHRONOUS"}],
            },
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[args.policy],
                # Another query is another export, and AWS takes no second of a name.
                delete_before_replace=True,
            ),
        )
        self.register_outputs({"name": self.name})


def bill_bucket(
    name: str, prefix: str, account: Account, *, ephemeral: bool, parent: pulumi.Resource
) -> tuple[aws.s3.Bucket, aws.s3.BucketPolicy]:
    """Create the bucket that this account's exports are written to, and the policy that lets them.

    An ephemeral one goes with its bills.
    """
    bucket = aws.s3.Bucket(
        name,
        bucket=buckets.bucket_name(prefix, "billing", account.account_id),
        force_destroy=ephemeral,
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return bucket, buckets.close(
        name, bucket, parent=parent, statements=[_delivery(bucket, account)]
    )


def _delivery(bucket: aws.s3.Bucket, account: Account) -> dict[str, Any]:
    """Return the bucket policy's statement that lets this account's exports be written."""
    sources = [
        f"arn:{account.partition}:bcm-data-exports:us-east-1:{account.account_id}:export/*",
        f"arn:{account.partition}:cur:us-east-1:{account.account_id}:definition/*",
    ]
    condition: Mapping[str, Any] = {
        "StringEquals": {"aws:SourceAccount": account.account_id},
        "ArnLike": {"aws:SourceArn": sources},
    }
    services = ["bcm-data-exports.amazonaws.com", "billingreports.amazonaws.com"]
    return {
        "Sid": "DataExports",
        "Effect": "Allow",
        "Principal": {"Service": services},
        "Action": ["s3:GetBucketPolicy", "s3:PutObject"],
        "Resource": [bucket.arn, bucket.arn.apply(lambda arn: f"{arn}/{PREFIX}/*")],
        "Condition": condition,
    }


TYPE = "stillwater:infra:Analytics"
OLD_VERSION_DAYS = 90
# What stays in the bucket for whoever asks why: a run by hand is fetched when it ends.
EXPIRING = {
    "tables-of-runs": (f"{naming.REPORT_RUNS}/", 30),
    "logs-of-jobs": (f"{LOGS}/", 90),
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
        bucket, policy = bill_bucket(
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
                bill=f"{PREFIX}/{export.name}",
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
