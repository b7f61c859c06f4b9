"""Refuses a bucket's policy that lets in everybody, unless the bucket takes such ones.

Every new bucket blocks public policies until somebody says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from local.refusals.cidrs import network
from local.refusals.documents import as_list, parse
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about, limit, of

_MEANING = (
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html"
)
# By a fixed value of one of these a statement is not public: the page above, "The meaning of
# public". In lower case.
_FIXING = frozenset(
    {
        *("aws:principalaccount", "aws:principalarn", "aws:principalorgid"),
        *("aws:principalorgpaths", "aws:principalserviceorgid", "aws:sourceaccount"),
        *("aws:sourcearn", "aws:sourceorgid", "aws:sourceorgpaths", "aws:sourceowner"),
        *("aws:sourcevpc", "aws:sourcevpcarn", "aws:sourcevpce", "aws:userid", "aws:vpceaccount"),
        *("aws:vpceorgid", "aws:vpceorgpaths", "s3:dataaccesspointaccount"),
        *("s3:dataaccesspointarn", "s3:x-amz-server-side-encryption-aws-kms-key-id"),
    }
)
_EQUAL = frozenset({"stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike"})
# Wider ranges of addresses are the public.
_WIDEST = {4: 8, 6: 32}


@limit(_MEANING)
def policies_for_everybody(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A statement that allows everybody, where the bucket's block does not say that it may."""
    open_to_all = {
        str(each.inputs.get("bucket"))
        for each in of(everything, "s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
        if not each.inputs.get("blockPublicPolicy")
    }
    for each in of(everything, "s3/bucketPolicy:BucketPolicy"):
        statements = as_list((parse(each.inputs["policy"]) or {}).get("Statement"))
        public = any(isinstance(one, dict) and _is_public(one) for one in statements)
        if public and str(each.inputs.get("bucket")) not in open_to_all:
            message = "User is not authorized to perform: s3:PutBucketPolicy because public "
            message += "policies are prevented by the BlockPublicPolicy setting in S3 Block Public "
            message += "Access."
            yield about(each, "PutBucketPolicy", "AccessDenied", message, "policy")


def _is_public(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal")
    if isinstance(principal, dict):
        principal = "*" if "*" in as_list(principal.get("AWS")) else principal
    if statement.get("Effect") != "Allow" or principal != "*":
        return False
    conditions = statement.get("Condition")
    return not any(
        isinstance(keys, dict) and _is_fixed(str(operator).lower(), str(key).lower(), value)
        for operator, keys in (conditions if isinstance(conditions, dict) else {}).items()
        for key, value in (keys.items() if isinstance(keys, dict) else ())
    )


def _is_fixed(operator: str, key: str, value: Any) -> bool:
    values = [str(each) for each in as_list(value)]
    plain = operator.rpartition(":")[2]
    if key == "aws:sourceip":
        return plain == "ipaddress" and bool(values) and all(map(_is_narrow, values))
    fixed = plain in _EQUAL and key in _FIXING and bool(values)
    # An ARN may have its stars behind the account, "*" alone is everybody.
    return fixed and not any(each.strip("*") == "" or "${" in each for each in values)


def _is_narrow(block: str) -> bool:
    found = network(block)
    return found is not None and found.prefixlen >= _WIDEST[found.version]
