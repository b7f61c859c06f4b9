"""Refuses what S3 does not take of an object, a bucket's encryption and a lifecycle's filters."""

from __future__ import annotations

from collections.abc import Iterator

from local.refusals.limits import first_about, limit
from local.refusals.refusal import Refusal, Wanted

_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/"
# Bytes of an object's own metadata, names and values.
METADATA_BYTES = 2048
_PUT = "PutBucketLifecycleConfiguration"


@limit("s3/bucketObjectv2:BucketObjectv2", source=f"{_S3}userguide/UsingMetadata.html")
def metadata_of_an_object(wanted: Wanted) -> Iterator[Refusal]:
    """2 KB, names in lower case."""
    told = wanted.inputs.get("metadata") or {}
    size = sum(len(f"{key}{value}".encode()) for key, value in told.items())
    if size > METADATA_BYTES:
        message = "Your metadata headers exceed the maximum allowed metadata size"
        yield Refusal("PutObject", "MetadataTooLarge", message, "metadata")
    upper = [key for key in told if key != key.lower()]
    if upper:
        # The provider's own, before any call.
        message = f"Metadata must be lowercase only. Offending key: {upper[0]}"
        yield Refusal("PutObject", "Invalid Attribute Value", message, "metadata")


@limit(
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    source=f"{_S3}API/API_ServerSideEncryptionConfiguration.html",
)
def rules_of_an_encryption(wanted: Wanted) -> Iterator[Refusal]:
    """One."""
    if len(wanted.inputs.get("rules") or ()) > 1:
        message = "The XML you provided was not well-formed or did not validate"
        yield Refusal("PutBucketEncryption", "MalformedXML", message, "rules")


@limit(
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    source=f"{_S3}API/API_LifecycleRuleAndOperator.html",
)
def filters_of_a_lifecycle(wanted: Wanted) -> Iterator[Refusal]:
    """Two parts or more of what is joined, sizes from least to most, days or a date of a move."""
    if not wanted.inputs.get("rules"):
        message = "The XML you provided was not well-formed or did not validate"
        yield Refusal(_PUT, "MalformedXML", message, "rules")
    for rule in wanted.inputs.get("rules") or ():
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
                "The XML you provided was not well-formed or did not validate",
            ),
            (
                any(each.get("days") is not None and each.get("date") for each in moves),
                "The XML you provided was not well-formed or did not validate",
            ),
        )
        if above is not None and below is not None and int(above) >= int(below):
            message = "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'"
            yield Refusal(_PUT, "InvalidRequest", message, "rules")
