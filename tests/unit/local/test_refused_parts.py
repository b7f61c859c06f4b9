"""What no model of AWS's states: forms, parts that must or must not be together, IAM's grammar.

A row per kind of mistake somebody makes; each is refused with AWS's code, and near misses are not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.refusals import gate
from local.refusals.refusal import Wanted
from tests.unit.local.seeded_inputs import (
    ALARM,
    FUNCTION,
    GROUP,
    INGRESS,
    ROLE,
    RULE,
    SCALING,
    TABLE,
)

RULE_TYPE, TOPIC = "cloudwatch/eventRule:EventRule", "sns/topic:Topic"
NODE_GROUP, CLUSTER, ENTRY = (
    "eks/nodeGroup:NodeGroup",
    "eks/cluster:Cluster",
    "eks/accessEntry:AccessEntry",
)
LIFECYCLE = "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
ENDPOINT, LISTENER = "ec2/vpcEndpoint:VpcEndpoint", "lb/listener:Listener"
ALARM_TYPE, DASHBOARD = (
    "cloudwatch/metricAlarm:MetricAlarm",
    "cloudwatch/dashboard:Dashboard",
)
ROLE_ARN = "arn:aws:iam::123456789012:role/r"
NODES = {
    "clusterName": "c",
    "nodeGroupName": "n",
    "nodeRoleArn": ROLE_ARN,
    "subnetIds": ["subnet-1"],
    "scalingConfig": {"minSize": 1, "maxSize": 1, "desiredSize": 1},
}
SUBNETS = {"subnetIds": ["subnet-1", "subnet-2"]}
KUBERNETES = {"name": "c", "roleArn": ROLE_ARN, "vpcConfig": SUBNETS}
METRIC = {"metricName": "m", "namespace": "n", "period": 60, "stat": "Sum"}
SERIES = {"metricName": "m", "namespace": "n", "period": 60, "statistic": "Sum"}
TERMINATING = {
    "name": "drain",
    "autoscalingGroupName": "g",
    "lifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
}
ENTERED = {"clusterName": "c", "principalArn": ROLE_ARN}
BALANCER = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/a/b"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:q"
INLINE, READS = "iam/rolePolicy:RolePolicy", {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}


def inline(**changed: Any) -> dict[str, Any]:
    """Return an inline policy with one statement, changed; None takes a part out."""
    statement = {key: value for key, value in {**READS, **changed}.items() if value is not None}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {"role": "r", "name": "p", "policy": json.dumps(document)}


def trusting(**changed: Any) -> dict[str, Any]:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "ec2.amazonaws.com"},
        "Action": "sts:AssumeRole",
        **changed,
    }
    kept = {key: value for key, value in statement.items() if value is not None}
    document = {"Version": "2012-10-17", "Statement": kept}
    return {"name": "r", "assumeRolePolicy": json.dumps(document)}


def expiring(**rule: Any) -> dict[str, Any]:
    return {"bucket": "b", "rules": [{"id": "old", "status": "Enabled", **rule}]}


VALIDATION, PARAMETER = "ValidationException", "InvalidParameterException"
MALFORMED = "MalformedPolicyDocument"
REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a rule that waits for nothing": (RULE_TYPE, {"name": "r"}, VALIDATION),
    "a cron with both days": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0 12 * * * *)"},
        VALIDATION,
    ),
    "a table without capacity": (
        "dynamodb/table:Table",
        {**TABLE, "billingMode": "PROVISIONED"},
        VALIDATION,
    ),
    "an item without its key": (
        "dynamodb/tableItem:TableItem",
        {"tableName": "t", "hashKey": "pk", "item": json.dumps({"sk": {"S": "x"}})},
        VALIDATION,
    ),
    "a rule of a bucket that does nothing": (LIFECYCLE, expiring(), "InvalidRequest"),
    "an expiry at once": (LIFECYCLE, expiring(expiration={"days": 0}), "InvalidArgument"),
    "a label of a sentence": (NODE_GROUP, {**NODES, "labels": {"a": "x y"}}, PARAMETER),
    "a label of Kubernetes' own": (
        NODE_GROUP,
        {**NODES, "labels": {"kubernetes.io/role": "x"}},
        PARAMETER,
    ),
    "two measures of an update": (
        NODE_GROUP,
        {**NODES, "updateConfig": {"maxUnavailable": 1, "maxUnavailablePercentage": 10}},
        PARAMETER,
    ),
    "a cluster in one subnet": (
        CLUSTER,
        {**KUBERNETES, "vpcConfig": {"subnetIds": ["subnet-1"]}},
        PARAMETER,
    ),
    "a cluster nobody reaches": (
        CLUSTER,
        {
            **KUBERNETES,
            "vpcConfig": {
                **SUBNETS,
                "endpointPrivateAccess": False,
                "endpointPublicAccess": False,
            },
        },
        PARAMETER,
    ),
    "an alarm without a metric": (ALARM_TYPE, ALARM, "ValidationError"),
    "an alarm of 21 queries": (
        ALARM_TYPE,
        {
            **ALARM,
            "metricQueries": [
                {"id": f"a{n}", "metric": METRIC, "returnData": not n} for n in range(21)
            ],
        },
        "ValidationError",
    ),
    "a query in capitals": (
        ALARM_TYPE,
        {**ALARM, "metricQueries": [{"id": "A", "metric": METRIC, "returnData": True}]},
        "ValidationError",
    ),
    "a dashboard that is no JSON": (
        DASHBOARD,
        {"dashboardName": "d", "dashboardBody": "{"},
        "InvalidParameterInput",
    ),
    "a group with a colon": (
        "autoscaling/group:Group",
        {**SCALING, "name": "a:b"},
        "ValidationError",
    ),
    "a health check of no kind": (
        "autoscaling/group:Group",
        {**SCALING, "healthCheckType": "NLB"},
        "ValidationError",
    ),
    "a rule from nowhere": (INGRESS, GROUP | {"toPort": 443}, "MissingParameter"),
    "a rule from an office": (INGRESS, {**RULE, "cidrIpv4": "office"}, "InvalidParameterValue"),
    "a rule from a host in a network": (
        INGRESS,
        {**RULE, "cidrIpv4": "10.9.1.1/16"},
        "Invalid Attribute Value",
    ),
    "a route to an address": (
        "ec2/route:Route",
        {"routeTableId": "rtb-1", "destinationCidrBlock": "10.0.0.9", "gatewayId": "igw-1"},
        "InvalidParameterValue",
    ),
    "a gateway with a group": (
        ENDPOINT,
        {
            "vpcId": "vpc-1",
            "serviceName": "com.amazonaws.us-east-1.s3",
            "securityGroupIds": ["sg-1"],
        },
        "InvalidParameter",
    ),
    "a balancer nowhere": (
        "lb/loadBalancer:LoadBalancer",
        {"name": "a", "loadBalancerType": "network"},
        "ValidationError",
    ),
    "HTTP on a network balancer": (
        LISTENER,
        {"loadBalancerArn": BALANCER, "port": 80, "protocol": "HTTP", "defaultActions": []},
        "UnsupportedProtocol",
    ),
    "eleven messages at once": (
        "lambda/eventSourceMapping:EventSourceMapping",
        {"eventSourceArn": QUEUE, "functionName": "f", "batchSize": 11},
        "InvalidParameterValueException",
    ),
    "a redrive that is no JSON": (
        "sqs/queue:Queue",
        {"name": "q", "redrivePolicy": "{"},
        "InvalidAttributeValue",
    ),
    "a VPC's block with host bits": (
        "ec2/vpc:Vpc",
        {"cidrBlock": "10.0.1.0/16"},
        "InvalidVpc.Range",
    ),
    "a statement of no effect": (INLINE, inline(Effect="allow"), MALFORMED),
    "an action of no service": (INLINE, inline(Action="GetObject"), MALFORMED),
    "a statement about nothing": (INLINE, inline(Resource=None), MALFORMED),
    "a resource by name": (INLINE, inline(Resource="bucket"), MALFORMED),
    "a role's policy with a principal": (INLINE, inline(Principal="*"), MALFORMED),
    "a trust in nobody": ("iam/role:Role", trusting(Principal=None), MALFORMED),
    "a trust about a resource": ("iam/role:Role", trusting(Resource="*"), MALFORMED),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a FIFO topic": (TOPIC, {"name": "x.fifo", "fifoTopic": True}),
    "a cron with one day": (RULE_TYPE, {"name": "r", "scheduleExpression": "cron(0 12 ? * 2 *)"}),
    "an alarm of one metric": (ALARM_TYPE, {**ALARM, **SERIES}),
    "a label of ours": (NODE_GROUP, {**NODES, "labels": {"stillwater.dev/pool": "broker-a"}}),
    "a trust": ("iam/role:Role", trusting()),
    "a role": ("iam/role:Role", ROLE),
    "a deny of all but a service": (INLINE, inline(Action=None, NotAction="s3:*", Effect="Deny")),
    "a function": ("lambda/function:Function", FUNCTION),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_aws_refuses_is_refused_with_its_code(kind: str) -> None:
    token, inputs, code = REFUSED[kind]
    found = gate.refusals(Wanted(f"aws:{token}", "one", inputs))
    assert code in {refusal.code for refusal in found}, found


@pytest.mark.parametrize("kind", TAKEN)
def test_what_aws_takes_is_let_through(kind: str) -> None:
    token, inputs = TAKEN[kind]
    assert gate.refusals(Wanted(f"aws:{token}", "one", inputs)) == []
