"""Checks what a policy must say to be stored: of IAM's own, a role's trust, a key, a resource.

Whether a policy allows enough is asked of local.iam; how long it may be says the table.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moto.iam.aws_managed_policies import aws_managed_policies_data

from local.iam.conditions import like
from local.refusals.documents import as_list, network, parse, text, words
from local.refusals.model import actions as actions_of
from local.refusals.model import is_service
from local.refusals.neighbours import TABLE, Row, of
from local.refusals.neighbours import limit as together
from local.refusals.refusal import KIB, Refusal, Wanted, limit, said

_IAM = "https://docs.aws.amazon.com/IAM/latest/UserGuide/"
_CONDITION = re.compile(
    rf"(?:ForAllValues:|ForAnyValue:)?(?:{'|'.join(words('condition_operators'))})(?:IfExists)?",
    re.IGNORECASE,
)
_ACTION = re.compile(r"\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
_PARTS_OF_AN_ARN = 6
_SYNTAX = "Syntax errors in policy."
_UNPREFACED = "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
_VERSIONS, _TOP = {"2012-10-17", "2008-10-17"}, {"Version", "Id", "Statement"}
_PARTS = {
    *("Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction"),
    *("Resource", "NotResource", "Condition"),
}
_ACCOUNT = re.compile(r"\*|\d{12}|arn:aws[a-z-]*:(iam|sts)::\d{12}:[^\s*?]+|A[A-Z0-9]{15,127}")
_PRINCIPALS = frozenset({"Service", "AWS", "Federated", "CanonicalUser"})
# Where IAM's own policies stand, and the operation that stores them.
_STORED = {
    "aws:iam/policy:Policy": ("policy", "CreatePolicy"),
    "aws:iam/role:Role": ("assumeRolePolicy", "CreateRole"),
    "aws:iam/rolePolicy:RolePolicy": ("policy", "PutRolePolicy"),
}


def _is_condition(operator: str) -> bool:
    return _CONDITION.fullmatch(operator) is not None


def _statements(document: Mapping[str, Any] | None) -> list[Any]:
    return as_list((document or {}).get("Statement"))


def _texts(given: Any) -> list[str]:
    return [str(each) for each in as_list(given)]


def _first(problems: Sequence[tuple[object, str]]) -> str:
    """Return what is wrong first, or nothing."""
    return next((said for wrong, said in problems if wrong), "")


def _has_version(document: Mapping[str, Any]) -> bool:
    return document.get("Version", "2008-10-17") in _VERSIONS


@limit(
    *(token.removeprefix("aws:") for token in _STORED),
    source=f"{_IAM}reference_policies_grammar.html",
)
def statements_of_a_policy(wanted: Wanted) -> Iterator[Refusal]:
    """Elements and operators that there are; resources or, in a trust policy, principals."""
    key, operation = _STORED[wanted.type]
    document = parse(wanted.inputs[key])
    statements, wrong = _statements(document), ""
    if document is None or set(document) - _TOP or not statements:
        wrong = _SYNTAX
    elif not _has_version(document):
        wrong = "The policy must contain a valid version string"
    of_kind = _of_trust if key == "assumeRolePolicy" else _of_identity
    for each in statements:
        wrong = wrong or _of_parts(each) or _of_actions(each) or of_kind(each)
    wrong = wrong or _of_sids(statements)
    if wrong:
        yield Refusal(operation, "MalformedPolicyDocument", wrong, key)


def _of_sids(statements: Sequence[Mapping[str, Any]]) -> str:
    sids = [str(each["Sid"]) for each in statements if each.get("Sid")]
    if not all(re.fullmatch("[0-9A-Za-z]*", sid) for sid in sids):
        return "Statement IDs (SID) must be alpha-numeric: [0-9A-Za-z]*"
    twice = len(sids) != len(set(sids))
    return "Statement IDs (SID) in a single policy must be unique." if twice else ""


def _of_parts(statement: Any) -> str:
    """Return what is wrong with the parts of a statement of any policy, or nothing."""
    if not isinstance(statement, dict) or set(statement) - _PARTS:
        return _SYNTAX
    conditions = statement.get("Condition") or {}
    if ("Resource" in statement and "NotResource" in statement) or not isinstance(conditions, dict):
        return _SYNTAX
    for operator, keys in conditions.items():
        if not _is_condition(operator):
            return f"Invalid Condition type : {operator}."
        if not isinstance(keys, dict) or any(isinstance(each, dict) for each in keys.values()):
            return _SYNTAX
        if any(":" not in str(key) for key in keys):
            return _UNPREFACED
    return ""


def _of_actions(statement: Mapping[str, Any]) -> str:
    actions = _texts(statement.get("Action", statement.get("NotAction")))
    if statement.get("Effect") not in {"Allow", "Deny"}:
        return _SYNTAX
    if ("Action" in statement) == ("NotAction" in statement) or not actions:
        return "Policy statement must contain actions."
    return _UNPREFACED if any(_ACTION.fullmatch(each) is None for each in actions) else ""


def _of_trust(statement: Mapping[str, Any]) -> str:
    if "Resource" in statement or "NotResource" in statement:
        return "Has prohibited field Resource"
    if "Principal" not in statement and "NotPrincipal" not in statement:
        return "Missing required field Principal"
    wrong = _of_principal(statement.get("Principal"))
    if not wrong and not all(map(_may_be_of_trust, _texts(statement.get("Action")))):
        wrong = "AssumeRole policy may only specify STS AssumeRole actions."
    return wrong


def _may_be_of_trust(action: str) -> bool:
    vendor, _, name = action.lower().partition(":")
    return vendor == "sts" and any(like(name, each) for each in words("trust_actions"))


def _of_principal(principal: Any) -> str:
    if isinstance(principal, str) and principal != "*":
        return f'Invalid principal in policy: "{principal}"'
    if isinstance(principal, dict) and not all(map(as_list, principal.values() or [None])):
        return "Missing required field Principal"
    for kind, named in principal.items() if isinstance(principal, dict) else ():
        for each in _texts(named):
            if kind not in _PRINCIPALS or not _is_named(kind, each):
                shown = kind.upper() if kind in _PRINCIPALS else kind
                return f'Invalid principal in policy: "{shown}":"{each}"'
    return ""


def _of_identity(statement: Mapping[str, Any]) -> str:
    if "Principal" in statement or "NotPrincipal" in statement:
        return "Policy document should not specify a principal."
    resources = _texts(statement.get("Resource", statement.get("NotResource")))
    if not resources:
        return "Policy statement must contain resources."
    return next((wrong for each in resources if (wrong := _of_resource(each))), "")


def _of_resource(resource: str) -> str:
    """Return what IAM refuses of a resource that a policy names, or nothing."""
    if resource == "*":
        return ""
    parts = resource.split(":", _PARTS_OF_AN_ARN - 1)
    partition, vendor, region = (*parts[1:], "", "", "")[:3]
    # A variable that is never closed: IAM user guide, "Policy variables".
    opened = resource.rpartition("${")[2] if "${" in resource else "}"
    return _first(
        (
            (parts[0] != "arn", f'Resource {resource} must be in ARN format or "*".'),
            (
                len(parts) < _PARTS_OF_AN_ARN and not resource.endswith("*"),
                "The policy failed legacy parsing",
            ),
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
    )


def _is_principal(principal: Any) -> bool:
    """Say whether a statement's principal can be somebody."""
    return isinstance(principal, str | dict) and not _of_principal(principal)


def _is_named(kind: str, principal: str) -> bool:
    """Say whether somebody can be called so, as a principal of a kind."""
    if kind == "Service":
        return is_service(principal)
    return bool(principal) if kind != "AWS" else _ACCOUNT.fullmatch(principal) is not None


@limit(
    "kms/key:Key", source="https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html"
)
def policy_of_a_key(wanted: Wanted) -> Iterator[Refusal]:
    """Statements about something, of somebody, and somebody may still change it afterwards."""
    if wanted.inputs.get("policy") is None:
        return
    document = parse(wanted.inputs["policy"])
    statements = [each for each in _statements(document) if isinstance(each, dict)]
    safe = wanted.inputs.get("bypassPolicyLockoutSafetyCheck") or any(map(_may_change, statements))
    wrong = _first(
        (
            (
                document is None
                or not _has_version(document)
                or any(
                    _of_parts(each) or not (each.get("Resource") and each.get("Action"))
                    for each in statements
                ),
                "Policy contains a syntax error",
            ),
            (
                not all(_is_principal(each.get("Principal")) for each in statements),
                "Policy contains a statement with one or more invalid principals.",
            ),
            (
                not safe,
                "The new key policy will not allow you to update the key policy in the future.",
            ),
        )
    )
    if wrong:
        yield Refusal("CreateKey", "MalformedPolicyDocumentException", wrong, "policy")


def _may_change(statement: Mapping[str, Any]) -> bool:
    changing = any(like(e.lower(), "kms:putkeypolicy") for e in _texts(statement.get("Action")))
    return statement.get("Effect") == "Allow" and changing


# Whose policy it is, how the service refuses it, and which actions it may name.
_OWNERS = {f"aws:{row['type']}": row for row in TABLE["policies"]}
# SQS developer guide, "Policy quotas": bytes, statements, and actions of one.
_QUEUE_BYTES, _QUEUE_STATEMENTS, _QUEUE_ACTIONS = 8 * KIB, 20, 7


@limit(
    *(token.removeprefix("aws:") for token in _OWNERS),
    source=f"{_IAM}access_policies_identity-vs-resource.html",
)
def policy_of_a_resource(wanted: Wanted) -> Iterator[Refusal]:
    """JSON whose statements name a principal, the service's own actions, and this resource."""
    owner, document = _OWNERS[wanted.type], parse(wanted.inputs["policy"])
    statements, wrong = _statements(document), ""
    if document is None or not statements or set(document) - _TOP or not _has_version(document):
        wrong = owner["says"]
    named = str(wanted.inputs.get("arn") or wanted.inputs.get("queueUrl") or "")
    named = str(wanted.inputs.get("bucket") or re.split("[:/]", named)[-1])
    for each in statements:
        wrong = wrong or _of_a_statement(each if isinstance(each, dict) else {}, owner, named)
    sids = [e["Sid"] for e in statements if isinstance(e, dict) and e.get("Sid")]
    # Of S3 nobody has been told that a Sid must be there once.
    if owner["service"] != "s3" and len(set(sids)) < len(sids):
        wrong = wrong or f"{owner['says']} Every policy statement must have a unique ID"
    if owner["service"] == "sqs" and _is_too_much(wanted.inputs["policy"], statements):
        wrong = wrong or owner["says"]
    if wrong:
        yield Refusal(owner["operation"], owner["code"], wrong, "policy")


def _is_too_much(policy: Any, statements: Sequence[Any]) -> bool:
    actions = [len(as_list(e.get("Action"))) for e in statements if isinstance(e, dict)]
    return (
        len(text(policy).encode()) > _QUEUE_BYTES
        or len(statements) > _QUEUE_STATEMENTS
        or max(actions, default=0) > _QUEUE_ACTIONS
    )


def _of_a_statement(statement: Mapping[str, Any], owner: Row, named: str) -> str:
    s3 = owner["service"] == "s3"
    principal = statement.get("Principal", statement.get("NotPrincipal"))
    actions = [each.lower() for each in _texts(statement.get("Action"))]
    resources = _texts(statement.get("Resource", statement.get("NotResource")))
    strange = not all(_is_action(each, owner) for each in actions)
    return _first(
        (
            (
                statement.get("Effect") not in {"Allow", "Deny"}
                or _of_parts(dict(statement))
                or ("Action" in statement) == ("NotAction" in statement),
                owner["says"],
            ),
            (principal is None, "Missing required field Principal" if s3 else owner["says"]),
            (
                not _is_principal(principal),
                "Invalid principal in policy" if s3 else f"{owner['says']} PrincipalNotFound",
            ),
            (strange, "Policy has invalid action" if s3 else owner["says"]),
        )
    ) or (
        _of_a_bucket(statement, actions, resources, named)
        if s3
        else _of_others(resources, owner, named)
    )


def _is_action(action: str, owner: Row) -> bool:
    service, _, name = action.partition(":")
    if action == "*":
        return bool(owner["service"] != "sns")
    if service != owner["service"]:
        return False
    if owner["service"] == "sns":
        # SNS takes no wildcard over all of its actions.
        return name in words("topic_actions")
    known = words("queue_actions") if owner["service"] == "sqs" else actions_of("s3") or (name,)
    return any(like(name, each) for each in known)


def _of_others(resources: Sequence[str], owner: Row, named: str) -> str:
    """A queue's policy may say "*", a topic's as well; an ARN must be of the queue or topic."""
    for each in resources:
        parts = each.split(":")
        own = len(parts) == _PARTS_OF_AN_ARN and parts[2] == owner["service"]
        if each != "*" and not (own and (not named or like(parts[5], named))):
            return (
                "Invalid parameter: Policy Error: null"
                if owner["service"] == "sns"
                else owner["says"]
            )
    return ""


_GLOBAL_KEYS = words("global_condition_keys")
_S3_KEYS = words("s3_condition_keys")
# Keys that only listings have, and the listings.
_OF_LISTINGS = frozenset({"s3:delimiter", "s3:max-keys", "s3:prefix"})
_LISTINGS = ("listbucket", "listbucketmultipartuploads", "listbucketversions")


def _of_a_bucket(
    statement: Mapping[str, Any], actions: Sequence[str], resources: Sequence[str], bucket: str
) -> str:
    """Return what S3 refuses of a statement's resources, conditions, or of both together."""
    if not resources or any(_of_another_bucket(each, bucket) for each in resources):
        return "Policy has invalid resource"
    names = [action.rpartition(":")[2] for action in actions]
    listing = any(like(name, each) for name in names for each in _LISTINGS)
    conditions = statement.get("Condition") or {}
    for key in (str(key).lower().partition("/")[0] for keys in conditions.values() for key in keys):
        vendor, _, name = key.partition(":")
        if name not in {"aws": _GLOBAL_KEYS, "s3": _S3_KEYS}.get(vendor, {name}):
            return "Policy has an invalid condition key"
        if key in _OF_LISTINGS and actions and not listing:
            return "Conditions do not apply to combination of actions and resources in statement"
    given = {"bucket"} if any("/" not in each for each in resources) else set()
    given |= {"object"} if any("/" in e or e.endswith("*") for e in resources) else set()
    for action in (each for each in actions if each.startswith("s3:")):
        matched = [k for n, k in actions_of("s3").items() if like(action.rpartition(":")[2], n)]
        if matched and not given & frozenset().union(*matched):
            return "Action does not apply to any resource(s) in statement"
    return ""


def _of_another_bucket(resource: str, bucket: str) -> bool:
    named = re.fullmatch(r"arn:aws[a-z-]*:s3:::([^/*?]+)(/.*)?", resource)
    if named is not None:
        return bool(bucket) and named[1] != bucket
    return re.fullmatch(r"arn:aws[a-z-]*:s3:::.+|\*", resource) is None


_S3_MEANING = (
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html"
)
_FIXING = words("fixing_condition_keys")
_EQUAL = frozenset({"stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike"})
# Wider ranges of addresses are the public.
_WIDEST = {4: 8, 6: 32}


@together(_S3_MEANING)
def policies_for_everybody(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A statement that allows everybody, where the bucket's block does not say that it may.

    Every new bucket blocks public policies until somebody says otherwise.
    """
    open_to_all = {
        str(each.inputs.get("bucket"))
        for each in of(everything, "s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
        if not each.inputs.get("blockPublicPolicy")
    }
    for each in of(everything, "s3/bucketPolicy:BucketPolicy"):
        statements = _statements(parse(each.inputs["policy"]))
        public = any(isinstance(one, dict) and _is_public(one) for one in statements)
        if public and str(each.inputs.get("bucket")) not in open_to_all:
            yield said("public-policy", resource=each.name)


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
    values, plain = _texts(value), operator.rpartition(":")[2]
    if key == "aws:sourceip":
        return plain == "ipaddress" and bool(values) and all(map(_is_narrow, values))
    fixed = plain in _EQUAL and key in _FIXING and bool(values)
    # An ARN may have its stars behind the account, "*" alone is everybody.
    return fixed and not any(each.strip("*") == "" or "${" in each for each in values)


def _is_narrow(block: str) -> bool:
    found = network(block)
    return found is not None and found.prefixlen >= _WIDEST[found.version]


@limit(
    "iam/role:Role",
    "iam/rolePolicyAttachment:RolePolicyAttachment",
    source="https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html",
)
def policies_that_there_are(wanted: Wanted) -> Iterator[Refusal]:
    """ARNs, and of AWS's own policies those that AWS has, under their path."""
    inputs = wanted.inputs
    named = [(str(each), "managedPolicyArns") for each in inputs.get("managedPolicyArns") or ()]
    for key in ("policyArn", "permissionsBoundary"):
        if inputs.get(key) or (key == "policyArn" and not wanted.type.endswith(":Role")):
            named += [(str(inputs.get(key) or ""), key)]
    for arn, at in named:
        if re.fullmatch(r"arn:aws[a-z-]*:iam::aws:policy/.*", arn):
            if re.sub(r"^arn:aws[a-z-]*:", "arn:aws:", arn) not in _managed_policies():
                message = f"Policy {arn} does not exist or is not attachable."
                yield Refusal("AttachRolePolicy", "NoSuchEntity", message, at)
        elif re.fullmatch(r"arn:aws[a-z-]*:iam::\d{12}:policy/[!-~]+", arn) is None:
            yield Refusal("AttachRolePolicy", "InvalidInput", f"ARN {arn} is not valid.", at)


@functools.cache
def _managed_policies() -> frozenset[str]:
    known = json.loads(aws_managed_policies_data)
    return frozenset(f"arn:aws:iam::aws:policy{e['Path']}{name}" for name, e in known.items())


@limit(
    "lambda/permission:Permission",
    source="https://docs.aws.amazon.com/lambda/latest/api/API_AddPermission.html",
)
def principal_of_a_permission(wanted: Wanted) -> Iterator[Refusal]:
    """An account, somebody of an account, everybody, or a service of AWS's."""
    principal = str(wanted.inputs.get("principal") or "")
    if principal.endswith(".amazonaws.com") and not is_service(principal):
        yield said("principal-of-a-permission")
