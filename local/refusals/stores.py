"""Refuses what buckets, tables, snapshots' schedules and the bill's export do not take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.limits import first_about, limit
from local.refusals.refusal import Refusal, Wanted

_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/"
_TABLES = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
_CLASSES = frozenset(
    {
        *("DEEP_ARCHIVE", "GLACIER", "GLACIER_IR", "INTELLIGENT_TIERING"),
        *("ONEZONE_IA", "STANDARD_IA"),
    }
)
_DAYS_BEFORE_IA = 30
# Between two snapshots.
_HOURS = (1, 2, 3, 4, 6, 8, 12, 24)


@limit(
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    source=f"{_S3}API_Transition.html",
)
def moves_of_a_lifecycle(wanted: Wanted) -> Iterator[Refusal]:
    """A class that there is, thirty days before IA, out before it expires, days or a date."""
    operation = "PutBucketLifecycleConfiguration"
    for rule in wanted.inputs.get("rules") or ():
        expires = rule.get("expiration") or {}
        yield from _filter_refusals(operation, rule)
        if expires.get("days") and expires.get("date"):
            message = "The XML you provided was not well-formed or did not validate"
            yield Refusal(operation, "MalformedXML", message, "rules")
        yield from _in_order(operation, rule)
        for move in rule.get("transitions") or ():
            kind, days = move.get("storageClass"), move.get("days")
            early = kind in {"STANDARD_IA", "ONEZONE_IA"} and int(days or 0) < _DAYS_BEFORE_IA
            late = days is not None and expires.get("days") and int(days) >= int(expires["days"])
            yield from first_about(
                operation,
                "InvalidArgument",
                "rules",
                (kind not in _CLASSES, f"Invalid storage class {kind}"),
                (
                    early and days is not None,
                    (
                        f"'Days' in Transition action must be greater than or equal to "
                        f"{_DAYS_BEFORE_IA} for storageClass '{kind}'"
                    ),
                ),
                (
                    late,
                    (
                        "'Days' in the Expiration action for filter must be greater than 'Days' in "
                        "the Transition action"
                    ),
                ),
            )


# From the warmest to the coldest: S3's user guide, "Supported transitions".
_COLDER = (
    *("STANDARD_IA", "INTELLIGENT_TIERING", "ONEZONE_IA", "GLACIER_IR"),
    *("GLACIER", "DEEP_ARCHIVE"),
)


def _in_order(operation: str, rule: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield what goes to a class twice, or to a colder one before a warmer one."""
    gone = rule.get("noncurrentVersionExpiration") or {}
    for key, count in (("transitions", "days"), ("noncurrentVersionTransitions", "noncurrentDays")):
        moves = rule.get(key) or ()
        kinds = [str(each.get("storageClass")) for each in moves]
        known = [
            (each[count], _COLDER.index(kind))
            for each, kind in zip(moves, kinds, strict=True)
            if each.get(count) is not None and kind in _COLDER
        ]
        ordered = sorted(known)
        last = gone.get("noncurrentDays") if key == "noncurrentVersionTransitions" else None
        yield from first_about(
            operation,
            "InvalidArgument",
            "rules",
            (
                len(set(kinds)) < len(kinds),
                "'StorageClass' must be different for 'Transition' actions in same 'Rule'",
            ),
            (
                [kind for _, kind in ordered] != sorted(kind for _, kind in ordered),
                "'Days' in the Transition action for a colder StorageClass must be greater",
            ),
            (
                last is not None and any(days >= last for days, _ in known),
                "'NoncurrentDays' in the NoncurrentVersionExpiration action must be greater",
            ),
            (
                any(
                    days < _DAYS_BEFORE_IA and _COLDER[kind] in {"STANDARD_IA", "ONEZONE_IA"}
                    for days, kind in known
                ),
                f"'NoncurrentDays' must be {_DAYS_BEFORE_IA} or more for this StorageClass",
            ),
            (
                any(e.get("days") is None and e.get("date") is None for e in moves)
                and key == "transitions",
                "A Transition action must have Days or Date",
            ),
        )
    expires = rule.get("expiration") or {}
    marker = expires.get("expiredObjectDeleteMarker")
    if marker and (expires.get("days") or expires.get("date")):
        message = "The XML you provided was not well-formed or did not validate"
        yield Refusal(operation, "MalformedXML", message, "rules")
    if rule.get("prefix") and rule.get("filter"):
        message = "Only one of Prefix and Filter can be specified in a rule"
        yield Refusal(operation, "MalformedXML", message, "rules")


_WAYS = ("and", "objectSizeGreaterThan", "objectSizeLessThan", "prefix", "tag")


def _filter_refusals(operation: str, rule: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield what a rule's filter rules out.

    Source: API_LifecycleRule and API_LifecycleRuleFilter of S3.
    """
    chosen = rule.get("filter") or {}
    by_tag = chosen.get("tag") or (chosen.get("and") or {}).get("tags")
    marker = (rule.get("expiration") or {}).get("expiredObjectDeleteMarker")
    if by_tag and rule.get("abortIncompleteMultipartUpload"):
        message = "AbortIncompleteMultipartUpload cannot be specified with Tags."
        yield Refusal(operation, "InvalidRequest", message, "rules")
    if by_tag and marker:
        message = "ExpiredObjectDeleteMarker cannot be specified with Tags."
        yield Refusal(operation, "InvalidRequest", message, "rules")
    if len([key for key in _WAYS if chosen.get(key)]) > 1:
        message = "The XML you provided was not well-formed or did not validate"
        yield Refusal(operation, "MalformedXML", message, "rules")


@limit(
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    source=f"{_S3}API_ServerSideEncryptionByDefault.html",
)
def key_of_an_encryption(wanted: Wanted) -> Iterator[Refusal]:
    """A key of KMS's is for its own algorithms."""
    for rule in wanted.inputs.get("rules") or ():
        default = rule.get("applyServerSideEncryptionByDefault") or {}
        if default.get("sseAlgorithm") == "AES256" and default.get("kmsMasterKeyId"):
            message = "a KMSMasterKeyID is not applicable if the default sse algorithm is not "
            message += "aws:kms or aws:kms:dsse"
            yield Refusal("PutBucketEncryption", "InvalidArgument", message, "rules")


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
