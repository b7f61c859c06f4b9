"""Ids, ARNs, sizes and small print: what is refused wherever it is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    BUCKET_POLICY,
    ITEM,
    KEYS,
    OF_NODES,
    QUEUE_POLICY,
    QUEUES,
    RECORD,
    RECORDED,
    ROLES,
    ROUTE,
    TARGETS,
    TOPIC_POLICY,
    policy,
)
from tests.unit.local.refused_policies import (
    BUCKET,
    INVALID,
    VALUE,
    on_a_bucket,
    on_a_queue,
    on_a_topic,
)
from tests.unit.local.refused_services import item
from tests.unit.local.refused_watching import BODY, PATTERN, board, graph, rule
from tests.unit.local.seeded_inputs import (
    ALARM,
    FUNCTION,
    INGRESS,
    LAMBDA,
    ROLE,
    RULE,
    TARGET_GROUP,
    TEMPLATE,
    disk,
)
from tests.unit.local.test_refused_parts import (
    ALARM_TYPE,
    CLUSTER,
    DASHBOARD,
    INLINE,
    KUBERNETES,
    MALFORMED,
    METRIC,
    NODE_GROUP,
    QUEUE,
    RULE_TYPE,
    inline,
    trusting,
)

VALIDATION, ERROR, EKS = "ValidationException", "ValidationError", "InvalidParameterException"
PARAMETER, WORD = "InvalidParameterValue", "Invalid Attribute Value"
UNVENDORED = {"StringEquals": {"tag": "x"}}
ALARMS = {"type": "alarm", "properties": {"alarms": ["a"] * 101}}
SUBNET, ALIAS = "ec2/subnet:Subnet", "kms/alias:Alias"
FIVE_DIGITS = "arn:aws:iam::12345:root"


def redriven(target: str, count: Any) -> Mapping[str, Any]:
    told = {"deadLetterTargetArn": target, "maxReceiveCount": count}
    return {"name": "work", "redrivePolicy": json.dumps(told)}


def key_of(**changed: Any) -> Mapping[str, Any]:
    told = {"Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*", **changed}
    return {"policy": policy([{k: v for k, v in told.items() if v is not None}])}


def watched(**metric: Any) -> Mapping[str, Any]:
    told = {"id": "m", "metric": {**METRIC, **metric}, "returnData": True}
    return {**ALARM, "metricQueries": [told]}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a boundary that there is not": (
        ROLES,
        {**ROLE, "permissionsBoundary": "arn:aws:iam::aws:policy/NoSuch"},
        "NoSuchEntity",
    ),
    "a trust in every role": (
        ROLES,
        trusting(Principal={"AWS": "arn:aws:iam::123456789012:role/*"}),
        MALFORMED,
    ),
    "a role of a region": (
        INLINE,
        inline(Resource="arn:aws:iam:us-east-1:123456789012:role/x"),
        MALFORMED,
    ),
    "a condition of no vendor": (
        INLINE,
        inline(Condition=UNVENDORED),
        MALFORMED,
    ),
    "a statement numbered": (INLINE, inline(Sid=-5), MALFORMED),
    "a key of five digits": (
        KEYS,
        key_of(Principal={"AWS": FIVE_DIGITS}),
        "MalformedPolicyDocumentException",
    ),
    "a key of nobody": (KEYS, key_of(Principal=None), "MalformedPolicyDocumentException"),
    "a queue that allows in lower case": (QUEUE_POLICY, on_a_queue(Effect="allow"), VALUE),
    "a queue's operator": (QUEUE_POLICY, on_a_queue(Condition={"ArnEqual": {"a:b": "c"}}), VALUE),
    "a topic that allows in lower case": (TOPIC_POLICY, on_a_topic(Effect="allow"), INVALID),
    "a bucket's policy of 2013": (
        BUCKET_POLICY,
        {**on_a_bucket(), "policy": str(on_a_bucket()["policy"]).replace("2012", "2013")},
        BUCKET,
    ),
    "a bucket's element": (BUCKET_POLICY, on_a_bucket(Actions="x"), BUCKET),
    "a disk of 17 TiB": (
        TEMPLATE,
        disk(volumeType="gp2", volumeSize=17_000),
        PARAMETER,
    ),
    "a small disk of many IOPS": (
        TEMPLATE,
        disk(volumeType="io1", volumeSize=10, iops=5000),
        PARAMETER,
    ),
    "a disk of 50 IOPS": (
        TEMPLATE,
        disk(volumeType="io2", volumeSize=10, iops=50),
        PARAMETER,
    ),
    "a boolean in a block": (
        NODE_GROUP,
        {**OF_NODES, "nodeRepairConfig": {"enabled": "sure"}},
        "Incorrect attribute value type",
    ),
    "a type of one word": (NODE_GROUP, {**OF_NODES, "instanceTypes": ["large"]}, EKS),
    "a taint twice": (
        NODE_GROUP,
        {**OF_NODES, "taints": [{"key": "a", "effect": "NO_SCHEDULE"}] * 2},
        EKS,
    ),
    "nodes from a template by id and name": (
        NODE_GROUP,
        {**OF_NODES, "launchTemplate": {"id": "lt-1", "name": "n", "version": "1"}},
        EKS,
    ),
    "half of Auto Mode": (CLUSTER, {**KUBERNETES, "computeConfig": {"enabled": True}}, EKS),
    "a cluster open to an office": (
        CLUSTER,
        {
            **KUBERNETES,
            "vpcConfig": {"subnetIds": ["subnet-1", "subnet-2"], "publicAccessCidrs": ["office"]},
        },
        EKS,
    ),
    "Services in words": (
        CLUSTER,
        {**KUBERNETES, "kubernetesNetworkConfig": {"serviceIpv4Cidr": "services"}},
        EKS,
    ),
    "Services of both families": (
        CLUSTER,
        {
            **KUBERNETES,
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16", "ipFamily": "ipv6"},
        },
        EKS,
    ),
    "a number of 200 digits": (ITEM, item(n={"N": "1e200"}), VALIDATION),
    "a null that is none": (ITEM, item(n={"NULL": False}), VALIDATION),
    "dead letters to a topic": (
        QUEUES,
        redriven("arn:aws:sns:us-east-1:123456789012:t", 3),
        PARAMETER,
    ),
    "dead letters after many": (QUEUES, redriven(QUEUE, "many"), PARAMETER),
    "an address twice": (
        RECORD,
        {**RECORDED, "ttl": 60, "records": ["10.0.0.1", "10.0.0.1"]},
        "InvalidChangeBatch",
    ),
    "anything but null": (RULE_TYPE, rule({"anything-but": None}), PATTERN),
    "anything but a way": (RULE_TYPE, rule({"anything-but": {"infix": "a"}}), PATTERN),
    "one or nothing": (
        RULE_TYPE,
        {"name": "r", "eventPattern": json.dumps({"$or": [{"source": ["a"]}]})},
        PATTERN,
    ),
    "a graph of lines": (DASHBOARD, board(graph(properties={"view": "lines"})), BODY),
    "a graph above the top": (DASHBOARD, board(graph(y=-1)), BODY),
    "101 alarms": (
        DASHBOARD,
        board(ALARMS),
        BODY,
    ),
    "a function of no runtime": (
        LAMBDA,
        {key: value for key, value in FUNCTION.items() if key != "runtime"},
        "InvalidParameterValueException",
    ),
    "a page of 1,025 letters": (
        TARGETS,
        {**TARGET_GROUP, "healthCheck": {"protocol": "HTTP", "path": "/" + "x" * 1024}},
        ERROR,
    ),
    "an alarm in bits of no kind": (ALARM_TYPE, watched(unit="Bit"), ERROR),
    "a dimension with an umlaut": (ALARM_TYPE, watched(dimensions={"a": "ü"}), ERROR),
    "an anomaly without a band": (
        ALARM_TYPE,
        {**watched(), "comparisonOperator": "LessThanLowerThreshold"},
        ERROR,
    ),
    "a weight without an identifier": (
        RECORD,
        {**RECORDED, "ttl": 1, "records": ["10.0.0.1"], "weightedRoutingPolicies": [{"weight": 1}]},
        "InvalidInput",
    ),
    "an alias of no zone": (RECORD, {**RECORDED, "aliases": [{"name": "x"}]}, "InvalidInput"),
    "nodes from any version": (NODE_GROUP, {**OF_NODES, "launchTemplate": {"id": "lt-1"}}, EKS),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a rule: another account's group": (
        INGRESS,
        {
            **{k: v for k, v in RULE.items() if k != "cidrIpv4"},
            "referencedSecurityGroupId": "123456789012/sg-0123456789abcdef0",
        },
    ),
    "a route: through a gateway": (
        ROUTE,
        {"routeTableId": "rtb-1", "destinationCidrBlock": "0.0.0.0/0", "gatewayId": "igw-1"},
    ),
    "a disk: io2's ratio": (TEMPLATE, disk(volumeType="io2", volumeSize=4, iops=4000)),
    "a node group: of a release": (
        NODE_GROUP,
        {**OF_NODES, "releaseVersion": "1.35.0-20261104", "instanceTypes": ["u-6tb1.112xlarge"]},
    ),
    "a cluster: in Auto Mode": (
        CLUSTER,
        {
            **KUBERNETES,
            "computeConfig": {"enabled": True},
            "kubernetesNetworkConfig": {"elasticLoadBalancing": {"enabled": True}},
            "storageConfig": {"blockStorage": {"enabled": True}},
        },
    ),
    "a role: bounded": (
        ROLES,
        {**ROLE, "permissionsBoundary": "arn:aws:iam::123456789012:policy/bound"},
    ),
    "an alarm: in bytes": (ALARM_TYPE, watched(unit="Bytes", dimensions={"a": "b c"})),
    "a record: weighted": (
        RECORD,
        {
            **RECORDED,
            "ttl": 1,
            "records": ["10.0.0.1"],
            "weightedRoutingPolicies": [{"weight": 1}],
            "setIdentifier": "a",
        },
    ),
    "a key: of its account": (
        KEYS,
        key_of(Principal={"AWS": "arn:aws:iam::123456789012:root"}),
    ),
    "an item: the largest number": (ITEM, item(n={"N": "9.9e125"}, e={"NULL": True})),
    "a bucket: allowed": (BUCKET_POLICY, on_a_bucket()),
}
