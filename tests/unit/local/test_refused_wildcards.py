"""The gate: actions with wildcards of a bucket's policy, and the network plugin's settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.refusals import gate
from local.refusals.refusal import Wanted
from tests.unit.local.aws_inputs import ADDON, BUCKET_POLICY
from tests.unit.local.refused_policies import LISTED, on_a_bucket

OF_BUCKET, OF_OBJECTS = LISTED, f"{LISTED}/*"


def refusals(token: str, inputs: Mapping[str, Any]) -> list[str]:
    return [each.message for each in gate.refusals(Wanted(f"aws:{token}", "one", inputs))]


@pytest.mark.parametrize(
    ("action", "resource", "said"),
    [
        ("s3:Get*", OF_OBJECTS, ""),
        ("s3:*", OF_BUCKET, ""),
        ("s3:GetObject*", OF_OBJECTS, ""),
        ("s3:GetBucket*", OF_BUCKET, ""),
        ("s3:Get*", OF_BUCKET, ""),
        ("s3:ListBucket?ersions", OF_BUCKET, ""),
        ("s3:Fetch*", OF_OBJECTS, "invalid action"),
        ("s3:*Objekt*", OF_OBJECTS, "invalid action"),
        ("s3:GetObject*", OF_BUCKET, "does not apply"),
        ("s3:GetBucket*", OF_OBJECTS, "does not apply"),
    ],
)
def test_an_action_with_wildcards_must_match_one_that_is_about_the_resource(
    action: str, resource: str, said: str
) -> None:
    found = refusals(BUCKET_POLICY, on_a_bucket(Action=action, Resource=resource))
    assert bool(found) == bool(said), found
    assert all(said in message for message in found)


def network(told: object) -> list[str]:
    written = told if isinstance(told, str) else json.dumps(told)
    inputs = {"clusterName": "c", "addonName": "vpc-cni", "addonVersion": "v1.22.4-eksbuild.3"}
    return refusals(ADDON, {**inputs, "configurationValues": written})


@pytest.mark.parametrize(
    "told",
    [
        {"env": {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}},
        {"enableNetworkPolicy": "true", "nodeAgent": {"enablePolicyEventLogs": "true"}},
        {"eniConfig": {"create": True, "region": "eu-north-1", "subnets": {"a": {"id": "s"}}}},
        "env:\n  MINIMUM_IP_TARGET: '10'\n",
    ],
)
def test_what_the_network_plugin_knows_is_taken(told: object) -> None:
    assert network(told) == []


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ({"env": {"ENABLE_PREFIX_DELEGATON": "true"}}, "$.env.ENABLE_PREFIX_DELEGATON"),
        ({"environment": {"WARM_IP_TARGET": "1"}}, "$.environment"),
        ({"enableNetworkPolicy": True}, "$.enableNetworkPolicy"),
        ({"env": {"WARM_IP_TARGET": 5}}, "$.env.WARM_IP_TARGET"),
        ({"eniConfig": {"subnet": {}}}, "$.eniConfig.subnet"),
    ],
)
def test_what_it_does_not_know_is_refused_by_its_key(told: object, at: str) -> None:
    (message,) = network(told)
    assert at in message
