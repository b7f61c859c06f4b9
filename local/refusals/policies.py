"""Checks what IAM's own policies, trust policies and a key's policy must say to be stored.

Whether a policy allows enough is asked of local.iam.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.iam.conditions import like
from local.refusals.documents import as_list, iam_policy, parse
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
_ACTION = re.compile(r"\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
_PARTS_OF_AN_ARN = 6
_SYNTAX = "Syntax errors in policy."
_UNPREFACED = "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
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
    source=f"{_IAM}reference_policies_grammar.html",
)
def statements_of_a_policy(wanted: Wanted) -> Iterator[Refusal]:
    """Elements and operators that there are; resources or, in a trust policy, principals."""
    key, operation = iam_policy(wanted)
    document = parse(wanted.inputs[key])
    statements = as_list((document or {}).get("Statement"))
    wrong = ""
    if document is None or set(document) - TOP or not statements:
        wrong = _SYNTAX
    elif document.get("Version", "2008-10-17") not in VERSIONS:
        wrong = "The policy must contain a valid version string"
    of_kind = _of_trust if key == "assumeRolePolicy" else _of_identity
    for each in statements:
        wrong = wrong or of_parts(each) or _of_actions(each) or of_kind(each)
    if wrong:
        yield Refusal(operation, "MalformedPolicyDocument", wrong, key)


def of_parts(statement: Any) -> str:
    """Return what is wrong with the parts of a statement of any policy, or nothing."""
    if not isinstance(statement, dict) or set(statement) - _PARTS:
        return _SYNTAX
    if "Resource" in statement and "NotResource" in statement:
        return _SYNTAX
    conditions = statement.get("Condition") or {}
    for operator, keys in conditions.items() if isinstance(conditions, dict) else ():
        if not is_condition(operator):
            return f"Invalid Condition type : {operator}."
        if not isinstance(keys, dict) or any(isinstance(each, dict) for each in keys.values()):
            return _SYNTAX
        if any(":" not in str(key) for key in keys):
            return _UNPREFACED
    return "" if isinstance(conditions, dict) else _SYNTAX


def _of_actions(statement: Mapping[str, Any]) -> str:
    if statement.get("Effect") not in {"Allow", "Deny"}:
        return _SYNTAX
    if ("Action" in statement) == ("NotAction" in statement):
        return "Policy statement must contain actions."
    actions = [str(each) for each in as_list(statement.get("Action", statement.get("NotAction")))]
    if not actions:
        return "Policy statement must contain actions."
    if any(_ACTION.fullmatch(each) is None for each in actions):
        return _UNPREFACED
    return ""


def _of_trust(statement: Mapping[str, Any]) -> str:
    if "Resource" in statement or "NotResource" in statement:
        return "Has prohibited field Resource"
    if "Principal" not in statement and "NotPrincipal" not in statement:
        return "Missing required field Principal"
    wrong = _of_principal(statement.get("Principal"))
    actions = [str(each) for each in as_list(statement.get("Action"))]
    if not wrong and not all(_may_be_of_trust(each.lower()) for each in actions):
        wrong = "AssumeRole policy may only specify STS AssumeRole actions."
    return wrong


def _of_principal(principal: Any) -> str:
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
    return ""


def _of_identity(statement: Mapping[str, Any]) -> str:
    if "Principal" in statement or "NotPrincipal" in statement:
        return "Policy document should not specify a principal."
    resources = as_list(statement.get("Resource", statement.get("NotResource")))
    if not resources:
        return "Policy statement must contain resources."
    return next((wrong for each in resources if (wrong := _of_resource(str(each)))), "")


def _of_resource(resource: str) -> str:
    if resource == "*":
        return ""
    parts = resource.split(":", _PARTS_OF_AN_ARN - 1)
    if parts[0] != "arn":
        return f'Resource {resource} must be in ARN format or "*".'
    if len(parts) < _PARTS_OF_AN_ARN and not resource.endswith("*"):
        return "The policy failed legacy parsing"
    return _of_an_arn(resource, parts)


def _of_an_arn(resource: str, parts: list[str]) -> str:
    partition, vendor, region = (*parts[1:], "", "", "")[:3]
    # A variable that is never closed: IAM user guide, "Policy variables".
    opened = resource.rpartition("${")[2] if "${" in resource else "}"
    problems = (
        (
            partition and re.fullmatch(r"aws[a-z-]*|.*[*?].*", partition) is None,
            f'Partition "{partition}" is not valid for resource "{resource}".',
        ),
        (
            re.search(r"[*?]", vendor),
            "Resource vendor must be fully qualified and cannot contain regexes.",
        ),
        (
            vendor == "iam" and region,
            f"IAM resource {resource} cannot contain region information.",
        ),
        ("}" not in opened, _SYNTAX),
    )
    return next((said for wrong, said in problems if wrong), "")


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
