"""Questions to the twin's IAM, each with the documents, in a form that another judge can be asked.

`examples` are AWS's documented rules, one each: what our own policies do not use must be right too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.environment import ACCOUNT, REGION
from local.iam.policy import Policies, PolicyRequest, Principal, decide

ROLE = f"arn:aws:iam::{ACCOUNT}:role/judged"
PRINCIPAL = Principal(
    arn=f"arn:aws:sts::{ACCOUNT}:assumed-role/judged/test", account=ACCOUNT, role_arn=ROLE
)
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
MESSAGE = ("sqs:SendMessage", QUEUE)
OBJECT = ("s3:GetObject", "arn:aws:s3:::reports/orders/2026.html")


@dataclass(frozen=True)
class Case:
    """One question: a request, and all policies that are asked."""

    name: str
    request: PolicyRequest
    policies: Policies

    @property
    def answer(self) -> str:
        return "allowed" if decide(self.request, self.policies).allowed else "denied"

    def asked(self) -> dict[str, Any]:
        """Return the question as simulate.mjs reads it."""
        keys = {key: _one(values) for key, values in self.request.context.items()}
        resource = {"resource": self.request.resource, "accountId": ACCOUNT}
        return {
            "identity": list(self.policies.identity),
            "resource": self.policies.resource,
            "boundary": self.policies.boundary,
            "request": {
                "principal": self.request.principal.arn,
                "action": self.request.action,
                "resource": resource,
                "contextVariables": keys,
            },
        }


def _one(values: Sequence[str]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def document(*statements: Mapping[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(action: Any = "sqs:*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: Any = "sqs:*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {**allow(action, resource, **more), "Effect": "Deny"}


def to_principal(named: Any) -> dict[str, Any]:
    return {**allow("sqs:SendMessage", QUEUE), "Principal": named}


def asked(
    *statements: Mapping[str, Any],
    request: tuple[str, str] = MESSAGE,
    keys: Mapping[str, str] | None = None,
    **others: Any,
) -> tuple[PolicyRequest, Policies]:
    """Return a request and its policies: the role's statements, and what else is asked."""
    action, resource = request
    context = {key.lower(): (value,) for key, value in (keys or {}).items()}
    return (
        PolicyRequest(action=action, resource=resource, principal=PRINCIPAL, context=context),
        Policies(identity=[document(*statements)], **others),
    )


TEAM = "aws:PrincipalTag/team"
OF_TEAM = allow("s3:*", f"arn:aws:s3:::reports/${{{TEAM}}}/*")
ALLOWED = {
    "case of an action counts for nothing": asked(allow("SQS:sendmessage")),
    "a wildcard in an action": asked(allow("sqs:Send*")),
    "a question mark is one character": asked(allow("sqs:SendMessag?")),
    "a deny of another resource does not": asked(allow(), deny(resource=QUEUE + "2")),
    "a resource's wildcard": asked(allow(resource=f"arn:aws:sqs:*:{ACCOUNT}:ord*")),
    "NotAction allows the rest": asked(
        {"Effect": "Allow", "NotAction": "sqs:Delete*", "Resource": "*"}
    ),
    "a deny of everything but ours": asked(
        allow(), {"Effect": "Deny", "Action": "sqs:*", "NotResource": QUEUE}
    ),
    "a missing key is not equal, which StringNotEquals wants": asked(
        allow(Condition={"StringNotEquals": {TEAM: "a"}})
    ),
    "IfExists lets a missing key pass": asked(
        allow(Condition={"StringEqualsIfExists": {TEAM: "a"}})
    ),
    "one of several values is enough": asked(
        allow(Condition={"StringEquals": {TEAM: ["a", "b"]}}), keys={TEAM: "b"}
    ),
    "Null asks for absence": asked(allow(Condition={"Null": {TEAM: "true"}})),
    "a variable is filled in": asked(OF_TEAM, keys={TEAM: "orders"}, request=OBJECT),
    "a variable's default": asked(
        allow("s3:*", f"arn:aws:s3:::reports/${{{TEAM}, 'orders'}}/*"), request=OBJECT
    ),
    "an address within a network": asked(
        allow(Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}),
        keys={"aws:SourceIp": "10.1.2.3"},
    ),
    "before a date": asked(
        allow(Condition={"DateLessThan": {"aws:CurrentTime": "2026-01-01T00:00:00Z"}}),
        keys={"aws:CurrentTime": "2025-12-31T23:59:59Z"},
    ),
    "a boundary that allows it too": asked(allow(), boundary=document(allow())),
    "the queue's own policy alone": asked(
        allow("sns:*"), resource=document(to_principal({"AWS": ROLE}))
    ),
}
DENIED = {
    "nothing said is a no": asked(allow("sns:*")),
    "an explicit deny wins": asked(allow(), deny("sqs:SendMessage")),
    "another region": asked(allow(resource=f"arn:aws:sqs:eu-west-1:{ACCOUNT}:*")),
    "NotAction that names it": asked(
        {"Effect": "Allow", "NotAction": "sqs:Send*", "Resource": "*"}
    ),
    "NotResource that names it": asked(
        {"Effect": "Allow", "Action": "sqs:*", "NotResource": QUEUE}
    ),
    "a key that is missing is not equal": asked(allow(Condition={"StringEquals": {TEAM: "a"}})),
    "IfExists does not let another value pass": asked(
        allow(Condition={"StringEqualsIfExists": {TEAM: "a"}}), keys={TEAM: "b"}
    ),
    "all conditions must hold": asked(
        allow(Condition={"StringEquals": {TEAM: "a"}, "Bool": {"aws:SecureTransport": "true"}}),
        keys={TEAM: "a", "aws:SecureTransport": "false"},
    ),
    "Null asks for presence": asked(allow(Condition={"Null": {TEAM: "false"}})),
    "a variable without a value matches nothing": asked(OF_TEAM, request=OBJECT),
    "a variable's value is no pattern": asked(OF_TEAM, keys={TEAM: "*"}, request=OBJECT),
    "a written star is no pattern": asked(
        allow("s3:*", "arn:aws:s3:::reports/${*}/*"), request=OBJECT
    ),
    "an address that must not be within": asked(
        allow(Condition={"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}),
        keys={"aws:SourceIp": "10.1.2.3"},
    ),
    "a boundary that does not": asked(allow(), boundary=document(allow("sns:*"))),
    "the queue's policy names another": asked(
        allow("sns:*"), resource=document(to_principal({"AWS": ROLE + "2"}))
    ),
    "the queue's policy denies all": asked(
        allow(), resource=document({**to_principal("*"), "Effect": "Deny"})
    ),
    "the account in a queue's policy decides nothing in its own account": asked(
        allow("sns:*"), resource=document(to_principal({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}))
    ),
}


def examples() -> Iterator[tuple[Case, str]]:
    """Yield every documented rule as a question, with AWS's answer."""
    for answer, rules in (("allowed", ALLOWED), ("denied", DENIED)):
        for name, question in rules.items():
            yield Case(name, *question), answer
