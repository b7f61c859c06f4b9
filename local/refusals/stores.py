"""Refuses what buckets, tables, snapshots' schedules and the bill's export do not take."""

from __future__ import annotations

from collections.abc import Iterator

from local.refusals.limits import first_about, limit
from local.refusals.refusal import Refusal, Wanted

_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_TABLES = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
# Between two snapshots.
_HOURS = (1, 2, 3, 4, 6, 8, 12, 24)


@limit(
    "dlm/lifecyclePolicy:LifecyclePolicy",
    source="https://docs.aws.amazon.com/dlm/latest/APIReference/API_CreateRule.html",
)
def rule_of_snapshots(wanted: Wanted) -> Iterator[Refusal]:
    """An interval, which is one of eight, or a cron."""
    for schedule in wanted.inputs["policyDetails"].get("schedules") or ():
        rule = schedule.get("createRule") or {}
        interval = rule.get("interval")
        yield from first_about(
            "CreateLifecyclePolicy",
            "InvalidRequestException",
            "policyDetails",
            (
                bool(interval) == bool(rule.get("cronExpression")),
                "Exactly one of Interval and CronExpression must be specified",
            ),
            (
                interval is not None and interval not in _HOURS,
                f"Interval {interval} is invalid; valid are {', '.join(map(str, _HOURS))}",
            ),
        )


@limit(
    "bcmdata/export:Export",
    source="https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_DataExports_S3OutputConfigurations.html",
)
def format_of_an_export(wanted: Wanted) -> Iterator[Refusal]:
    """Parquet in Parquet, text in gzip."""
    destination = wanted.inputs["export"]["destinationConfigurations"][0]["s3Destinations"][0]
    output = destination["s3OutputConfigurations"][0]
    pair = (output.get("format"), output.get("compression"))
    if pair not in {("PARQUET", "PARQUET"), ("TEXT_OR_CSV", "GZIP")}:
        message = f"Format {pair[0]} does not go with compression {pair[1]}"
        yield Refusal("CreateExport", "ValidationException", message, "export")
