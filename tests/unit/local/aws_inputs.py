"""What AWS takes of each kind, as tests change it: tokens, and inputs that are in order."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.local.seeded_inputs import ALARM, SCALING
from tests.unit.local.test_refused_parts import BALANCER, NODES, QUEUE, ROLE_ARN, SERIES

TOPIC_ARN = "arn:aws:sns:us-east-1:123456789012:alerts"
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/x"
KEY = "arn:aws:kms:us-east-1:123456789012:key/x"
FORWARD = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/a/b"
QUEUES, QUEUE_POLICY = "sqs/queue:Queue", "sqs/queuePolicy:QueuePolicy"
SUBSCRIPTION, TOPIC_POLICY = (
    "sns/topicSubscription:TopicSubscription",
    "sns/topicPolicy:TopicPolicy",
)
ROUTE, TARGETS = "ec2/route:Route", "lb/targetGroup:TargetGroup"
BUCKET_POLICY, SCHEDULE = "s3/bucketPolicy:BucketPolicy", "scheduler/schedule:Schedule"
RULE_TARGET = "cloudwatch/eventTarget:EventTarget"
MAPPING = "lambda/eventSourceMapping:EventSourceMapping"
TABLES, ITEM = "dynamodb/table:Table", "dynamodb/tableItem:TableItem"
ADDON = "eks/addon:Addon"
ASSOCIATION = "eks/accessPolicyAssociation:AccessPolicyAssociation"
GROUPS, SNAPSHOTS = "autoscaling/group:Group", "dlm/lifecyclePolicy:LifecyclePolicy"
ENCRYPTION = "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
SECURITY_GROUP, NAT = "ec2/securityGroup:SecurityGroup", "ec2/natGateway:NatGateway"
BALANCERS, KEYS = "lb/loadBalancer:LoadBalancer", "kms/key:Key"
ZONE, RECORD = "route53/zone:Zone", "route53/record:Record"
ROLES, EXPORTS = "iam/role:Role", "bcmdata/export:Export"

SUBSCRIBED = {"topic": TOPIC_ARN, "protocol": "sqs", "endpoint": QUEUE}
SCHEDULED = {
    "name": "s",
    "scheduleExpression": "rate(1 hour)",
    "flexibleTimeWindow": {"mode": "OFF"},
    "target": {"arn": QUEUE, "roleArn": ROLE_ARN},
}
TARGETED = {"rule": "r", "targetId": "t", "arn": QUEUE}
ADDED = {"clusterName": "c", "addonName": "coredns", "addonVersion": "v1.11.1-eksbuild.1"}
ASSOCIATED = {
    "clusterName": "c",
    "principalArn": ROLE_ARN,
    "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
    "accessScope": {"type": "cluster"},
}
LAUNCHING = {**SCALING, "launchTemplate": {"id": "lt-0123456789abcdef0", "version": "1"}}
WATCHING = {**ALARM, **SERIES}
RULE_OF_SNAPSHOTS = {
    "name": "s",
    "createRule": {"interval": 24, "times": "03:00"},
    "retainRule": {"count": 7},
}
DETAILS = {
    "resourceTypes": ["VOLUME"],
    "targetTags": {"a": "b"},
    "schedules": [RULE_OF_SNAPSHOTS],
}
KEPT = {
    "description": "d",
    "executionRoleArn": ROLE_ARN,
    "state": "ENABLED",
    "policyDetails": DETAILS,
}
RECORDED = {"zoneId": "Z0123456789ABCDEFGHIJ", "name": "kafka.orders.internal", "type": "A"}
OF_NODES = {**NODES, "amiType": "AL2023_x86_64_STANDARD", "instanceTypes": ["m7i.large"]}
LISTENING = {
    "loadBalancerArn": BALANCER,
    "port": 9094,
    "protocol": "TCP",
    "defaultActions": [{"type": "forward", "targetGroupArn": FORWARD}],
}
BALANCED = {"name": "a", "loadBalancerType": "network", "subnets": ["subnet-1", "subnet-2"]}
POLICED = {"queueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/q"}


def policy(statement: Any, **more: Any) -> str:
    """Return a policy's document."""
    return json.dumps({"Version": "2012-10-17", "Statement": statement, **more})


def without(inputs: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if name != key}
