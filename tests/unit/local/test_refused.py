"""What the derived oracles and the checks in code refuse, a line per case.

The rows of the table bring their own examples: test_refusals.
"""

# ruff: noqa: E501 - a case is a line
import base64
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from local.refusals import checks, gate
from local.refusals.refusal import Wanted
from tests.every_case import every_case
from tests.unit.local import aws_inputs as aws

VALIDATION, VALUE = "ValidationException", "InvalidParameterValueException"
MISTYPED = "Incorrect attribute value type"
EKS, TAGGING = "InvalidParameterException", "InvalidParameterException"
TRUST = aws.policy(
    {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
)


def inputs(told: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    return {**told, **changed}


def item(told: object, **more: Any) -> dict[str, Any]:
    return {"tableName": "t", "hashKey": "pk", "item": json.dumps(told), **more}


def calling(action: str, **told: Any) -> dict[str, Any]:
    arn = f"arn:aws:scheduler:::aws-sdk:{action}"
    return inputs(
        aws.SCHEDULED, target={"arn": arn, "roleArn": aws.ROLE_ARN, "input": json.dumps(told)}
    )


def series(**changed: Any) -> dict[str, Any]:
    metric = {"namespace": "n", "metricName": "m", "stat": "Sum", "period": 300}
    return inputs(
        aws.ALARM,
        **{"metricQueries": [{"id": "m1", "metric": metric, "returnData": True}]} | changed,
    )


def endpoint(service: str) -> dict[str, Any]:
    named = f"com.amazonaws.us-east-1.{service}"
    return {"vpcId": "vpc-1", "serviceName": named, "vpcEndpointType": "Interface"}


def tagged(count: int) -> dict[str, str]:
    return {f"t{number}": "x" for number in range(count)}


def variables(size: int) -> dict[str, Any]:
    return inputs(aws.FUNCTION, environment={"variables": {"AB": "x" * size}})


OBJECT = {"bucket": "b-b", "key": "k", "content": "x"}
ARM = "AL2023_ARM_64_STANDARD"
INDEXED = inputs(aws.TABLE, attributes=[{"name": "pk", "type": "S"}, {"name": "a", "type": "S"}])
# What is refused, with its code, and the nearest that is taken.
CASES: Mapping[str, tuple[str, Mapping[str, Any], str, Mapping[str, Any]]] = {
    # The provider's SDK and its documentation.
    "no window": (aws.SCHEDULE, {**aws.SCHEDULED, "flexibleTimeWindow": None}, "Missing required argument", aws.SCHEDULED),
    "a key that there is not": (aws.QUEUES, {"name": "q", "delay": 1}, "Unsupported argument", {"name": "q"}),
    "half a second": (aws.QUEUES, {"name": "q", "delaySeconds": 0.5}, MISTYPED, {"name": "q", "delaySeconds": 5}),
    "a number in words": (aws.GROUPS, inputs(aws.SCALING, maxSize="two"), MISTYPED, inputs(aws.SCALING, maxSize="2")),
    "a boolean that is a word": (aws.QUEUES, {"name": "q", "fifoQueue": "sure"}, MISTYPED, {"name": "q", "fifoQueue": "false"}),
    # botocore's models of the calls, and the sets of characters that EC2 documents.
    "a word of no list": (aws.TABLES, inputs(aws.TABLE, billingMode="FREE"), VALIDATION, aws.TABLE),
    "an apostrophe": (aws.INGRESS, inputs(aws.RULE, description="a rule's"), "InvalidParameterValue", inputs(aws.RULE, description="a rule")),
    "a type that EC2 does not have": (aws.TEMPLATE, aws.template(instanceType="m7i.hugest"), "InvalidParameterValue", aws.template(instanceType="m7i.large")),
    # CloudFormation's schemas, as cfn-lint keeps them.
    "sixteen minutes": (aws.QUEUES, {"name": "q", "delaySeconds": 901}, "InvalidAttributeValue", {"name": "q", "delaySeconds": 900}),
    # Tags.
    "51 tags": (aws.QUEUES, {"name": "q", "tags": tagged(51)}, "TooManyTagsException", {"name": "q", "tags": tagged(50)}),
    "11 tags of an object": ("s3/bucketObjectv2:BucketObjectv2", inputs(OBJECT, tags=tagged(11)), "BadRequest", inputs(OBJECT, tags=tagged(10))),
    "a tag of AWS's own": (aws.QUEUES, {"name": "q", "tags": {"aws:a": "b"}}, TAGGING, {"name": "q", "tags": {"a": "b"}}),
    "a tag of two lines": (aws.QUEUES, {"name": "q", "tags": {"a": "a\nb"}}, TAGGING, {"name": "q", "tags": {"a": "a b"}}),
    "tags that differ by case": (aws.ROLES, {"name": "r", "assumeRolePolicy": TRUST, "tags": {"a": "1", "A": "1"}}, "InvalidInput", {"name": "r", "assumeRolePolicy": TRUST}),
    # Checks in code.
    "an environment of 4 KB": (aws.FUNCTIONS, variables(4088), VALUE, variables(4087)),
    "user data of 17 KB": (aws.TEMPLATE, aws.template(userData=base64.b64encode(b"x" * 16_385).decode()), "InvalidUserData.Malformed", aws.template(userData=base64.b64encode(b"x" * 16_384).decode())),
    "user data in no base64": (aws.TEMPLATE, aws.template(userData="#!"), "InvalidUserData.Malformed", aws.template()),
    "more than a day": (aws.ALARM_TYPE, series(evaluationPeriods=289), "ValidationError", series(evaluationPeriods=288)),
    "no series returned": (aws.ALARM_TYPE, inputs(aws.ALARM, metricQueries=[{"id": "m1", "expression": "SUM(METRICS())"}]), "ValidationError", aws.ALARM),
    "an attribute that no key uses": (aws.TABLES, INDEXED, VALIDATION, inputs(INDEXED, globalSecondaryIndexes=[{"name": "by-a", "hashKey": "a", "projectionType": "ALL"}])),
    "an item without its key": (aws.ITEM, item({"a": {"S": "x"}}), VALIDATION, item({"pk": {"S": "x"}})),
    "a key that is a boolean": (aws.ITEM, item({"pk": {"BOOL": True}}), VALIDATION, item({"pk": {"N": "1"}})),
    "a key of 2,049 bytes": (aws.ITEM, item({"pk": {"S": "k" * 2049}}), VALIDATION, item({"pk": {"S": "k" * 2048}})),
    # The quotes within a text are a byte each, however the JSON around it writes them.
    "an item of 400 KB": (aws.ITEM, item({"pk": {"S": "k"}, "t": {"S": '"' * 409_597}}), VALIDATION, item({"pk": {"S": "k"}, "t": {"S": '"' * 409_596}})),
    "Intel on Graviton's image": (aws.NODE_GROUP, inputs(aws.NODES, amiType=ARM, instanceTypes=["m7i.large"]), EKS, inputs(aws.NODES, amiType=ARM, instanceTypes=["m7g.large"])),
    "an endpoint of no service": (aws.ENDPOINT, endpoint("autoscale"), "InvalidServiceName", endpoint("autoscaling")),
    "a call of no service": (aws.SCHEDULE, calling("emrless:startJobRun"), VALIDATION, calling("sqs:purgeQueue", QueueUrl="https://q")),
    "a call that only reads": (aws.SCHEDULE, calling("sqs:getQueueUrl", QueueName="q"), VALIDATION, calling("ec2:stopInstances", InstanceIds=["i-0123456789abcdef0"])),
    "a call that lacks something": (aws.SCHEDULE, calling("sqs:sendMessage", MessageBody="x"), VALIDATION, calling("sqs:sendMessage", MessageBody="x", QueueUrl="https://q")),
    "a call with a parameter that there is not": (aws.SCHEDULE, calling("sqs:purgeQueue", QueueUrl="https://q", Bodies=1), VALIDATION, calling("emrserverless:startJobRun", ApplicationId="a", ExecutionRoleArn=aws.ROLE_ARN)),
    "a value that nothing can read": (aws.GROUPS, inputs(aws.SCALING, minSize=[]), MISTYPED, aws.SCALING),
    "an expression without end": (aws.ALARM_TYPE, inputs(aws.ALARM, metricQueries=[{"id": "m1", "expression": "(" * 2000, "returnData": True}]), "ValidationError", aws.ALARM),
    "a type that nobody has looked at": ("sfn/stateMachine:StateMachine", {}, "UnknownResourceType", {}),
}  # fmt: skip


def refusals(token: str, told: Mapping[str, Any]) -> list[str]:
    given = {key: value for key, value in told.items() if value is not None}
    found = gate.refusals(Wanted(f"aws:{token}", "seeded", given))
    assert all("for seeded" in each.sentence for each in found)
    return [each.code for each in found]


@every_case("case", CASES)
def test_what_is_beyond_is_refused_with_its_code(case: str) -> None:
    token, beyond, code, _ = CASES[case]
    assert code in refusals(token, beyond)


@every_case("case", [case for case in CASES if CASES[case][3]])
def test_the_nearest_that_is_within_is_taken(case: str) -> None:
    token, _, _, within = CASES[case]
    assert refusals(token, within) == []


@pytest.mark.parametrize(
    ("limit", "code"), [("ZIP_BYTES", "RequestEntityTooLargeException"), ("UNZIPPED_BYTES", VALUE)]
)
def test_a_function_whose_code_is_too_large_is_refused(
    limit: str, code: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "function.zip", "w") as packed:
        packed.writestr("handler.py", "x" * 100)
    told = inputs(aws.FUNCTION, code=str(tmp_path / "function.zip"))
    assert refusals(aws.FUNCTIONS, told) == []
    with mock.patch.object(checks, limit, 50):
        assert code in refusals(aws.FUNCTIONS, told)
