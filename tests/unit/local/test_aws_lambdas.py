"""The twin's Lambda: what its roles must allow, and the fronts before functions and buckets."""

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.awslambda.exceptions import InvalidParameterValueException
from moto.s3.models import FakeBucket

from local.aws import function_urls, lambdas
from local.aws.runtime import Outcome
from local.environment import ACCOUNT, REGION
from local.iam.guard import Guard, judge_buckets
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


def test_lambda_refuses_a_role_in_its_own_words(account: Account) -> None:
    sentence = "The provided execution role does not have permissions to call ReceiveMessage on SQS"
    with pytest.raises(InvalidParameterValueException, match=sentence):
        lambdas.check_role(given(account, {}), ROLE, "tick", DONE["a queue feeds it"][0])


def test_a_bucket_that_denies_what_comes_without_tls_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeBucket, "get_permission", FakeBucket.get_permission)
    judge_buckets()
    without_tls = {"Bool": {"aws:SecureTransport": "false"}}
    denied = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Condition": without_tls}
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="reports")
        s3.put_object(Bucket="reports", Key="k", Body=b"x")
        statement = {**denied, "Resource": ["arn:aws:s3:::reports", "arn:aws:s3:::reports/*"]}
        s3.put_bucket_policy(Bucket="reports", Policy=json.dumps({"Statement": [statement]}))
        assert s3.get_object(Bucket="reports", Key="k")["Body"].read() == b"x"


@dataclass
class FakeFunctions:
    """Functions that answer as a test says, and keep what they were sent."""

    payload: bytes = b'{"statusCode": 202, "body": "taken"}'
    error_type: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    def invoke(self, function: object, payload: bytes) -> Outcome:
        self.events.append(json.loads(payload))
        return Outcome(request_id="r", payload=self.payload, error_type=self.error_type)


OPEN = [{"Action": action, "Principal": "*"} for action in sorted(function_urls.URL_ACTIONS)]


def call(
    monkeypatch: pytest.MonkeyPatch,
    functions: FakeFunctions,
    *,
    statements: list[dict[str, Any]] | None = None,
    url: object = "configured",
    body: bytes = b'{"a": 1}',
    content_type: str = "application/json",
) -> tuple[int, bytes]:
    deployed = SimpleNamespace(
        url_config=url,
        policy=SimpleNamespace(statements=OPEN if statements is None else statements),
    )
    monkeypatch.setattr(
        function_urls, "find", lambda arn: deployed if arn.endswith(":webhook") else None
    )
    environ = {
        "PATH_INFO": "/stillwater/function-url/webhook/hook",
        "REQUEST_METHOD": "POST",
        "QUERY_STRING": "a=b",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_X_STILLWATER_TOKEN": "t",
        "wsgi.input": io.BytesIO(body),
    }
    answer = function_urls.answer(functions, environ)  # type: ignore[arg-type]
    return answer.status_code, answer.data


def test_a_body_that_is_no_text_comes_as_base64(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = FakeFunctions()
    call(monkeypatch, functions, body=b"\xff\x00", content_type="application/octet-stream")
    (event,) = functions.events
    assert event["isBase64Encoded"]
    assert base64.b64decode(event["body"]) == b"\xff\x00"


@pytest.mark.parametrize("missing", sorted(function_urls.URL_ACTIONS))
def test_without_both_permissions_the_url_is_closed(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    functions = FakeFunctions()
    statements = [each for each in OPEN if each["Action"] != missing]
    status, _ = call(monkeypatch, functions, statements=statements)
    assert status == 403
    assert functions.events == []


def test_a_function_without_a_url_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, FakeFunctions(), url=None)[0] == 404


def test_a_function_that_fails_is_a_bad_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, FakeFunctions(error_type="Unhandled"))[0] == 502


def test_an_answer_without_a_status_is_the_body_of_a_200(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, FakeFunctions(payload=b'{"ok": true}')) == (200, b'{"ok": true}')
