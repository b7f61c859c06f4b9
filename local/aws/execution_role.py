"""Asks IAM for what Lambda itself does in the name of a function's role: polls, logs, interfaces.

moto does all of it without asking, so a role that lacks the right would work here alone.
Source: the managed policies AWSLambdaSQSQueueExecutionRole, AWSLambdaVPCAccessExecutionRole and
AWSLambdaBasicExecutionRole. Log groups are made beforehand, so that nobody needs CreateLogGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from moto.awslambda.exceptions import InvalidParameterValueException

from local.iam.requests import Call

SERVICES = {"ec2": "EC2", "sqs": "SQS"}
POLLING = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
# What names an interface that Lambda has not made yet.
AN_INTERFACE = "eni-0"
TENDING = ("DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses")


class Guard(Protocol):
    """Who judges."""

    def role_may(self, role_arn: str, session: str, call: Call) -> bool:
        """Say whether a service may make a call in a role's name."""


def polling(queue_arn: str) -> Iterator[Call]:
    """Yield what Lambda does at a queue that feeds a function."""
    region, account, name = queue_arn.split(":")[3:6]
    url = f"https://sqs.{region}.amazonaws.com/{account}/{name}"
    for operation in POLLING:
        yield _call("sqs", operation, region, QueueUrl=url)


def logging_of(function_name: str, region: str) -> Iterator[Call]:
    """Yield what Lambda does with what a function writes."""
    where = {"logGroupName": f"/aws/lambda/{function_name}", "logStreamName": "[$LATEST]"}
    for operation in ("CreateLogStream", "PutLogEvents"):
        yield _call("logs", operation, region, **where)


def joining(network: Mapping[str, Any], region: str) -> Iterator[Call]:
    """Yield what Lambda does to put a function into the subnets of a VPC."""
    groups = list(network.get("SecurityGroupIds") or [])
    for subnet in network.get("SubnetIds") or []:
        yield _call("ec2", "CreateNetworkInterface", region, SubnetId=subnet, Groups=groups)
    if network.get("SubnetIds"):
        yield _call("ec2", "DescribeNetworkInterfaces", region)
        yield _call("ec2", "DescribeSubnets", region)
        for operation in TENDING:
            yield _call("ec2", operation, region, NetworkInterfaceId=AN_INTERFACE)


def first_refused_call(
    guard: Guard, role_arn: str, function_name: str, calls: Iterable[Call]
) -> Call | None:
    """Return the first call that a function's role does not allow; the journal has it too."""
    return next((c for c in calls if not guard.role_may(role_arn, function_name, c)), None)


def check(guard: Guard, role_arn: str, function_name: str, calls: Iterable[Call]) -> None:
    """Raise Lambda's own refusal of a role that lacks a right it needs."""
    missing = first_refused_call(guard, role_arn, function_name, calls)
    if missing is not None:
        raise InvalidParameterValueException(
            f"The provided execution role does not have permissions to call {missing.operation} "
            f"on {SERVICES[missing.service]}"
        )


def _call(service: str, operation: str, region: str, /, **parameters: Any) -> Call:
    return Call(service=service, operation=operation, region=region, parameters=parameters)
