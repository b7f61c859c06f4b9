"""A right taken out of a policy, one at a time: the call that needed it is refused and named.

And the other way round: a right that no call needs is a finding. By the twin's own judge, which
tests/integration/lint holds against an independent one.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from local.iam.accounts import Caller
from local.iam.guard import context
from local.iam.policy import Policies, PolicyRequest, PolicyVerdict, Principal, decide
from local.iam.requests import Call
from local.iam.resources import needs
from tests.unit.infra import calls
from tests.unit.infra.recording import ACCOUNT, Recorded
from tests.unit.infra.rights import CALLS, FUNCTIONS, GROUP, KEY, TAGS, look
from tests.unit.infra.test_calls import IN_A_VPC
from tests.unit.infra.test_volumes import operations
from tests.unit.infra.variants import recorded

POLICY = "iam/rolePolicy:RolePolicy"
RBAC = "rbac.authorization.k8s.io/v1"


class Described:
    """The account as rights.py describes it."""

    def group_arn(self, region: str, name: str) -> str:
        group = f"autoScalingGroup:0a1b2c3d:autoScalingGroupName/{name}"
        return f"arn:aws:autoscaling:{region}:{ACCOUNT}:{group}"

    def group_of(self, region: str, instance_id: str) -> str:
        return GROUP

    def secret_arn(self, region: str, name_or_arn: str) -> str:
        return f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:{name_or_arn}-AbCdEf"

    def role_of_profile(self, name: str) -> str:
        return f"arn:aws:iam::{ACCOUNT}:role/{name}"

    def hash_key(self, region: str, table: str, index: str) -> str:
        return "open" if index else "pk"

    def key_of_topic(self, region: str, topic_arn: str) -> str:
        return KEY

    def tags(self, region: str, resource: str) -> Mapping[str, str]:
        return TAGS.get(resource.rpartition("/")[2], {})


OF_THE_ACCOUNT = {
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "kms:*",
            "Resource": "*",
        }
    ]
}
CALLER = Caller(
    principal=Principal(
        arn=f"arn:aws:sts::{ACCOUNT}:assumed-role/judged/test",
        account=ACCOUNT,
        role_arn=f"arn:aws:iam::{ACCOUNT}:role/judged",
    ),
    user_id="AROAJUDGED:test",
    role="judged",
)


@pytest.fixture(scope="module")
def documents(layers: Mapping[str, Recorded]) -> Mapping[str, dict[str, Any]]:
    """Every role's own policy, of a cluster with groups and of one with Karpenter."""
    karpenter = recorded("karpenter")
    both = [*karpenter.values(), *layers.values()]
    return {each.name: each.policy for layer in both for each in layer.of(POLICY)}


def calls_of(name: str) -> Iterator[Call]:
    """Yield a role's calls: those of the table, and what its function's code only looks at."""
    yield from CALLS[name]
    if name in FUNCTIONS:
        for action in sorted(calls.of_role(FUNCTIONS[name].name)):
            service, operation = action.split(":")
            if operation.startswith("Describe"):
                yield from look(service, operation)


@functools.cache
def requests(name: str) -> tuple[PolicyRequest, ...]:
    return tuple(
        PolicyRequest(
            action=need.action,
            resource=need.resource,
            principal=CALLER.principal,
            context=context(need, CALLER, call.region),
        )
        for call in calls_of(name)
        for need in needs(call, Described())
    )


def asked(document: Mapping[str, Any], request: PolicyRequest) -> Policies:
    """Return what is asked: a key's own policy leaves it to those of the account, as ours does."""
    key = OF_THE_ACCOUNT if request.resource == KEY else None
    return Policies(identity=[document], resource=key)


def judged(document: Mapping[str, Any], request: PolicyRequest) -> PolicyVerdict:
    return decide(request, asked(document, request))


def without(document: Mapping[str, Any], right: str) -> dict[str, Any]:
    """Return a policy that lacks one action everywhere."""
    left = [
        {**each, "Action": [action for action in each["Action"] if action != right]}
        for each in grants(document)
    ]
    return {**document, "Statement": [each for each in left if each["Action"]]}


def grants(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["Statement"] if each["Effect"] == "Allow"]


def rights(document: Mapping[str, Any]) -> set[str]:
    return {action for each in grants(document) for action in each["Action"]}


def held(documents: Mapping[str, Any], action: str) -> list[str]:
    return [name for name, document in documents.items() if action in rights(document)]


def test_no_role_may_write_what_functions_are_told(documents: Mapping[str, Any]) -> None:
    writing = held(documents, "dynamodb:PutItem")
    assert len(writing) > 5
    table = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/test-orders-incidents"
    (asked_for,) = {
        each.resource
        for name in writing
        for each in requests(name)
        if each.action == "dynamodb:PutItem"
    }
    assert asked_for == table
    for name in writing:
        for key in ("settings#loop-0123", "settings#"):
            request = PolicyRequest(
                action="dynamodb:PutItem",
                resource=table,
                principal=CALLER.principal,
                context={"dynamodb:leadingkeys": [key]},
            )
            assert not judged(documents[name], request).allowed, (name, key)


def test_a_functions_own_code_changes_no_interface(documents: Mapping[str, Any]) -> None:
    tending = held(documents, "ec2:DeleteNetworkInterface")
    assert len(tending) > 5
    for name in tending:
        called = f"test-orders-{FUNCTIONS[name].name}"
        arn = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:{called}"
        for request in requests(name):
            by_code = {**request.context, "lambda:sourcefunctionarn": [arn]}
            verdict = judged(documents[name], replace(request, context=by_code))
            assert verdict.allowed is (request.action not in IN_A_VPC), request.action


# Why a right to patch goes without an admission policy; each is of one object by name or of a part.
UNLIMITED = {
    "secrets": "The gate's own certificate, by name.",
    "validatingwebhookconfigurations": "The gate's own, by name; policies do not apply to them.",
    "evictions/status": "The gate's answer is all that such a status holds.",
}


def test_whoever_may_patch_an_object_is_held_to_fields_of_its_own(cache: None) -> None:
    patched = set()
    applying = operations(mode="apply", max_monthly_increase_usd=50)
    described = [*recorded("certificates").values(), *recorded("karpenter").values(), applying]
    for layer in described:
        bound = {
            each.inputs["spec"]["policyName"]
            for each in layer.of("admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding")
            if each.inputs["spec"]["validationActions"] == ["Deny"]
        }
        for role in [*layer.of(f"{RBAC}:ClusterRole"), *layer.of(f"{RBAC}:Role")]:
            for rule in role.inputs["rules"]:
                if {"patch", "update", "*"} & set(rule["verbs"]):
                    patched |= set(rule["resources"])
                    for resource in set(rule["resources"]) - UNLIMITED.keys():
                        assert f"{role.inputs['metadata']['name']}-{resource}" in bound
    assert {"nodes", "pods", "poddisruptionbudgets", "kafkanodepools"} <= patched
