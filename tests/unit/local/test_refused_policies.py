"""Policies that AWS does not store, a line per case: what is changed, and what is refused of it."""

# ruff: noqa: E501 - a case is a line
from collections.abc import Mapping, Sequence
from typing import Any

from local.refusals import gate
from local.refusals.refusal import Wanted
from tests.every_case import every_case
from tests.unit.local.aws_inputs import (
    BUCKET_POLICY,
    INLINE,
    QUEUE,
    QUEUE_POLICY,
    ROLE_ARN,
    ROLES,
    TOPIC_POLICY,
    policy,
)

ATTACHMENT, KEYS = "iam/rolePolicyAttachment:RolePolicyAttachment", "kms/key:Key"
PERMISSION, TOPIC = ("lambda/permission:Permission", "arn:aws:sns:us-east-1:123456789012:alerts")
BUCKET, OBJECTS = "arn:aws:s3:::bbb", "arn:aws:s3:::bbb/*"
SERVICE = {"Service": "lambda.amazonaws.com"}
Elements = Mapping[str, Sequence[Any]]
# Of each type a statement that is taken, where it stands, and what stands beside it.
STATEMENTS: Mapping[str, tuple[Mapping[str, Any], str, Mapping[str, Any]]] = {
    INLINE: ({"Action": "s3:GetObject", "Resource": OBJECTS}, "policy", {"role": "r"}),
    ROLES: ({"Principal": SERVICE, "Action": "sts:AssumeRole"}, "assumeRolePolicy", {"name": "r"}),
    KEYS: ({"Principal": {"AWS": "123456789012"}, "Action": "kms:*", "Resource": "*"}, "policy", {}),
    QUEUE_POLICY: ({"Principal": SERVICE, "Action": "sqs:SendMessage", "Resource": QUEUE}, "policy", {"queueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/q"}),
    TOPIC_POLICY: ({"Principal": SERVICE, "Action": "sns:Publish", "Resource": TOPIC}, "policy", {"arn": TOPIC}),
    BUCKET_POLICY: ({"Principal": SERVICE, "Action": "s3:GetObject", "Resource": OBJECTS}, "policy", {"bucket": "bbb"}),
}  # fmt: skip
CODES = {
    INLINE: "MalformedPolicyDocument",
    ROLES: "MalformedPolicyDocument",
    KEYS: "MalformedPolicyDocumentException",
    QUEUE_POLICY: "InvalidAttributeValue",
    TOPIC_POLICY: "InvalidParameter",
    BUCKET_POLICY: "MalformedPolicy",
}


def codes(token: str, inputs: Mapping[str, Any]) -> list[str]:
    return [each.code for each in gate.refusals(Wanted(f"aws:{token}", "p", inputs))]


def stored(token: str, *changes: Mapping[str, Any], **whole: Any) -> list[str]:
    """Return what is refused of a policy with a statement for each change."""
    statement, key, beside = STATEMENTS[token]
    statements = [{"Effect": "Allow", **statement, **each} for each in changes]
    return codes(token, {**beside, key: policy(*statements, **whole)})


def equal(key: str) -> dict[str, Any]:
    return {"StringEquals": {key: "x"}}


# Of an element of a statement what is refused in every policy: IAM's grammar.
OF_EVERY: Elements = {
    "Actions": ["x"],
    "Action": [None],
    "Condition": [{"StringEqual": {"aws:a": "x"}}, {"Bool": {"aws:a": {}}}, {"Bool": {"a": "x"}}, [{}]],
}  # fmt: skip
REFUSED: Mapping[str, Elements] = {
    INLINE: {
        "Effect": ["allow"],
        "Action": [[], "GetObject", "s3:Get Object", "*:Get"],
        "Resource": [
            *([], "bucket", "arn:aws:s3", "arn:amazon:s3:::b", "arn:aws:s*:::b"),
            *("arn:aws:iam:us-east-1:123456789012:role/x", "arn:aws:s3:::${aws:username"),
        ],
        "NotResource": ["*"],
        "Principal": ["*"],
        "Sid": ["a-b"],
    },
    ROLES: {
        "Principal": [
            *(None, {}, {"Service": []}, {"User": "me"}, "lambda.amazonaws.com"),
            *({"Service": each} for each in ("lamda.amazonaws.com", "us-east-1.amazonaws.com")),
            *({"AWS": each} for each in ("me", "arn:aws:iam::123456789012:role/*")),
        ],
        "Action": ["sts:AsumeRole", "s3:GetObject"],
        "Resource": ["*"],
    },
    KEYS: {"Principal": [{"AWS": "12345"}, {}], "Action": ["kms:Decrypt"], "Resource": [None]},
    QUEUE_POLICY: {
        "Effect": ["allow"],
        "Principal": [None, {"AWS": "12345"}],
        "Action": ["sqs:SendMesage", ["sqs:SendMessage"] * 8],
        "Resource": [f"{QUEUE}2"],
    },
    TOPIC_POLICY: {"Effect": ["allow"], "Action": ["sns:*", "sqs:Send"], "Resource": [f"{TOPIC}2"]},
    BUCKET_POLICY: {
        "Principal": [None, {"AWS": "12345"}],
        "Action": ["s3:HeadObject", "s3:Fetch*", "s3:ListBucket", "s3:GetBucket*"],
        "Resource": [BUCKET, "arn:aws:s3:::other/*", QUEUE],
        "Condition": [equal("s3:prefx"), equal("aws:SourceBucket"), equal("s3:prefix")],
    },
}
TAKEN: Mapping[str, Elements] = {
    INLINE: {
        "Condition": [{"ForAnyValue:StringLikeIfExists": {"aws:a": ["c*"]}, "Null": {"aws:b": "true"}}],
        "Resource": [["*", "arn:aws:s3:::${aws:username}/*"]],
    },
    ROLES: {
        "Principal": [{"Service": "pods.eks.amazonaws.com"}, {"AWS": ROLE_ARN}],
        "Action": [["sts:AssumeRole", "sts:TagSession"]],
    },
    KEYS: {"Action": ["kms:Put*"]},
    QUEUE_POLICY: {
        "Resource": ["*"],
        "Principal": ["*"],
        "Condition": [{"ArnLike": {"aws:SourceArn": "x"}}],
    },
    TOPIC_POLICY: {"Resource": ["*"]},
    BUCKET_POLICY: {"Action": ["s3:Get*", "s3:*"], "Resource": [[BUCKET, OBJECTS]]},
}  # fmt: skip


def changes(elements: Elements) -> list[dict[str, Any]]:
    return [{element: each} for element, values in elements.items() for each in values]


@every_case(("token", "change"), [(t, each) for t in CODES for each in changes(OF_EVERY)])
def test_what_no_policy_may_say_is_refused(token: str, change: Mapping[str, Any]) -> None:
    assert CODES[token] in stored(token, change)


@every_case(("token", "change"), [(t, each) for t in CODES for each in changes(REFUSED[t])])
def test_a_statement_that_is_not_stored_is_refused(token: str, change: Mapping[str, Any]) -> None:
    assert CODES[token] in stored(token, change)


@every_case(("token", "change"), [(t, each) for t in CODES for each in changes(TAKEN[t])])
def test_a_statement_that_is_stored_is_taken(token: str, change: Mapping[str, Any]) -> None:
    assert stored(token, {"Sid": "One"}, {"Sid": "Another", **change}) == []


@every_case(
    ("told", "refused"),
    [
        ({"Action": "s3:ListBucket", "Resource": BUCKET, "Condition": equal("s3:prefix")}, False),
        ({"Action": "s3:ListBucket?ersions", "Resource": BUCKET}, False),
        ({"Action": ["s3:GetObject", "s3:ListBucket"]}, True),
    ],
)
def test_an_action_of_a_bucket_is_about_its_resource(
    told: Mapping[str, Any], refused: bool
) -> None:
    assert bool(stored(BUCKET_POLICY, told)) == refused


@every_case("token", STATEMENTS)
def test_what_is_no_policy_is_refused(token: str) -> None:
    key, beside = STATEMENTS[token][1:]
    for document in ("{", "[]", '"x"'):
        assert CODES[token] in codes(token, {**beside, key: document})
    assert CODES[token] in stored(token, {}, Version="2013-10-17")
    if token != KEYS:
        assert CODES[token] in stored(token)
        assert CODES[token] in stored(token, {}, Statements=[])
    if token not in {KEYS, BUCKET_POLICY}:
        assert CODES[token] in stored(token, {"Sid": "One"}, {"Sid": "One"})


def test_a_queue_has_twenty_statements() -> None:
    statements = [{"Sid": f"S{number}"} for number in range(21)]
    assert stored(QUEUE_POLICY, *statements[1:]) == []
    assert "InvalidAttributeValue" in stored(QUEUE_POLICY, *statements)


@every_case(
    ("token", "inputs", "code"),
    [
        (ATTACHMENT, {"role": "r", "policyArn": "arn:aws:iam::aws:policy/AmazonNoSuch"}, "NoSuchEntity"),
        (ATTACHMENT, {"role": "r", "policyArn": "arn:aws:iam::aws:policy/AWSLambdaBasicExecutionRole"}, "NoSuchEntity"),
        (ATTACHMENT, {"role": "r", "policyArn": "arn:aws:iam::12345:policy/mine"}, "InvalidInput"),
        (ATTACHMENT, {"role": "r", "policyArn": "arn:aws:iam::aws:policy/ReadOnlyAccess"}, ""),
        (PERMISSION, {"function": "f", "action": "lambda:InvokeFunction", "principal": "event.amazonaws.com"}, "InvalidParameterValueException"),
        (PERMISSION, {"function": "f", "action": "lambda:InvokeFunction", "principal": "events.amazonaws.com"}, ""),
    ],
)  # fmt: skip
def test_who_and_what_a_policy_names_is_there(
    token: str, inputs: Mapping[str, Any], code: str
) -> None:
    assert codes(token, inputs)[:1] == ([code] if code else [])


@every_case(
    ("token", "operation"),
    [("iam/policy:Policy", "CreatePolicy"), (ROLES, "CreateRole"), (INLINE, "PutRolePolicy")],
)
def test_a_policy_is_refused_once_by_the_operation_that_stores_it(
    token: str, operation: str
) -> None:
    key = "assumeRolePolicy" if token == ROLES else "policy"
    inputs = {"role": "r"} if token == INLINE else {"name": "p"}
    found = gate.refusals(Wanted(f"aws:{token}", "p", {**inputs, key: '{"Version": "2012-10-17"}'}))
    assert [(each.operation, each.at) for each in found] == [(operation, key)]
