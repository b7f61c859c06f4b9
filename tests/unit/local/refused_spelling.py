"""Forms and ranges of single inputs, the order of moves, and what keys and records may be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    GROUPS,
    ITEM,
    LAUNCHING,
    RECORD,
    RECORDED,
    RULE_TARGET,
    SCHEDULE,
    SCHEDULED,
    SECURITY_GROUP,
    TARGETED,
    policy,
    without,
)
from tests.unit.local.refused_schema import GRANT, GRANTED, refreshed
from tests.unit.local.seeded_inputs import RULE, TEMPLATE, template

ENDPOINT, KEY, QUEUE = "ec2/vpcEndpoint:VpcEndpoint", "kms/key:Key", "sqs/queue:Queue"
LIFECYCLE = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
GATEWAY = {"vpcId": "vpc-0123456789abcdef0", "serviceName": "com.amazonaws.us-east-1.s3"}
OWNER = {"AWS": "arn:aws:iam::123456789012:root"}
ARGUMENT, SYNTAX = "InvalidArgument", "MalformedPolicyDocumentException"
CHANGE, VALIDATION = "InvalidChangeBatch", "ValidationException"
LINKED = (
    "arn:aws:iam::123456789012:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS"
)


def spot(**options: Any) -> Mapping[str, Any]:
    return template(instanceMarketOptions={"marketType": "spot", "spotOptions": options})


def keyed(**said: Any) -> Mapping[str, Any]:
    owner = {"Effect": "Allow", "Principal": OWNER, "Action": "kms:*", "Resource": "*"}
    return {"policy": policy({**owner, **said})}


def moving(*moves: tuple[int, str], **rule: Any) -> Mapping[str, Any]:
    listed = [{"days": days, "storageClass": kind} for days, kind in moves]
    whole = {"id": "a", "status": "Enabled", "filter": {"prefix": "x/"}, "transitions": listed}
    return {"bucket": "a-bucket", "rules": [{**whole, **rule}]}


def kept(**values: Any) -> Mapping[str, Any]:
    return {"tableName": "t", "hashKey": "pk", "item": json.dumps({"pk": {"S": "a"}, **values})}


def nested(levels: int) -> Mapping[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        value = {"M": {"m": value}}
    return value


def recorded(kind: str, value: str) -> Mapping[str, Any]:
    return {**RECORDED, "type": kind, "records": [value], "ttl": 60}


def grouped(**rule: Any) -> Mapping[str, Any]:
    return {"name": "g", "vpcId": "vpc-0123456789abcdef0", "ingress": [rule]}


def scheduled(arn: str, **parameters: Any) -> Mapping[str, Any]:
    return {**SCHEDULED, "target": {**SCHEDULED["target"], "arn": arn, **parameters}}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a key's policy about nothing": (KEY, keyed(Resource=None), SYNTAX),
    "a key's policy of no operator": (
        KEY,
        keyed(Condition={"StringIs": {"aws:SourceAccount": "1"}}),
        SYNTAX,
    ),
    "an endpoint's policy for nobody": (
        ENDPOINT,
        {**GATEWAY, "policy": policy({"Effect": "Allow", "Action": "*", "Resource": "*"})},
        "InvalidPolicyDocument",
    ),
    "a queue's own policy of no action": (
        QUEUE,
        {
            "name": "q",
            "policy": policy(
                {"Effect": "Allow", "Principal": "*", "Action": "sqs:Send", "Resource": "*"}
            ),
        },
        "InvalidAttributeValue",
    ),
    "a key that is a boolean": (ITEM, kept(pk={"BOOL": True}), VALIDATION),
    "a key of 2,049 bytes": (ITEM, kept(pk={"S": "a" * 2049}), VALIDATION),
    "33 levels": (ITEM, kept(m=nested(33)), VALIDATION),
    "a rule of IPv6 for IPv4": (
        "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        {**without(RULE, "cidrIpv4"), "cidrIpv6": "10.0.0.0/8"},
        "InvalidParameterValue",
    ),
    "a rule that calls a bucket": (RULE_TARGET, {**TARGETED, "arn": "arn:aws:s3:::b"}, VALIDATION),
    "a rule that calls a stream without a role": (
        RULE_TARGET,
        {**TARGETED, "arn": "arn:aws:kinesis:us-east-1:123456789012:stream/s"},
        VALIDATION,
    ),
    "a schedule that sends an event of no kind": (
        SCHEDULE,
        scheduled("arn:aws:events:us-east-1:123456789012:event-bus/b"),
        VALIDATION,
    ),
    "mail of no preference": (RECORD, recorded("MX", "mail.x"), CHANGE),
    "a service of three fields": (RECORD, recorded("SRV", "1 2 kafka.x"), CHANGE),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a group's own rules: of all protocols": (
        SECURITY_GROUP,
        grouped(protocol="-1", fromPort=0, toPort=0, cidrBlocks=["0.0.0.0/0"]),
    ),
    "a table's own route: to the world": (
        "ec2/routeTable:RouteTable",
        {
            "vpcId": "vpc-0123456789abcdef0",
            "routes": [{"cidrBlock": "0.0.0.0/0", "gatewayId": "igw-0123456789abcdef0"}],
        },
    ),
    "a rule: of IPv6": (
        "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        {**without(RULE, "cidrIpv4"), "cidrIpv6": "2001:db8::/64"},
    ),
    "a rule: that writes a log": (
        RULE_TARGET,
        {**TARGETED, "arn": "arn:aws:logs:us-east-1:123456789012:log-group:/aws/events/x"},
    ),
    "a schedule: that sends an event": (
        SCHEDULE,
        scheduled(
            "arn:aws:events:us-east-1:123456789012:event-bus/b",
            eventbridgeParameters={"detailType": "a", "source": "b"},
        ),
    ),
    "a spot price: of five cents": (TEMPLATE, spot(maxPrice="0.05")),
    "a wait: of 15 minutes": (GROUPS, {**LAUNCHING, "waitForCapacityTimeout": "15m"}),
    "a checkpoint: half way": (
        GROUPS,
        refreshed(checkpointPercentages=[50, 100], checkpointDelay="3600"),
    ),
    "a grant: by a key's id": (
        GRANT,
        {**GRANTED, "keyId": "01234567-89ab-cdef-0123-456789abcdef"},
    ),
    "a key's policy: of its account": (KEY, keyed()),
    "an endpoint's policy: for all": (
        ENDPOINT,
        {
            **GATEWAY,
            "policy": policy({"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}),
        },
    ),
    "moves: from warm to cold": (LIFECYCLE, moving((30, "STANDARD_IA"), (90, "GLACIER"))),
    "an item: of 31 levels": (ITEM, kept(m=nested(31))),
    "mail: by preference": (RECORD, recorded("MX", "10 mail.x")),
    "a service: of four fields": (RECORD, recorded("SRV", "1 10 9092 kafka.x")),
}
