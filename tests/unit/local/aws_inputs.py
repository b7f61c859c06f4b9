"""Inputs that AWS takes, of which tests change one thing."""

import json
from collections.abc import Mapping
from typing import Any

from local.refusals.refusal import Wanted

Made = tuple[str, str, Mapping[str, Any]]
ADDON, ALARM_TYPE = "eks/addon:Addon", "cloudwatch/metricAlarm:MetricAlarm"
BUCKET_POLICY, CLUSTER = "s3/bucketPolicy:BucketPolicy", "eks/cluster:Cluster"
ENDPOINT, FUNCTIONS = "ec2/vpcEndpoint:VpcEndpoint", "lambda/function:Function"
GROUPS, INGRESS = (
    "autoscaling/group:Group",
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule",
)
INLINE, ITEM = "iam/rolePolicy:RolePolicy", "dynamodb/tableItem:TableItem"
LISTENER, NODE_GROUP = "lb/listener:Listener", "eks/nodeGroup:NodeGroup"
QUEUES, QUEUE_POLICY = "sqs/queue:Queue", "sqs/queuePolicy:QueuePolicy"
ROLES = "iam/role:Role"
SCHEDULE, SUBNET = "scheduler/schedule:Schedule", "ec2/subnet:Subnet"
TABLES, TARGETS = "dynamodb/table:Table", "lb/targetGroup:TargetGroup"
TEMPLATE, TOPIC_POLICY = "ec2/launchTemplate:LaunchTemplate", "sns/topicPolicy:TopicPolicy"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:q"
ROLE_ARN = "arn:aws:iam::123456789012:role/r"
GROUP_ARN = (
    "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/brokers/0123456789abcdef"
)
BALANCER_ARN = (
    "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/nlb/0123456789abcdef"
)
ALARM: Mapping[str, Any] = {
    "name": "x",
    "comparisonOperator": "GreaterThanThreshold",
    "evaluationPeriods": 3,
    "threshold": 1,
    "metricQueries": [{"id": "m1", "expression": "SUM(METRICS())", "returnData": True}],
}
FUNCTION: Mapping[str, Any] = {
    "name": "tick",
    "role": ROLE_ARN,
    "runtime": "python3.13",
    "handler": "handlers.tick.handler",
    "code": "function.zip",
}
NODES: Mapping[str, Any] = {
    "clusterName": "c",
    "nodeGroupName": "n",
    "nodeRoleArn": ROLE_ARN,
    "subnetIds": ["subnet-1", "subnet-2"],
    "scalingConfig": {"minSize": 1, "desiredSize": 1, "maxSize": 2},
}
RULE: Mapping[str, Any] = {
    "securityGroupId": "sg-0123456789abcdef0",
    "ipProtocol": "tcp",
    "fromPort": 443,
    "toPort": 443,
    "cidrIpv4": "10.0.0.0/16",
}
SCALING: Mapping[str, Any] = {
    "name": "g",
    "minSize": 1,
    "maxSize": 2,
    "vpcZoneIdentifiers": ["subnet-1"],
    "launchTemplate": {"id": "lt-0123456789abcdef0", "version": "1"},
}
SCHEDULED: Mapping[str, Any] = {
    "name": "s",
    "scheduleExpression": "rate(1 hour)",
    "flexibleTimeWindow": {"mode": "OFF"},
    "target": {"arn": QUEUE, "roleArn": ROLE_ARN},
}
TABLE: Mapping[str, Any] = {
    "name": "incidents",
    "billingMode": "PAY_PER_REQUEST",
    "hashKey": "pk",
    "attributes": [{"name": "pk", "type": "S"}],
}


def policy(*statements: Mapping[str, Any], **changed: Any) -> str:
    """Return a policy's document, in which what is None is left out."""
    told = {"Version": "2012-10-17", "Statement": list(statements), **changed}
    told["Statement"] = [{k: v for k, v in e.items() if v is not None} for e in told["Statement"]]
    return json.dumps({key: value for key, value in told.items() if value is not None})


def template(**changed: Any) -> dict[str, Any]:
    return {"name": "nodes", **changed}


def made(*resources: Made) -> list[Wanted]:
    """Return resources: of each its type's token, its name and its inputs."""
    return [Wanted(f"aws:{token}", name, inputs) for token, name, inputs in resources]
