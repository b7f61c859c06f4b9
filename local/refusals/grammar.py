"""Checks the grammar of an IAM policy's statements.

Whether a policy allows enough is asked of local.iam; here is what IAM refuses to store at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.refusals.documents import as_list, parse
from local.refusals.limits import limit
from local.refusals.policies import VERSIONS
from local.refusals.refusal import Refusal, Wanted

GRAMMAR = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html"
_ACTION = re.compile(r"\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
_PARTS_OF_AN_ARN = 6


@limit("iam/policy:Policy", "iam/role:Role", "iam/rolePolicy:RolePolicy", source=GRAMMAR)
def statements_of_a_policy(wanted: Wanted) -> Iterator[Refusal]:
    """Effect, actions with their service, and resources or, in a trust policy, principals."""
    trust = "assumeRolePolicy" in wanted.inputs
    key, operation = ("assumeRolePolicy", "CreateRole") if trust else ("policy", "PutRolePolicy")
    document = parse(wanted.inputs[key])
    wrong = "Syntax errors in policy." if document is None else _of_document(document)
    for statement in as_list((document or {}).get("Statement")):
        wrong = wrong or _of_statement(statement, trust=trust)
    if wrong:
        yield Refusal(operation, "MalformedPolicyDocument", wrong, key)


def _of_document(document: Mapping[str, Any]) -> str:
    if document.get("Version", "2008-10-17") not in VERSIONS:
        return "The policy must contain a valid version string"
    return "" if "Statement" in document else "Syntax errors in policy."


def _of_statement(statement: Any, *, trust: bool) -> str:
    if not isinstance(statement, dict):
        return "Syntax errors in policy."
    if statement.get("Effect") not in {"Allow", "Deny"}:
        return "Syntax errors in policy."
    if ("Action" in statement) == ("NotAction" in statement):
        return "Policy statement must contain actions."
    actions = [str(each) for each in as_list(statement.get("Action", statement.get("NotAction")))]
    if not actions:
        return "Policy statement must contain actions."
    if any(_ACTION.fullmatch(each) is None for each in actions):
        return "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
    return _of_trust(statement) if trust else _of_identity(statement)


def _of_trust(statement: Mapping[str, Any]) -> str:
    if "Resource" in statement or "NotResource" in statement:
        return "Has prohibited field Resource"
    named = "Principal" in statement or "NotPrincipal" in statement
    return "" if named else "Missing required field Principal"


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
        ("}" not in opened, "Syntax errors in policy."),
    )
    return next((said for wrong, said in problems if wrong), "")
