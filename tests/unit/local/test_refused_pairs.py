"""What two resources must be to each other, and the one region of a program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.refusals import gate, together
from local.refusals.refusal import Wanted
from tests.unit.local.aws_inputs import LISTENING, RECORD, RULE_TARGET, ZONE
from tests.unit.local.seeded_inputs import TABLE, TARGET_GROUP

LISTENER, GROUP = "lb/listener:Listener", "lb/targetGroup:TargetGroup"
ITEM, TABLES = "dynamodb/tableItem:TableItem", "dynamodb/table:Table"
ENDPOINT, SUBNET = "ec2/vpcEndpoint:VpcEndpoint", "ec2/subnet:Subnet"
GROUP_ARN = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/broker-10/0123"
NAMED = {
    "vpcId": "vpc-1",
    "serviceName": "com.amazonaws.us-east-1.sqs",
    "vpcEndpointType": "Interface",
    "privateDnsEnabled": True,
}
CNAME = {"zoneId": "Z1", "name": "a.orders.internal", "type": "CNAME", "ttl": 60}


def made(*resources: tuple[str, Mapping[str, Any]]) -> list[Wanted]:
    return [Wanted(f"aws:{token}", f"r{n}", dict(i)) for n, (token, i) in enumerate(resources)]


def listening(spoken: str, taken: str) -> list[Wanted]:
    action = {"type": "forward", "targetGroupArn": GROUP_ARN}
    return made(
        (GROUP, {**TARGET_GROUP, "protocol": taken}),
        (LISTENER, {**LISTENING, "protocol": spoken, "defaultActions": [action]}),
    )


def placed(*zones: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (SUBNET, {"vpcId": "v", "cidrBlock": f"10.0.{n}.0/24", "availabilityZone": zone})
        for n, zone in enumerate(zones)
    ]


def kept(key: Mapping[str, Any]) -> list[Wanted]:
    return made((TABLES, TABLE), (ITEM, {"tableName": "incidents", "item": json.dumps(key)}))


def nodes(version: str) -> list[Wanted]:
    return made(
        ("eks/cluster:Cluster", {"name": "c", "version": "1.35"}),
        ("eks/nodeGroup:NodeGroup", {"clusterName": "c", "version": version}),
    )


def items(key: str) -> list[Wanted]:
    return made(
        *(
            (ITEM, {"tableName": "t", "hashKey": "pk", "item": json.dumps({"pk": {"S": each}})})
            for each in ("a", key)
        )
    )


HOME = placed("us-east-1a", "us-east-1b")
REFUSED = {
    "a UDP listener of a TCP group": (listening("UDP", "TCP"), "ValidationError"),
    "a TCP listener of an HTTP group": (listening("TCP", "HTTP"), "ValidationError"),
    "an item whose key is a number": (kept({"pk": {"N": "1"}}), "ValidationException"),
    "a service's name twice in a VPC": (
        made((ENDPOINT, NAMED), (ENDPOINT, NAMED)),
        "InvalidParameter",
    ),
    "a zone that is a CNAME": (
        made((ZONE, {"name": "orders.internal"}), (RECORD, {**CNAME, "name": "orders.internal"})),
        "InvalidChangeBatch",
    ),
    "a CNAME beside an address": (
        made((RECORD, {**CNAME, "type": "A"}), (RECORD, CNAME)),
        "InvalidChangeBatch",
    ),
    "an item twice": (items("a"), "ConditionalCheckFailedException"),
    "a sixth VPC": (
        made(*(("ec2/vpc:Vpc", {"cidrBlock": f"10.{n}.0.0/16"}) for n in range(6))),
        "VpcLimitExceeded",
    ),
    "31 node groups": (
        made(
            *(
                ("eks/nodeGroup:NodeGroup", {"clusterName": "c", "nodeGroupName": f"n{n}"})
                for n in range(31)
            )
        ),
        "ResourceLimitExceededException",
    ),
    "501 routes": (
        made(
            *(
                (
                    "ec2/route:Route",
                    {
                        "routeTableId": "rtb-1",
                        "destinationCidrBlock": f"10.{n}.0.0/16",
                    },
                )
                for n in range(501)
            )
        ),
        "RouteLimitExceeded",
    ),
    "a record twice": (made(*[(RECORD, CNAME)] * 2), "InvalidChangeBatch"),
    "a schedule twice": (
        made(*[("scheduler/schedule:Schedule", {"name": "s"})] * 2),
        "ConflictException",
    ),
    "a subnet abroad": (made(*HOME, *placed("eu-west-1a")[:1]), "InvalidParameterValue"),
    "an alarm that calls abroad": (
        made(
            *HOME,
            (
                "cloudwatch/metricAlarm:MetricAlarm",
                {"alarmActions": ["arn:aws:sns:eu-west-1:123456789012:alerts"]},
            ),
        ),
        "ValidationError",
    ),
    "an endpoint to another region": (
        made(*HOME, (ENDPOINT, {**NAMED, "serviceName": "com.amazonaws.eu-west-1.sqs"})),
        "InvalidServiceName",
    ),
    "a cluster's key abroad": (
        made(
            *HOME,
            (
                "eks/cluster:Cluster",
                {
                    "encryptionConfig": {
                        "provider": {"keyArn": "arn:aws:kms:eu-west-1:123456789012:key/x"}
                    }
                },
            ),
        ),
        "InvalidParameterException",
    ),
    "dead letters abroad": (
        made(
            *HOME,
            (
                "sqs/queue:Queue",
                {
                    "name": "q",
                    "redrivePolicy": json.dumps(
                        {"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:123456789012:d"}
                    ),
                },
            ),
        ),
        "InvalidParameterValue",
    ),
}
TAKEN = {
    "nodes older than their cluster": nodes("1.34"),
    "two items": items("b"),
    "a rule written over": made(*[("cloudwatch/eventRule:EventRule", {"name": "r"})] * 2),
    "a TLS listener of a TCP group": listening("TLS", "TCP"),
    "a UDP listener of a group of both": listening("UDP", "TCP_UDP"),
    "a listener of somebody's group": listening("TCP", "TCP")[1:],
    "an item of its table's key": kept({"pk": {"S": "x"}}),
    "an endpoint of two VPCs": made((ENDPOINT, NAMED), (ENDPOINT, {**NAMED, "vpcId": "vpc-2"})),
    "a CNAME of its own": made((ZONE, {"name": "orders.internal"}), (RECORD, CNAME)),
    "as many abroad as at home": made(*placed("us-east-1a", "eu-west-1a")),
    "an event sent abroad": made(
        *HOME,
        (RULE_TARGET, {"rule": "r", "arn": "arn:aws:events:eu-west-1:123456789012:event-bus/b"}),
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_go_together_is_refused_with_its_code(kind: str) -> None:
    resources, code = REFUSED[kind]
    found = list(together.refusals(resources))
    assert code in {refusal.code for refusal in found}, found
    assert all(refusal.resource for refusal in found)


@pytest.mark.parametrize("kind", TAKEN)
def test_what_goes_together_is_taken(kind: str) -> None:
    assert [refusal.sentence for refusal in together.refusals(TAKEN[kind])] == []


def test_the_gate_asks_about_pairs_as_well() -> None:
    resources, _ = REFUSED["a UDP listener of a TCP group"]
    assert "r1" in {refusal.resource for refusal in gate.all_refusals(resources)}
