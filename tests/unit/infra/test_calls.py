"""Each function may make the calls its code makes, of the resources it knows, and no other.

What the code calls is derived from it (calls.py); what Lambda itself calls with a function's role,
from how the function is wired; of which resources, from the settings it is told.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping

import pytest

from tests.unit.infra import calls
from tests.unit.infra.programs import run_layers
from tests.unit.infra.recording import Recorded, Resource
from tests.unit.infra.variants import VARIANTS

FUNCTION = "lambda/function:Function"
MAPPING = "lambda/eventSourceMapping:EventSourceMapping"
POLICY = "iam/rolePolicy:RolePolicy"
# What Lambda calls with a function's role -> when it does.
LOGGING = {"logs:CreateLogStream", "logs:PutLogEvents"}
POLLING = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
IN_A_VPC = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}


@pytest.fixture(scope="module", params=["asg", "direct", "karpenter"])
def recorded(request: pytest.FixtureRequest, cache: None) -> Mapping[str, Recorded]:
    return run_layers(VARIANTS[request.param])


# By role alone: the shape of a cluster changes no code.
called = functools.cache(calls.of_role)


def functions(layers: Mapping[str, Recorded]) -> dict[str, tuple[Recorded, Resource]]:
    """Return the functions by role, each with the layer it is in."""
    return {
        each.inputs["handler"].split(".")[1]: (layer, each)
        for layer in layers.values()
        for each in layer.of(FUNCTION)
    }


def granted(layer: Recorded, function: Resource) -> set[str]:
    """Return what the policies of a function's role allow."""
    role = function.inputs["role"].rpartition("/")[2]
    return {
        action
        for policy in layer.of(POLICY)
        if policy.inputs["role"] == role
        for statement in policy.policy_statements
        for action in statement["Action"]
    }


def for_lambda(layer: Recorded, function: Resource) -> set[str]:
    """Return what Lambda itself needs to run a function as it is wired."""
    fed = [m for m in layer.of(MAPPING) if m.inputs["functionName"] == function.inputs["name"]]
    needed = set(LOGGING)
    if any(":sqs:" in m.inputs["eventSourceArn"] for m in fed):
        needed |= POLLING
    if function.inputs.get("vpcConfig"):
        needed |= IN_A_VPC
    if function.inputs.get("deadLetterConfig"):
        needed |= {"sqs:SendMessage"}
    return needed


def test_a_role_allows_what_its_function_calls_and_nothing_else(
    recorded: Mapping[str, Recorded],
) -> None:
    for role, (layer, function) in functions(recorded).items():
        needed = called(role) | for_lambda(layer, function)
        allowed = granted(layer, function)
        assert needed - allowed == set(), f"λ {role} is denied what it calls"
        assert allowed - needed == set(), f"λ {role} may do what it never does; take it away"


def entry_points() -> set[str]:
    return {
        name.partition(".")[2]
        for name, module in calls.modules().items()
        if "handler" in module.functions
    }


def test_there_is_a_function_for_every_entry_point(recorded: Mapping[str, Recorded]) -> None:
    assert entry_points() == functions(recorded).keys()


def test_no_call_hides_behind_a_client_under_another_name() -> None:
    assert calls.unattributed() == []


# The derivation itself.


def derived(source: str, monkeypatch: pytest.MonkeyPatch, **more: str) -> set[str]:
    """Return what is derived from sources in place of handlers/."""
    named = {"handlers.example": source, **{f"handlers.{k}": v for k, v in more.items()}}
    read = {name: calls._read(name, ast.parse(text)) for name, text in named.items()}
    monkeypatch.setattr(calls, "modules", lambda: read)
    return calls.of_role("example")


ADAPTER = """
import boto3
class Cloud:
    def __init__(self, client=None):
        self._ec2 = client or boto3.client("ec2")
    def find(self):
        return self._ec2.get_paginator("describe_volumes").paginate()
    def never(self):
        self._ec2.terminate_instances()
class Unused:
    def find(self):
        boto3.client("s3").list_buckets()
def helper():
    return Cloud()
"""


def test_calls_are_followed_through_functions_methods_and_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = """
from handlers.adapter import helper
def handler(event, context):
    return work(event)
def work(event):
    return helper().find()
"""
    assert derived(source, monkeypatch, adapter=ADAPTER) == {"ec2:DescribeVolumes"}


def test_a_method_that_is_passed_on_counts_as_called(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
from handlers.adapter import Cloud as Sky
def handler(event, context):
    cloud = Sky()
    return [later() for later in (cloud.never,)]
"""
    assert derived(source, monkeypatch, adapter=ADAPTER) == {"ec2:TerminateInstances"}


def test_a_class_that_nobody_makes_calls_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
from handlers.adapter import helper
def handler(event, context):
    return event
"""
    assert derived(source, monkeypatch, adapter=ADAPTER) == set()
