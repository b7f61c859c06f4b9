"""Which of AWS's managed policies there are, as a role may have them attached."""

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


@limit(
    "iam/role:Role",
    "iam/rolePolicyAttachment:RolePolicyAttachment",
    source="https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html",
)
def policy_that_there_is(wanted: Wanted) -> Iterator[Refusal]:
    """An ARN, and of AWS's own policies one that AWS has, under its path."""
    arn = str(wanted.inputs.get("policyArn") or wanted.inputs.get("permissionsBoundary") or "")
    if not arn and wanted.type.endswith(":Role"):
        return
    if _AWS.fullmatch(arn):
        if re.sub(r"^arn:aws[a-z-]*:", "arn:aws:", arn) not in _managed():
            message = f"Policy {arn} does not exist or is not attachable."
            yield Refusal("AttachRolePolicy", "NoSuchEntity", message, "policyArn")
    elif _ARN.fullmatch(arn) is None:
        message = f"ARN {arn} is not valid."
        yield Refusal("AttachRolePolicy", "InvalidInput", message, "policyArn")


@functools.cache
def _managed() -> frozenset[str]:
    known = json.loads(aws_managed_policies_data)
    return frozenset(f"arn:aws:iam::aws:policy{e['Path']}{name}" for name, e in known.items())
