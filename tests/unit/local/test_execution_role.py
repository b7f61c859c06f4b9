"""What Lambda does in the name of a function's role is judged, and refused in Lambda's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws
from moto.awslambda.exceptions import InvalidParameterValueException

from local.aws import lambdas
from local.environment import ACCOUNT, REGION
from local.iam.guard import Guard
from tests.unit.local.iam_account import Account

ROLE = f"arn:aws:iam::{ACCOUNT}:role/tick"
QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
INTERFACES = f"arn:aws:ec2:{REGION}:{ACCOUNT}:*/*"
NETWORK = {"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
# What is done -> its calls, and a statement for each right they need.
DONE: dict[str, tuple[list[Any], dict[str, str]]] = {
    "a queue feeds it": (
        list(lambdas.polling_calls(QUEUE)),
        {f"sqs:{each}": QUEUE for each in lambdas.POLLING},
    ),
    "it writes a log": (
        list(lambdas.logging_calls("tick", REGION)),
        {
            f"logs:{each}": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/tick:*"
            for each in ("CreateLogStream", "PutLogEvents")
        },
    ),
    "it joins a subnet": (
        list(lambdas.joining_calls(NETWORK, REGION)),
        {
            "ec2:CreateNetworkInterface": INTERFACES,
            "ec2:DescribeNetworkInterfaces": "*",
            "ec2:DescribeSubnets": "*",
            **{f"ec2:{each}": INTERFACES for each in lambdas.TENDING},
        },
    ),
}


@pytest.fixture
def account() -> Iterator[Account]:
    with mock_aws():
        yield Account()


def given(account: Account, rights: dict[str, str]) -> Guard:
    statements = [{"Effect": "Allow", "Action": a, "Resource": r} for a, r in rights.items()]
    account.session("tick", *statements)
    return account.guard


@pytest.mark.parametrize("done", DONE)
def test_each_right_that_is_taken_out_is_missed_and_named(account: Account, done: str) -> None:
    calls, rights = DONE[done]
    assert lambdas.first_refused_call(given(account, rights), ROLE, "tick", calls) is None
    for right in rights:
        left = {action: resource for action, resource in rights.items() if action != right}
        missing = lambdas.first_refused_call(given(account, left), ROLE, "tick", calls)
        assert missing is not None
        assert right.endswith(f":{missing.operation}")
        assert account.facts[-1]["action"] == right
        assert account.facts[-1]["allowed"] is False


@pytest.mark.parametrize(
    ("done", "right", "words"),
    [
        ("a queue feeds it", "sqs:ReceiveMessage", "call ReceiveMessage on SQS"),
        ("it joins a subnet", "ec2:CreateNetworkInterface", "call CreateNetworkInterface on EC2"),
    ],
)
def test_lambda_refuses_a_role_in_its_own_words(
    account: Account, done: str, right: str, words: str
) -> None:
    calls, rights = DONE[done]
    left = {action: resource for action, resource in rights.items() if action != right}
    sentence = f"The provided execution role does not have permissions to {words}"
    with pytest.raises(InvalidParameterValueException, match=sentence):
        lambdas.check_role(given(account, left), ROLE, "tick", calls)


def test_nothing_is_asked_while_iam_is_off(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STILLWATER_IAM", "off")
    guard = Guard(lambda *_, **__: None)
    assert lambdas.first_refused_call(guard, ROLE, "tick", DONE["a queue feeds it"][0]) is None
