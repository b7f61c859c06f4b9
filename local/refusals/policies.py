"""Checks what IAM's own policies, trust policies and a key's policy must say to be stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.iam.conditions import like
from local.refusals.documents import as_list, parse
from local.refusals.limits import limit
from local.refusals.principals import is_service
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
# What a trust policy allows, in lower case.
_OF_TRUST = frozenset(
    {
        *("assumerole", "assumerolewithsaml", "assumerolewithwebidentity", "assumeroot"),
        *("setcontext", "setsourceidentity", "tagsession"),
    }
)
VERSIONS = {"2012-10-17", "2008-10-17"}
TOP = {"Version", "Id", "Statement"}
_PARTS = {
    *("Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction"),
    *("Resource", "NotResource", "Condition"),
}
_ACCOUNT = re.compile(r"\*|\d{12}|arn:aws[a-z-]*:(iam|sts)::\d{12}:[^\s*?]+|A[A-Z0-9]{15,127}")
_PRINCIPALS = frozenset({"Service", "AWS", "Federated", "CanonicalUser"})


def is_condition(operator: str) -> bool:
    """Say whether IAM knows a condition's operator."""
    return _CONDITION.fullmatch(operator) is not None


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
    document = parse(wanted.inputs[key])
    statements = as_list((document or {}).get("Statement"))
    if document is None:
        return
    wrong = ""
    if set(document) - TOP or not statements:
        wrong = "Syntax errors in policy."
    for statement in statements:
        wrong = wrong or of_parts(statement) or (_of_trust(statement) if trust else "")
    if wrong:
        yield Refusal(operation, "MalformedPolicyDocument", wrong, key)


def of_parts(statement: Any) -> str:
    """Return what is wrong with the parts of a statement of any policy, or nothing."""
    if not isinstance(statement, dict) or set(statement) - _PARTS:
        return "Syntax errors in policy."
    if "Resource" in statement and "NotResource" in statement:
        return "Syntax errors in policy."
    conditions = statement.get("Condition") or {}
    for operator, keys in conditions.items() if isinstance(conditions, dict) else ():
        if not is_condition(operator):
            return f"Invalid Condition type : {operator}."
        if not isinstance(keys, dict) or any(isinstance(each, dict) for each in keys.values()):
            return "Syntax errors in policy."
        if any(":" not in str(key) for key in keys):
            return "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
    return "" if isinstance(conditions, dict) else "Syntax errors in policy."


def _of_trust(statement: Mapping[str, Any]) -> str:
    principal = statement.get("Principal")
    if isinstance(principal, str) and principal != "*":
        return f'Invalid principal in policy: "{principal}"'
    if isinstance(principal, dict) and not all(map(as_list, principal.values() or [None])):
        return "Missing required field Principal"
    for kind, named in principal.items() if isinstance(principal, dict) else ():
        for each in map(str, as_list(named)):
            if kind not in _PRINCIPALS:
                return f'Invalid principal in policy: "{kind}":"{each}"'
            if not is_named(kind, each):
                return f'Invalid principal in policy: "{kind.upper()}":"{each}"'
    actions = [str(each) for each in as_list(statement.get("Action"))]
    if not all(_may_be_of_trust(each.lower()) for each in actions):
        return "AssumeRole policy may only specify STS AssumeRole actions."
    return ""


def _may_be_of_trust(action: str) -> bool:
    vendor, _, name = action.partition(":")
    return vendor == "sts" and any(like(name, each) for each in _OF_TRUST)


@limit(
    "kms/key:Key", source="https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html"
)
def policy_of_a_key(wanted: Wanted) -> Iterator[Refusal]:
    """Somebody may still change it afterwards; only symmetric keys rotate."""
    given = wanted.inputs.get("policy")
    if given is not None:
        document, code = parse(given), "MalformedPolicyDocumentException"
        if (
            document is None
            or document.get("Version", "2008-10-17") not in VERSIONS
            or any(
                of_parts(each)
                or not (as_list(each.get("Resource")) and as_list(each.get("Action")))
                for each in _statements(document)
            )
        ):
            yield Refusal("CreateKey", code, "Policy contains a syntax error", "policy")
        elif not all(is_principal(e.get("Principal")) for e in _statements(document)):
            message = "Policy contains a statement with one or more invalid principals."
            yield Refusal("CreateKey", code, message, "policy")
        elif not (
            wanted.inputs.get("bypassPolicyLockoutSafetyCheck")
            or any(_may_change(each) for each in as_list(document.get("Statement")))
        ):
            message = "The new key policy will not allow you to update the key policy in the "
            message += "future."
            yield Refusal("CreateKey", code, message, "policy")
    kind = wanted.inputs.get("customerMasterKeySpec") or "SYMMETRIC_DEFAULT"
    if wanted.inputs.get("enableKeyRotation") and kind != "SYMMETRIC_DEFAULT":
        message = f"{kind} keys do not support key rotation"
        at = "enableKeyRotation"
        yield Refusal("EnableKeyRotation", "UnsupportedOperationException", message, at)


@limit(
    "ec2/vpcEndpoint:VpcEndpoint",
    source="https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-endpoints-access.html",
)
def policy_of_an_endpoint(wanted: Wanted) -> Iterator[Refusal]:
    """Statements with an effect, a principal, actions and resources."""
    given = wanted.inputs.get("policy")
    if given in (None, ""):
        return
    document = parse(given)
    statements = _statements(document or {})
    whole = bool(statements) and (document or {}).get("Version", "2008-10-17") in VERSIONS
    for each in statements:
        parts = ("Principal", "Action", "Resource")
        named = all(each.get(part) or each.get(f"Not{part}") for part in parts)
        effect = each.get("Effect") in {"Allow", "Deny"}
        whole = whole and named and effect and not of_parts(each)
    if not whole:
        message = "This policy contains invalid Json or a statement that is not whole."
        yield Refusal("CreateVpcEndpoint", "InvalidPolicyDocument", message, "policy")


def _statements(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in as_list(document.get("Statement")) if isinstance(each, dict)]


def is_principal(principal: Any) -> bool:
    """Say whether a statement's principal can be somebody."""
    if not isinstance(principal, dict):
        return bool(principal == "*")
    return bool(principal) and all(
        kind in _PRINCIPALS
        and bool(as_list(named))
        and all(is_named(kind, str(each)) for each in as_list(named))
        for kind, named in principal.items()
    )


def is_named(kind: str, principal: str) -> bool:
    """Say whether somebody can be called so, as a principal of a kind."""
    if kind == "Service":
        return is_service(principal)
    return bool(principal) if kind != "AWS" else _ACCOUNT.fullmatch(principal) is not None


def _may_change(statement: Mapping[str, Any]) -> bool:
    actions = [str(each).lower() for each in as_list(statement.get("Action"))]
    changing = any(like(each, "kms:putkeypolicy") for each in actions)
    return statement.get("Effect") == "Allow" and changing
