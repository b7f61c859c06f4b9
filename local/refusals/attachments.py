"""Decides which managed policies a role may have attached, and how many."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator

from moto.iam.aws_managed_policies import aws_managed_policies_data

from local.refusals.limits import limit
from local.refusals.refusal import Refusal, Wanted

_AWS = re.compile(r"arn:aws[a-z-]*:iam::aws:policy/.*")
_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:policy/[!-~]+")


# IAM's quota of managed policies of a role, unless somebody had it raised.
POLICIES_OF_A_ROLE = 10


@limit(
    "iam/role:Role",
    "iam/rolePolicyAttachment:RolePolicyAttachment",
    source="https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html",
)
def policies_that_there_are(wanted: Wanted) -> Iterator[Refusal]:
    """ARNs, and of AWS's own policies those that AWS has, under their path; ten at most."""
    listed = [str(each) for each in wanted.inputs.get("managedPolicyArns") or ()]
    for key in ("policyArn", "permissionsBoundary"):
        value = wanted.inputs.get(key)
        if value or (key == "policyArn" and not wanted.type.endswith(":Role")):
            yield from _policy_refusals(str(value or ""), key)
    for arn in listed:
        yield from _policy_refusals(arn, "managedPolicyArns")
    if len(set(listed)) > POLICIES_OF_A_ROLE:
        message = f"Cannot exceed quota for PoliciesPerRole: {POLICIES_OF_A_ROLE}"
        yield Refusal("AttachRolePolicy", "LimitExceeded", message, "managedPolicyArns")


def _policy_refusals(arn: str, at: str) -> Iterator[Refusal]:
    if _AWS.fullmatch(arn):
        if re.sub(r"^arn:aws[a-z-]*:", "arn:aws:", arn) not in _managed_policies():
            message = f"Policy {arn} does not exist or is not attachable."
            yield Refusal("AttachRolePolicy", "NoSuchEntity", message, at)
    elif _ARN.fullmatch(arn) is None:
        message = f"ARN {arn} is not valid."
        yield Refusal("AttachRolePolicy", "InvalidInput", message, at)


@functools.cache
def _managed_policies() -> frozenset[str]:
    known = json.loads(aws_managed_policies_data)
    return frozenset(f"arn:aws:iam::aws:policy{e['Path']}{name}" for name, e in known.items())
