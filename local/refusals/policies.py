"""What a policy on a resource, a trust policy and a condition must say to be stored at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.documents import listed, parsed
from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/"
_OPERATORS = (
    *("StringEquals", "StringNotEquals", "StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase"),
    *("StringLike", "StringNotLike", "NumericEquals", "NumericNotEquals", "NumericLessThan"),
    *("NumericLessThanEquals", "NumericGreaterThan", "NumericGreaterThanEquals", "DateEquals"),
    *("DateNotEquals", "DateLessThan", "DateLessThanEquals", "DateGreaterThan"),
    *("DateGreaterThanEquals", "Bool", "BinaryEquals", "IpAddress", "NotIpAddress", "ArnEquals"),
    *("ArnLike", "ArnNotEquals", "ArnNotLike", "Null"),
)
_CONDITION = re.compile(
    rf"(?:ForAllValues:|ForAnyValue:)?(?:{'|'.join(_OPERATORS)})(?:IfExists)?", re.IGNORECASE
)
_TOP = {"Version", "Id", "Statement"}
_PARTS = {
    *("Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction"),
    *("Resource", "NotResource", "Condition"),
}
_SERVICE = re.compile(r"[a-z0-9.-]+\.amazonaws\.com(\.cn)?|[a-z0-9.-]+\.(aws\.internal|api\.aws)")
_ACCOUNT = re.compile(r"\*|\d{12}|arn:aws[a-z-]*:(iam|sts)::\d{12}:\S+|A[A-Z0-9]{15,127}")


@limit(
    "iam/policy:Policy",
    "iam/role:Role",
    "iam/rolePolicy:RolePolicy",
    source=f"{_IAM}reference_policies_elements_condition_operators.html",
)
def parts_of_a_policy(wanted: Wanted) -> Iterator[Refusal]:
    """No element that there is not, no operator that there is not, a resource named one way."""
    trust = "assumeRolePolicy" in wanted.inputs
    key, operation = ("assumeRolePolicy", "CreateRole") if trust else ("policy", "PutRolePolicy")
    document = parsed(wanted.inputs[key])
    statements = listed((document or {}).get("Statement"))
    if document is None:
        return
    wrong = ""
    if set(document) - _TOP or not statements:
        wrong = "Syntax errors in policy."
    for statement in statements:
        wrong = wrong or _of_parts(statement) or (_of_trust(statement) if trust else "")
    if wrong:
        yield Refusal(operation, "MalformedPolicyDocument", wrong, key)


def _of_parts(statement: Any) -> str:
    if not isinstance(statement, dict) or set(statement) - _PARTS:
        return "Syntax errors in policy."
    if "Resource" in statement and "NotResource" in statement:
        return "Syntax errors in policy."
    conditions = statement.get("Condition") or {}
    for operator, keys in conditions.items() if isinstance(conditions, dict) else ():
        if _CONDITION.fullmatch(operator) is None:
            return f"Invalid Condition type : {operator}."
        if not isinstance(keys, dict):
            return "Syntax errors in policy."
    return ""


def _of_trust(statement: Mapping[str, Any]) -> str:
    principal = statement.get("Principal")
    if isinstance(principal, str) and principal != "*":
        return f'Invalid principal in policy: "{principal}"'
    for kind, named in principal.items() if isinstance(principal, dict) else ():
        for each in map(str, listed(named)):
            known = {"Service": _SERVICE, "AWS": _ACCOUNT}.get(kind, re.compile(r".+"))
            if kind not in {"Service", "AWS", "Federated", "CanonicalUser"}:
                return f'Invalid principal in policy: "{kind}":"{each}"'
            if known.fullmatch(each) is None:
                return f'Invalid principal in policy: "{kind.upper()}":"{each}"'
    actions = [str(each) for each in listed(statement.get("Action"))]
    if any(not each.lower().startswith("sts:") for each in actions):
        return "AssumeRole policy may only specify STS AssumeRole actions."
    return ""


@limit(
    "kms/key:Key", source="https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html"
)
def policy_of_a_key(wanted: Wanted) -> Iterator[Refusal]:
    """Somebody may still change it afterwards; only symmetric keys rotate."""
    given = wanted.inputs.get("policy")
    if given is not None:
        document, code = parsed(given), "MalformedPolicyDocumentException"
        if document is None:
            yield Refusal("CreateKey", code, "Policy contains a syntax error", "policy")
        elif not any(_may_change(each) for each in listed(document.get("Statement"))):
            message = "The new key policy will not allow you to update the key policy in the "
            message += "future."
            yield Refusal("CreateKey", code, message, "policy")
    kind = wanted.inputs.get("customerMasterKeySpec") or "SYMMETRIC_DEFAULT"
    if wanted.inputs.get("enableKeyRotation") and kind != "SYMMETRIC_DEFAULT":
        message = f"{kind} keys do not support key rotation"
        at = "enableKeyRotation"
        yield Refusal("EnableKeyRotation", "UnsupportedOperationException", message, at)


def _may_change(statement: Mapping[str, Any]) -> bool:
    actions = [str(each).lower() for each in listed(statement.get("Action"))]
    changing = any(re.fullmatch(each.replace("*", ".*"), "kms:putkeypolicy") for each in actions)
    return statement.get("Effect") == "Allow" and changing


_POLICIES: Mapping[str, tuple[str, str, str, str]] = {
    "aws:sqs/queuePolicy:QueuePolicy": (
        "SetQueueAttributes",
        "InvalidAttributeValue",
        "Invalid value for the parameter Policy.",
        "sqs",
    ),
    "aws:sns/topicPolicy:TopicPolicy": (
        "SetTopicAttributes",
        "InvalidParameter",
        "Invalid parameter: Policy Error: null",
        "sns",
    ),
    "aws:s3/bucketPolicy:BucketPolicy": (
        "PutBucketPolicy",
        "MalformedPolicy",
        "Policies must be valid JSON and the first byte must be '{'",
        "s3",
    ),
}


@limit(
    "s3/bucketPolicy:BucketPolicy",
    "sns/topicPolicy:TopicPolicy",
    "sqs/queuePolicy:QueuePolicy",
    source=f"{_IAM}access_policies_identity-vs-resource.html",
)
def policy_of_a_resource(wanted: Wanted) -> Iterator[Refusal]:
    """JSON whose statements name a principal, the service's own actions, and this resource."""
    operation, code, message, service = _POLICIES[wanted.type]
    document = parsed(wanted.inputs["policy"])
    statements = listed((document or {}).get("Statement"))
    wrong = message if document is None or not statements else ""
    for statement in statements:
        wrong = wrong or _of_a_resource(statement, service, wanted.inputs.get("bucket"), message)
    if wrong:
        yield Refusal(operation, code, wrong, "policy")


def _of_a_resource(statement: Any, service: str, bucket: object, message: str) -> str:
    s3 = service == "s3"
    if not isinstance(statement, dict):
        return message
    if "Principal" not in statement and "NotPrincipal" not in statement:
        return "Missing required field Principal" if s3 else message
    actions = [str(each).lower() for each in listed(statement.get("Action"))]
    if any(each != "*" and not each.startswith(f"{service}:") for each in actions):
        return "Policy has invalid action" if s3 else message
    resources = [str(each) for each in listed(statement.get("Resource"))]
    if s3 and isinstance(bucket, str) and any(_of_another(each, bucket) for each in resources):
        return "Policy has invalid resource"
    return ""


def _of_another(resource: str, bucket: str) -> bool:
    named = re.fullmatch(r"arn:aws[a-z-]*:s3:::([^/*?]+)(/.*)?", resource)
    return named is not None and named[1] != bucket
