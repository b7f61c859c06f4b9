"""Decides whether policies allow a request: pure, with the context given.

The order is IAM's: an explicit deny anywhere ends it; then the resource's own policy, or what the
role's policies and its boundary allow together. Within one account either is enough, but for a key
(whose policy must at least hand the decision to the account) and for a role to be assumed.
Source: IAM user guide, "Policy evaluation logic".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.iam.conditions import Context, arn_like, as_list, hold, like, substitute

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks: the ARN of the session or user, and of the role behind a session."""

    arn: str
    account: str
    role_arn: str = ""
    # Set for an AWS service: events.amazonaws.com.
    service: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """One action on one resource; `*` where the action takes none."""

    action: str
    resource: str
    principal: Principal
    context: Context = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """Whether a request is allowed, and AWS's reason where it is not."""

    allowed: bool
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """What is to be asked about a request."""

    identity: Sequence[Document] = ()
    resource: Document | None = None
    boundary: Document | None = None
    session: Document | None = None


def decide(request: PolicyRequest, policies: Policies) -> PolicyVerdict:
    """Decide about a request within one account."""
    kinds = {
        "an identity-based policy": policies.identity,
        "a resource-based policy": [policies.resource] if policies.resource else [],
        "a permissions boundary": [policies.boundary] if policies.boundary else [],
        "a session policy": [policies.session] if policies.session else [],
    }
    for kind, documents in kinds.items():
        if any(_effect(document, request, "Deny") for document in documents):
            return PolicyVerdict(allowed=False, because=f"with an explicit deny in {kind}")
    by_resource = _by_resource(policies.resource, request)
    if request.action.startswith("kms:") and not by_resource:
        return _none(request, "resource-based policy")
    if by_resource == "itself":
        return PolicyVerdict(allowed=True)
    by_identity = any(_effect(document, request, "Allow") for document in policies.identity)
    if not by_identity and by_resource != "role":
        return _none(request, "identity-based policy")
    for kind, limit in (
        ("permissions boundary", policies.boundary),
        ("session policy", policies.session),
    ):
        if limit is not None and not _effect(limit, request, "Allow"):
            return _none(request, kind)
    return PolicyVerdict(allowed=True)


def trusts(
    trust: Document,
    service: str,
    role_arn: str,
    *actions: str,
    tags: Mapping[str, str] | None = None,
) -> bool:
    """Say whether a role's trust policy lets an AWS service make sessions of it by every action.

    `tags` are those the service gives the session.
    """
    account = role_arn.split(":")[4]
    principal = Principal(arn=f"arn:aws:iam::{account}:{service}", account=account, service=service)
    requests = [
        PolicyRequest(
            action=action,
            resource=role_arn,
            principal=principal,
            context={
                "aws:sourceaccount": (account,),
                **{f"aws:requesttag/{key}": (value,) for key, value in (tags or {}).items()},
            },
        )
        for action in actions
    ]
    return all(
        _effect(trust, each, "Allow") and not _effect(trust, each, "Deny") for each in requests
    )


def _none(request: PolicyRequest, kind: str) -> PolicyVerdict:
    return PolicyVerdict(
        allowed=False, because=f"because no {kind} allows the {request.action} action"
    )


def _by_resource(document: Document | None, request: PolicyRequest) -> str:
    """Return whom a resource's policy lets in: the session `itself`, its `role`, the `account`."""
    if document is None:
        return ""
    found = {
        _naming_of(statement["Principal"], request.principal)
        for statement in _statements(document)
        if statement["Effect"] == "Allow"
        and "Principal" in statement
        and _applies(statement, request)
    }
    return next((each for each in ("itself", "role", "account") if each in found), "")


def _effect(document: Document, request: PolicyRequest, effect: str) -> bool:
    return any(
        statement["Effect"] == effect and _applies(statement, request)
        for statement in _statements(document)
    )


def _statements(document: Document) -> list[Mapping[str, Any]]:
    statements = document.get("Statement", [])
    return statements if isinstance(statements, list) else [statements]


def _applies(statement: Mapping[str, Any], request: PolicyRequest) -> bool:
    return (
        _concerns(statement, request.principal)
        and _matches_action(statement, request.action)
        and _matches_resource(statement, request)
        and hold(statement.get("Condition", {}), request.context)
    )


def _concerns(statement: Mapping[str, Any], principal: Principal) -> bool:
    if "NotPrincipal" in statement:
        return not _naming_of(statement["NotPrincipal"], principal)
    return "Principal" not in statement or bool(_naming_of(statement["Principal"], principal))


def _naming_of(named: Any, principal: Principal) -> str:
    """Return how a Principal element names somebody, or an empty text."""
    if named == "*":
        return "itself"
    if principal.service:
        return "itself" if principal.service in as_list(named.get("Service", [])) else ""
    names = as_list(named.get("AWS", []))
    if "*" in names or principal.arn in names:
        return "itself"
    if principal.role_arn and principal.role_arn in names:
        return "role"
    root = f"arn:{principal.arn.split(':')[1]}:iam::{principal.account}:root"
    return "account" if root in names or principal.account in names else ""


def _matches_action(statement: Mapping[str, Any], action: str) -> bool:
    negated = "NotAction" in statement
    patterns = as_list(statement.get("NotAction" if negated else "Action", []))
    return any(like(each, action, ignore_case=True) for each in patterns) != negated


def _matches_resource(statement: Mapping[str, Any], request: PolicyRequest) -> bool:
    if "Resource" not in statement and "NotResource" not in statement:
        return True  # a trust policy has none: it is the role's own
    negated = "NotResource" in statement
    patterns = as_list(statement["NotResource" if negated else "Resource"])
    filled = [substitute(each, request.context) for each in patterns]
    return any(each and arn_like(each, request.resource) for each in filled) != negated
