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


def when(**condition: Any) -> dict[str, Any]:
    return {"Condition": {key.replace("__", ":"): value for key, value in condition.items()}}


def to_principal(named: Any, **more: Any) -> dict[str, Any]:
    return {**allow("sqs:SendMessage", QUEUE, **more), "Principal": named}


# Name -> the role's statements, what else is asked, the request's keys, what AWS's rules answer.
EXAMPLES: Sequence[tuple[str, Sequence[Any], Mapping[str, Any], Mapping[str, Any], str]] = [
    ("nothing said is a no", [allow("sns:*")], {}, {}, "denied"),
    ("case of an action counts for nothing", [allow("SQS:sendmessage")], {}, {}, "allowed"),
    ("a wildcard in an action", [allow("sqs:Send*")], {}, {}, "allowed"),
    ("a question mark is one character", [allow("sqs:SendMessag?")], {}, {}, "allowed"),
    ("an explicit deny wins", [allow(), deny("sqs:SendMessage")], {}, {}, "denied"),
    (
        "a deny of another resource does not",
        [allow(), deny(resource=QUEUE + "2")],
        {},
        {},
        "allowed",
    ),
    ("a resource's wildcard", [allow(resource=f"arn:aws:sqs:*:{ACCOUNT}:ord*")], {}, {}, "allowed"),
    ("another region", [allow(resource=f"arn:aws:sqs:eu-west-1:{ACCOUNT}:*")], {}, {}, "denied"),
    (
        "NotAction allows the rest",
        [{"Effect": "Allow", "NotAction": "sqs:Delete*", "Resource": "*"}],
        {},
        {},
        "allowed",
    ),
    (
        "NotAction that names it",
        [{"Effect": "Allow", "NotAction": "sqs:Send*", "Resource": "*"}],
        {},
        {},
        "denied",
    ),
    (
        "NotResource that names it",
        [{"Effect": "Allow", "Action": "sqs:*", "NotResource": QUEUE}],
        {},
        {},
        "denied",
    ),
    (
        "a deny of everything but ours",
        [allow(), {"Effect": "Deny", "Action": "sqs:*", "NotResource": QUEUE}],
        {},
        {},
        "allowed",
    ),
    (
        "a key that is missing is not equal",
        [allow(**when(StringEquals={"aws:PrincipalTag/team": "a"}))],
        {},
        {},
        "denied",
    ),
    (
        "a missing key is not equal, which StringNotEquals wants",
        [allow(**when(StringNotEquals={"aws:PrincipalTag/team": "a"}))],
        {},
        {},
        "allowed",
    ),
    (
        "IfExists lets a missing key pass",
        [allow(**when(StringEqualsIfExists={"aws:PrincipalTag/team": "a"}))],
        {},
        {},
        "allowed",
    ),
    (
        "IfExists does not let another value pass",
        [allow(**when(StringEqualsIfExists={"aws:PrincipalTag/team": "a"}))],
        {},
        {"aws:PrincipalTag/team": ("b",)},
        "denied",
    ),
    (
        "one of several values is enough",
        [allow(**when(StringEquals={"aws:PrincipalTag/team": ["a", "b"]}))],
        {},
        {"aws:PrincipalTag/team": ("b",)},
        "allowed",
    ),
    (
        "all conditions must hold",
        [
            allow(
                **when(
                    StringEquals={"aws:PrincipalTag/team": "a"},
                    Bool={"aws:SecureTransport": "true"},
                )
            )
        ],
        {},
        {"aws:PrincipalTag/team": ("a",), "aws:SecureTransport": ("false",)},
        "denied",
    ),
    (
        "Null asks for absence",
        [allow(**when(Null={"aws:PrincipalTag/team": "true"}))],
        {},
        {},
        "allowed",
    ),
    (
        "Null asks for presence",
        [allow(**when(Null={"aws:PrincipalTag/team": "false"}))],
        {},
        {},
        "denied",
    ),
    (
        "a variable is filled in",
        [allow("s3:*", "arn:aws:s3:::reports/${aws:PrincipalTag/team}/*")],
        {"request": OBJECT},
        {"aws:PrincipalTag/team": ("orders",)},
        "allowed",
    ),
    (
        "a variable without a value matches nothing",
        [allow("s3:*", "arn:aws:s3:::reports/${aws:PrincipalTag/team}/*")],
        {"request": OBJECT},
        {},
        "denied",
    ),
    (
        "a variable's default",
        [allow("s3:*", "arn:aws:s3:::reports/${aws:PrincipalTag/team, 'orders'}/*")],
        {"request": OBJECT},
        {},
        "allowed",
    ),
    (
        "a variable's value is no pattern",
        [allow("s3:*", "arn:aws:s3:::reports/${aws:PrincipalTag/team}/*")],
        {"request": OBJECT},
        {"aws:PrincipalTag/team": ("*",)},
        "denied",
    ),
    (
        "a written star is no pattern",
        [allow("s3:*", "arn:aws:s3:::reports/${*}/*")],
        {"request": OBJECT},
        {},
        "denied",
    ),
    (
        "an address within a network",
        [allow(**when(IpAddress={"aws:SourceIp": "10.0.0.0/8"}))],
        {},
        {"aws:SourceIp": ("10.1.2.3",)},
        "allowed",
    ),
    (
        "an address that must not be within",
        [allow(**when(NotIpAddress={"aws:SourceIp": "10.0.0.0/8"}))],
        {},
        {"aws:SourceIp": ("10.1.2.3",)},
        "denied",
    ),
    (
        "before a date",
        [allow(**when(DateLessThan={"aws:CurrentTime": "2026-01-01T00:00:00Z"}))],
        {},
        {"aws:CurrentTime": ("2025-12-31T23:59:59Z",)},
        "allowed",
    ),
    ("a boundary that allows it too", [allow()], {"boundary": document(allow())}, {}, "allowed"),
    ("a boundary that does not", [allow()], {"boundary": document(allow("sns:*"))}, {}, "denied"),
    (
        "the queue's own policy alone",
        [allow("sns:*")],
        {"resource": document(to_principal({"AWS": ROLE}))},
        {},
        "allowed",
    ),
    (
        "the queue's policy names another",
        [allow("sns:*")],
        {"resource": document(to_principal({"AWS": ROLE + "2"}))},
        {},
        "denied",
    ),
    (
        "the queue's policy denies all",
        [allow()],
        {"resource": document({**to_principal("*"), "Effect": "Deny"})},
        {},
        "denied",
    ),
    (
        "the account in a queue's policy decides nothing in its own account",
        [allow("sns:*")],
        {"resource": document(to_principal({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}))},
        {},
        "denied",
    ),
]


def examples() -> Iterator[tuple[Case, str]]:
    """Yield every documented rule as a question, with AWS's answer."""
    for name, statements, more, keys, answer in EXAMPLES:
        others = dict(more)
        action, resource = others.pop("request", MESSAGE)
        request = PolicyRequest(
            action=action,
            resource=resource,
            principal=PRINCIPAL,
            context={key.lower(): values for key, values in keys.items()},
        )
        yield Case(name, request, Policies(identity=[document(*statements)], **others)), answer
