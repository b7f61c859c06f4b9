"""Dashboards, event patterns and what is beside them: what is refused beyond the models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from local.refusals.model import words_of
from tests.unit.local.aws_inputs import ADDED, ADDON, GROUPS, OF_NODES, RULE_TARGET, TABLES
from tests.unit.local.seeded_inputs import LOG_GROUP, SCALING, TABLE, document
from tests.unit.local.test_refused_parts import (
    DASHBOARD,
    NODE_GROUP,
    QUEUE,
    ROLE_ARN,
    RULE_TYPE,
)

BODY, PATTERN = "InvalidParameterInput", "InvalidEventPatternException"
PARAMETER = "InvalidParameterException"


def board(*widgets: Any) -> Mapping[str, Any]:
    return {"dashboardName": "d", "dashboardBody": json.dumps({"widgets": widgets})}


def graph(metrics: int = 1, **changed: Any) -> dict[str, Any]:
    series = [["AWS/Lambda", "Errors", "FunctionName", f"f{index}"] for index in range(metrics)]
    told = {"region": "us-east-1", "metrics": series, **changed.pop("properties", {})}
    return {"type": "metric", "width": 6, "height": 6, "properties": told, **changed}


def rule(*leaves: Any) -> Mapping[str, Any]:
    return {"name": "r", "eventPattern": json.dumps({"source": list(leaves)})}


def scaled(**changed: Any) -> dict[str, Any]:
    launched = {"id": "lt-0123456789abcdef0", "version": "$Latest", **changed}
    return {**SCALING, "launchTemplate": launched}


def mixed(types: int) -> Mapping[str, Any]:
    named = {"launchTemplateId": "lt-0123456789abcdef0", "version": "1"}
    known = sorted(words_of("ec2", "InstanceType"))[:types]
    overrides = [{"instanceType": each} for each in known]
    policy = {"launchTemplate": {"launchTemplateSpecification": named, "overrides": overrides}}
    return {**SCALING, "mixedInstancesPolicy": policy}


SUBNET = {"vpcId": "vpc-0123456789abcdef0", "cidrBlock": "10.0.0.0/24"}
ENDPOINT = {"vpcId": "vpc-0123456789abcdef0", "serviceName": "com.amazonaws.us-east-1.s3"}
PODS = "eks/podIdentityAssociation:PodIdentityAssociation"
POD = {"clusterName": "c", "namespace": "kafka", "serviceAccount": "drain-er", "roleArn": ROLE_ARN}


def paths(count: int) -> Mapping[str, Any]:
    found = {f"p{index}": "$.detail" for index in range(count)}
    transformer = {"inputPaths": found, "inputTemplate": '"<p0>"'}
    return {"rule": "r", "arn": QUEUE, "targetId": "t", "inputTransformer": transformer}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a graph of 501 metrics": (DASHBOARD, board(graph(501)), BODY),
    "a dashboard of 2,520 metrics": (DASHBOARD, board(*[graph(420)] * 6), BODY),
    "a widget wider than its grid": (DASHBOARD, board(graph(width=25)), BODY),
    "a widget of no kind": (DASHBOARD, board({"type": "chart", "properties": {}}), BODY),
    "a graph without a region": (
        DASHBOARD,
        board({"type": "metric", "properties": {"metrics": [["a", "b"]]}}),
        BODY,
    ),
    "a text without words": (DASHBOARD, board({"type": "text", "properties": {}}), BODY),
    "a log without a query": (
        DASHBOARD,
        board({"type": "log", "properties": {"region": "us-east-1"}}),
        BODY,
    ),
    "a widget that is a list": (DASHBOARD, board([]), BODY),
    "a dashboard that is a list": (DASHBOARD, {"dashboardName": "d", "dashboardBody": "[]"}, BODY),
    "a pattern within a list": (RULE_TYPE, rule(["aws.ec2"]), PATTERN),
    "a pattern with two wildcards together": (RULE_TYPE, rule({"wildcard": "a**"}), PATTERN),
    "a prefix that is a number": (RULE_TYPE, rule({"prefix": 5}), PATTERN),
    "a word for what exists": (RULE_TYPE, rule({"exists": "yes"}), PATTERN),
    "a number that is no list": (RULE_TYPE, rule({"numeric": 5}), PATTERN),
    "two ways of matching at once": (RULE_TYPE, rule({"prefix": "a", "suffix": "b"}), PATTERN),
    "a way that there is not": (RULE_TYPE, rule({"regex": "a"}), PATTERN),
    "an empty object in a pattern": (
        RULE_TYPE,
        {"name": "r", "eventPattern": json.dumps({"detail": {}})},
        PATTERN,
    ),
    "101 paths of an input": (RULE_TARGET, paths(101), "ValidationException"),
    "a label's key with a space": (NODE_GROUP, {**OF_NODES, "labels": {"a b": "c"}}, PARAMETER),
    "a label's long key": (NODE_GROUP, {**OF_NODES, "labels": {"k" * 64: "c"}}, PARAMETER),
    "51 taints": (
        NODE_GROUP,
        {**OF_NODES, "taints": [{"key": f"k{n}", "effect": "NO_SCHEDULE"} for n in range(51)]},
        PARAMETER,
    ),
    "a template by id and by name": (GROUPS, scaled(name="n"), "ValidationError"),
    "a template's latest version in words": (GROUPS, scaled(version="latest"), "ValidationError"),
    "41 types of instances": (GROUPS, mixed(41), "ValidationError"),
    "a group that keeps 50 to 200 percent": (
        GROUPS,
        {
            **scaled(),
            "instanceMaintenancePolicy": {
                "minHealthyPercentage": 50,
                "maxHealthyPercentage": 200,
            },
        },
        "ValidationError",
    ),
    "a stream of nothing": (TABLES, {**TABLE, "streamEnabled": True}, "ValidationException"),
    "a time to live of nothing": (
        TABLES,
        {**TABLE, "ttl": {"enabled": True, "attributeName": ""}},
        "ValidationException",
    ),
    "an endpoint's policy of 21 KB": (
        "ec2/vpcEndpoint:VpcEndpoint",
        {**ENDPOINT, "policy": document(23_000)},
        "InvalidPolicyDocument",
    ),
    "an add-on with a space": (ADDON, {**ADDED, "addonName": "core dns"}, PARAMETER),
    "a log group's key by its alias": (
        LOG_GROUP,
        {"name": "/a", "kmsKeyId": "alias/logs"},
        PARAMETER,
    ),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a graph of 500 metrics": (DASHBOARD, board(*[graph(500)] * 5)),
    "a graph of an alarm": (
        DASHBOARD,
        board({"type": "metric", "properties": {"region": "us-east-1", "annotations": {}}}),
    ),
    "a text": (DASHBOARD, board({"type": "text", "properties": {"markdown": "# a"}})),
    "every way of matching": (
        RULE_TYPE,
        rule(
            "a",
            1,
            None,
            True,
            {"prefix": "a"},
            {"prefix": {"equals-ignore-case": "a"}},
            {"suffix": "b"},
            {"anything-but": ["a", "b"]},
            {"anything-but": {"prefix": "c"}},
            {"exists": False},
            {"numeric": [">", 0]},
            {"cidr": "10.0.0.0/8"},
            {"equals-ignore-case": "A"},
            {"wildcard": "a*b*"},
        ),
    ),
    "one or the other": (
        RULE_TYPE,
        {
            "name": "r",
            "eventPattern": json.dumps({"$or": [{"source": ["a"]}, {"detail-type": ["b"]}]}),
        },
    ),
    "a template by name": (GROUPS, scaled(id=None, name="n", version="$Default")),
    "40 types of instances": (GROUPS, mixed(40)),
    "a local zone's subnet": (
        "ec2/subnet:Subnet",
        {**SUBNET, "availabilityZone": "us-west-2-lax-1a"},
    ),
    "an association": (PODS, POD),
    "100 paths of an input": (RULE_TARGET, paths(100)),
    "labels of another domain": (
        NODE_GROUP,
        {**OF_NODES, "labels": {"example.org/Kafka_node.a": "x", "a": "B"}},
    ),
    "a marketplace's add-on": (ADDON, {**ADDED, "addonName": "kubecost_kubecost"}),
}
