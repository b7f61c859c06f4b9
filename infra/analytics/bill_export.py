"""The export of cost and usage: AWS writes the account's bill into the bucket, several times a day.

CUR 2.0, hourly, with resources, as Parquet, each refresh in place of the one before. Data Exports
exist in us-east-1 alone; the bucket may be anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from infra import buckets
from infra.iam import Account

TYPE = "stillwater:infra:BillExport"
PREFIX = "export"
# Data Exports refuse `SELECT *`: what the readers need, and nothing that only makes files larger.
COLUMNS = (
    "bill_bill_type",
    "bill_billing_entity",
    "bill_billing_period_end_date",
    "bill_billing_period_start_date",
    "bill_invoice_id",
    "bill_payer_account_id",
    "line_item_availability_zone",
    "line_item_currency_code",
    "line_item_line_item_description",
    "line_item_line_item_type",
    "line_item_net_unblended_cost",
    "line_item_operation",
    "line_item_product_code",
    "line_item_resource_id",
    "line_item_unblended_cost",
    "line_item_usage_account_id",
    "line_item_usage_amount",
    "line_item_usage_end_date",
    "line_item_usage_start_date",
    "line_item_usage_type",
    "pricing_public_on_demand_cost",
    "pricing_unit",
    "reservation_effective_cost",
    "reservation_net_effective_cost",
    "reservation_net_unused_amortized_upfront_fee_for_billing_period",
    "reservation_net_unused_recurring_fee",
    "reservation_reservation_a_r_n",
    "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_unused_recurring_fee",
    "resource_tags",
    "savings_plan_net_savings_plan_effective_cost",
    "savings_plan_savings_plan_effective_cost",
    "savings_plan_total_commitment_to_date",
    "savings_plan_used_commitment",
)
# What each pod had of its node. The table has them only where it includes such lines.
SPLIT_COLUMNS = (
    "split_line_item_net_split_cost",
    "split_line_item_net_unused_cost",
    "split_line_item_parent_resource_id",
    "split_line_item_split_cost",
    "split_line_item_unused_cost",
)
TABLE = "COST_AND_USAGE_REPORT"


def columns(*, split: bool) -> tuple[str, ...]:
    """Return what is selected, with split cost allocation's columns or without."""
    return (*COLUMNS, *SPLIT_COLUMNS) if split else COLUMNS


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
        super().__init__(TYPE, name, None, opts)
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
