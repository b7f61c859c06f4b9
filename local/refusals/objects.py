"""Refuses what S3 does not take of an object, a bucket's encryption and a lifecycle's filters."""

from __future__ import annotations

from collections.abc import Iterator

from local.refusals.limits import first_about, limit
from local.refusals.refusal import Refusal, Wanted

_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/"
_PUT = "PutBucketLifecycleConfiguration"
_MALFORMED = "The XML you provided was not well-formed or did not validate"
RULES = 1000
_ACTIONS = (
    *("abortIncompleteMultipartUpload", "expiration", "noncurrentVersionExpiration"),
    *("noncurrentVersionTransitions", "transitions"),
)


@limit(
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    source=f"{_S3}API/API_ServerSideEncryptionConfiguration.html",
)
def rules_of_an_encryption(wanted: Wanted) -> Iterator[Refusal]:
    """One."""
    if len(wanted.inputs.get("rules") or ()) > 1:
        yield Refusal("PutBucketEncryption", "MalformedXML", _MALFORMED, "rules")


@limit(
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    source=f"{_S3}API/API_LifecycleRuleAndOperator.html",
)
def rules_of_a_lifecycle(wanted: Wanted) -> Iterator[Refusal]:
    """Ids that there are once, something to do, two parts of what is joined, sizes in order."""
    rules = wanted.inputs.get("rules") or ()
    ids = [rule.get("id") or "" for rule in rules]
    if not rules:
        yield Refusal(_PUT, "MalformedXML", _MALFORMED, "rules")
    if len(ids) > RULES or len(set(ids)) != len(ids) or any(len(each) > 255 for each in ids):
        message = f"Rule ID must be unique and 255 characters at most, and there are {RULES} at "
        message += "most."
        yield Refusal(_PUT, "InvalidArgument", message, "rules")
    for rule in rules:
        days = (rule.get("expiration") or {}).get("days")
        if not any(rule.get(action) for action in _ACTIONS):
            message = "At least one action needs to be specified in a rule"
            yield Refusal(_PUT, "InvalidRequest", message, "rules")
        elif days is not None and int(days) < 1:
            message = "'Days' for Expiration action must be a positive integer"
            yield Refusal(_PUT, "InvalidArgument", message, "rules")
        joined = (rule.get("filter") or {}).get("and") or {}
        parts = [key for key, value in joined.items() if value not in (None, "", {}, [])]
        tags = joined.get("tags") or {}
        above, below = joined.get("objectSizeGreaterThan"), joined.get("objectSizeLessThan")
        moves = rule.get("transitions") or ()
        yield from first_about(
            _PUT,
            "MalformedXML",
            "rules",
            (
                joined and len(parts) + max(len(tags) - 1, 0) < 2,
                _MALFORMED,
            ),
            (
                any(each.get("days") is not None and each.get("date") for each in moves),
                _MALFORMED,
            ),
        )
        if above is not None and below is not None and int(above) >= int(below):
            message = "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'"
            yield Refusal(_PUT, "InvalidRequest", message, "rules")
