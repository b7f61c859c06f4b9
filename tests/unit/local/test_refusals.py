"""The gate: a violation of each kind is refused, in AWS's words, and what is right is not.

One row per kind of limit. The twin's provider asks the same gate, so what is refused here fails
`up local` as well.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from local.refusals import afterwards, calls, gate, limits, together
from local.refusals.refusal import Refusal, Wanted

GROUP = {"securityGroupId": "sg-0123456789abcdef0", "ipProtocol": "tcp", "fromPort": 443}
RULE = {**GROUP, "toPort": 443, "cidrIpv4": "10.0.0.0/16"}
FUNCTION = {
    "name": "tick",
    "role": "arn:aws:iam::123456789012:role/tick",
    "runtime": "python3.13",
    "handler": "handlers.tick.handler",
    "code": "function.zip",
}
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
ROLE = {"name": "tick", "assumeRolePolicy": json.dumps(TRUST)}
TARGET_GROUP = {"name": "broker-10", "port": 9094, "protocol": "TCP", "vpcId": "vpc-0123"}
TABLE = {
    "name": "incidents",
    "billingMode": "PAY_PER_REQUEST",
    "hashKey": "pk",
    "attributes": [{"name": "pk", "type": "S"}],
}
ALARM = {
    "name": "x",
    "comparisonOperator": "GreaterThanThreshold",
    "evaluationPeriods": 3,
    "threshold": 1,
}
SCALING = {"name": "g", "minSize": 1, "maxSize": 2, "vpcZoneIdentifiers": ["subnet-1"]}
EXPORT = {
    "export": {
        "name": "bill",
        "dataQueries": [
            {
                "queryStatement": "SELECT a FROM COST_AND_USAGE_REPORT",
                "tableConfigurations": {"COST_AND_USAGE_REPORT": {"TIME_GRANULARITY": "HOURLY"}},
            }
        ],
        "destinationConfigurations": [
            {
                "s3Destinations": [
                    {
                        "s3Bucket": "bucket",
                        "s3Prefix": "export",
                        "s3Region": "us-east-1",
                        "s3OutputConfigurations": [
                            {
                                "outputType": "CUSTOM",
                                "format": "PARQUET",
                                "compression": "PARQUET",
                                "overwrite": "OVERWRITE_REPORT",
                            }
                        ],
                    }
                ]
            }
        ],
        "refreshCadences": [{"frequency": "SYNCHRONOUS"}],
    }
}


def document(characters: int) -> str:
    """Return a policy of about so many characters."""
    resources = [f"arn:aws:s3:::{'b' * 40}/{n:05}" for n in range(characters // 60)]
    statement = {"Sid": "Long", "Effect": "Allow", "Action": "s3:*", "Resource": resources}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def template(**changed: Any) -> dict[str, Any]:
    return {"name": "nodes", **changed}


def disk(**ebs: Any) -> dict[str, Any]:
    volume = {"volumeType": "gp3", **ebs}
    return template(blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": volume}])


def seeded(kind: str, token: str, inputs: dict[str, Any], code: str, words: str) -> Any:
    return pytest.param(f"aws:{token}", inputs, code, words, id=kind)


INGRESS = "vpc/securityGroupIngressRule:SecurityGroupIngressRule"
LAMBDA = "lambda/function:Function"
HOOK = "autoscaling/lifecycleHook:LifecycleHook"
TEMPLATE = "ec2/launchTemplate:LaunchTemplate"
LOG_GROUP = "cloudwatch/logGroup:LogGroup"
SEEDED = [
    seeded(
        "an apostrophe in a rule's description",
        INGRESS,
        {**RULE, "description": "Stillwater's functions"},
        "InvalidParameterValue",
        "Invalid rule description. Valid descriptions are strings less than 256 characters",
    ),
    seeded(
        "a security group's description of 300 characters",
        "ec2/securityGroup:SecurityGroup",
        {"name": "nlb", "description": "x" * 300},
        "InvalidParameterValue",
        "Invalid security group description",
    ),
    seeded(
        "a group named like an id",
        "ec2/securityGroup:SecurityGroup",
        {"name": "sg-nlb", "description": "x"},
        "InvalidParameterValue",
        "sg-*",
    ),
    seeded(
        "an environment of 4 KB",
        LAMBDA,
        {**FUNCTION, "environment": {"variables": {"STILLWATER_A": '"' * 2100}}},
        "InvalidParameterValueException",
        "exceeded the 4KB limit. String measured:",
    ),
    seeded(
        "a variable of the runtime's own",
        LAMBDA,
        {**FUNCTION, "environment": {"variables": {"AWS_REGION": "x"}}},
        "InvalidParameterValueException",
        "Reserved keys used in this request: AWS_REGION",
    ),
    seeded(
        "a VPC among the loopback addresses",
        "ec2/vpc:Vpc",
        {"cidrBlock": "127.0.0.0/16"},
        "InvalidVpc.Range",
        "The CIDR '127.0.0.0/16' is invalid.",
    ),
    seeded(
        "a zone whose part has 64 characters",
        "route53/zone:Zone",
        {"name": f"{'k' * 64}.internal", "vpcs": [{"vpcId": "vpc-0123456789abcdef0"}]},
        "InvalidDomainName",
        "DomainLabelTooLong",
    ),
    seeded(
        "a record with a space",
        "route53/record:Record",
        {"zoneId": "Z0123456789ABCDEFGHIJ", "name": "kafka a.internal", "type": "A"},
        "InvalidChangeBatch",
        "UnsupportedCharacter",
    ),
    seeded(
        "a bucket as a principal of an endpoint service",
        "ec2/vpcEndpointService:VpcEndpointService",
        {"acceptanceRequired": False, "allowedPrincipals": ["arn:aws:s3:::x"]},
        "InvalidPrincipal",
        "arn:aws:s3:::x",
    ),
    seeded(
        "an add-on's latest version",
        "eks/addon:Addon",
        {"clusterName": "test-orders", "addonName": "coredns", "addonVersion": "latest"},
        "InvalidParameterException",
        "Addon version specified is not supported",
    ),
    seeded(
        "an e-mail address with an umlaut",
        "sns/topicSubscription:TopicSubscription",
        {
            "topic": "arn:aws:sns:us-east-1:123456789012:alerts",
            "protocol": "email",
            "endpoint": "ü@example.org",
        },
        "InvalidParameter",
        "Email address",
    ),
    seeded(
        "a function of 20 minutes",
        LAMBDA,
        {**FUNCTION, "timeout": 1200},
        "ValidationException",
        "less than or equal to 900",
    ),
    seeded(
        "a runtime there is not",
        LAMBDA,
        {**FUNCTION, "runtime": "python4"},
        "ValidationException",
        "enum value set",
    ),
    seeded(
        "a function's name of 65 characters",
        LAMBDA,
        {**FUNCTION, "name": "x" * 65},
        "ValidationException",
        "less than or equal to 64",
    ),
    seeded(
        "a role's name of 65 characters",
        "iam/role:Role",
        {**ROLE, "name": "x" * 65},
        "ValidationError",
        "less than or equal to 64",
    ),
    seeded(
        "a trust policy of 3,000 characters",
        "iam/role:Role",
        {"name": "r", "assumeRolePolicy": document(3000)},
        "LimitExceeded",
        "Cannot exceed quota for ACLSizePerRole: 2048",
    ),
    seeded(
        "an inline policy of 11,000 characters",
        "iam/rolePolicy:RolePolicy",
        {"role": "r", "policy": document(11_500)},
        "LimitExceeded",
        "Maximum policy size of 10240 bytes exceeded for role r",
    ),
    seeded(
        "a managed policy of 7,000 characters",
        "iam/policy:Policy",
        {"name": "p", "policy": document(7000)},
        "LimitExceeded",
        "Cannot exceed quota for PolicySize: 6144",
    ),
    seeded(
        "a statement's id with a dash",
        "iam/rolePolicy:RolePolicy",
        {"role": "r", "policy": document(100).replace("Long", "read-it")},
        "MalformedPolicyDocument",
        "must be alpha-numeric",
    ),
    seeded(
        "eleven tags on an object",
        "s3/bucketObjectv2:BucketObjectv2",
        {"bucket": "b", "key": "k", "tagsAll": {f"t{n}": "x" for n in range(11)}},
        "BadRequest",
        "Object tags cannot be greater than 10",
    ),
    seeded(
        "fifty-one tags on a queue",
        "sqs/queue:Queue",
        {"name": "q", "tagsAll": {f"t{n}": "x" for n in range(51)}},
        "TooManyTagsException",
        "50",
    ),
    seeded(
        "a tag of AWS's own",
        "sqs/queue:Queue",
        {"name": "q", "tagsAll": {"aws:team": "x"}},
        "InvalidParameterException",
        "aws: prefixed tag key names are not allowed",
    ),
    seeded(
        "two tags that differ by case",
        "iam/role:Role",
        {**ROLE, "tagsAll": {"Team": "a", "team": "b"}},
        "InvalidInput",
        "Duplicate tag keys found",
    ),
    seeded(
        "user data of 17 KB",
        TEMPLATE,
        template(userData=base64.b64encode(b"x" * 17_000).decode()),
        "InvalidUserData.Malformed",
        "User data is limited to 16384 bytes",
    ),
    seeded(
        "a template's name of two characters",
        TEMPLATE,
        {"name": "xy"},
        "InvalidLaunchTemplateName.MalformedException",
        "between 3 and 128 characters",
    ),
    seeded(
        "a gp3 volume of too many IOPS",
        TEMPLATE,
        disk(volumeSize=10, iops=6000),
        "InvalidParameterCombination",
        "ratio",
    ),
    seeded(
        "a gp3 volume of 3,000 MiB/s",
        TEMPLATE,
        disk(volumeSize=1000, iops=16_000, throughput=3000),
        "InvalidParameterValue",
        "out of range",
    ),
    seeded(
        "a target group's name with a hyphen at its end",
        "lb/targetGroup:TargetGroup",
        {**TARGET_GROUP, "name": "broker-"},
        "ValidationError",
        "cannot begin or end with a hyphen",
    ),
    seeded(
        "a balancer's name of 33 characters",
        "lb/loadBalancer:LoadBalancer",
        {"name": "x" * 33, "loadBalancerType": "network"},
        "ValidationError",
        "cannot be longer than '32' characters",
    ),
    seeded(
        "a health check every 2 s",
        "lb/targetGroup:TargetGroup",
        {**TARGET_GROUP, "healthCheck": {"interval": 2, "timeout": 2}},
        "ValidationError",
        "greater than or equal to 5",
    ),
    seeded(
        "a log kept 42 days",
        LOG_GROUP,
        {"name": "/aws/lambda/x", "retentionInDays": 42},
        "InvalidParameterException",
        "enum value set",
    ),
    seeded(
        "a log group with a space in its name",
        LOG_GROUP,
        {"name": "/aws/lambda/a b"},
        "InvalidParameterException",
        "regular expression pattern",
    ),
    seeded(
        "a queue that hides messages for a day",
        "sqs/queue:Queue",
        {"name": "q", "visibilityTimeoutSeconds": 86_400},
        "InvalidAttributeValue",
        "VisibilityTimeout",
    ),
    seeded(
        "a hook with a heartbeat of 3 h",
        "autoscaling/lifecycleHook:LifecycleHook",
        {
            "name": "drain",
            "autoscalingGroupName": "g",
            "lifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
            "heartbeatTimeout": 10_800,
        },
        "ValidationError",
        "between 30 and 7200",
    ),
    seeded(
        "a group that wants more than its most",
        "autoscaling/group:Group",
        {**SCALING, "desiredCapacity": 3},
        "ValidationError",
        "must be between",
    ),
    seeded(
        "an event pattern of 3,000 characters",
        "cloudwatch/eventRule:EventRule",
        {"name": "r", "eventPattern": json.dumps({"source": ["x" * 60] * 50})},
        "InvalidEventPatternException",
        "exceeds the maximum size",
    ),
    seeded(
        "a schedule of 1 minutes",
        "cloudwatch/eventRule:EventRule",
        {"name": "r", "scheduleExpression": "rate(1 minutes)"},
        "ValidationException",
        "ScheduleExpression is not valid",
    ),
    seeded(
        "a key policy of 33 KB",
        "kms/key:Key",
        {"policy": document(36_000)},
        "LimitExceededException",
        "32768",
    ),
    seeded(
        "a key that goes in 3 days",
        "kms/key:Key",
        {"deletionWindowInDays": 3},
        "ValidationException",
        "between 7 and 30",
    ),
    seeded(
        "an alarm on 45 s",
        "cloudwatch/metricAlarm:MetricAlarm",
        {
            **ALARM,
            "metricQueries": [
                {
                    "id": "s0",
                    "returnData": True,
                    "metric": {"metricName": "m", "namespace": "n", "period": 45, "stat": "Sum"},
                }
            ],
        },
        "ValidationError",
        "45",
    ),
    seeded(
        "an attribute that no key uses",
        "dynamodb/table:Table",
        {**TABLE, "attributes": [{"name": "pk", "type": "S"}, {"name": "x", "type": "S"}]},
        "ValidationException",
        "Some AttributeDefinitions are not used",
    ),
    seeded(
        "a bucket in capitals",
        "s3/bucket:Bucket",
        {"bucket": "Billing"},
        "InvalidBucketName",
        "not valid",
    ),
    seeded(
        "groups on an entry of nodes",
        "eks/accessEntry:AccessEntry",
        {
            "clusterName": "c",
            "principalArn": "arn:aws:iam::123456789012:role/x",
            "type": "EC2_LINUX",
            "kubernetesGroups": ["g"],
        },
        "InvalidParameterException",
        "STANDARD",
    ),
    seeded(
        "ports the wrong way round",
        INGRESS,
        {**RULE, "fromPort": 500, "toPort": 400},
        "InvalidParameterValue",
        "from-port",
    ),
    seeded(
        "a VPC of a /29",
        "ec2/vpc:Vpc",
        {"cidrBlock": "10.0.0.0/29"},
        "InvalidVpc.Range",
        "is invalid",
    ),
    seeded(
        "an export that AWS adds a key to",
        "bcmdata/export:Export",
        EXPORT,
        "Drift",
        "replaced at every later `up`",
    ),
    seeded(
        "a type that nobody has looked at",
        "ec2/fleet:Fleet",
        {},
        "UnknownResourceType",
        "enter it",
    ),
]


@pytest.mark.parametrize(("token", "inputs", "code", "words"), SEEDED)
def test_a_violation_is_refused_in_awss_words(
    token: str, inputs: dict[str, Any], code: str, words: str
) -> None:
    found = gate.refusals(Wanted(token, "seeded", inputs))
    assert [f for f in found if f.code == code and words in f.message], found
    assert all("seeded" in refusal.sentence for refusal in found)


def test_every_limit_says_where_it_stands_written() -> None:
    sources = [each.source for each in (*limits.LIMITS, *together.COUNTED)]
    sources += [each.source for added in afterwards.ADDITIONS.values() for each in added]
    assert all(source.startswith("https://") for source in sources)
    assert len(limits.LIMITS) > 40


def test_no_type_is_let_through_without_calls_or_a_reason() -> None:
    for token, made in calls.TYPES.items():
        assert made.calls, token
        assert all(reason for reason in made.apart.values()), token
    assert all(calls.UNMODELLED.values())


def test_a_refusal_reads_as_aws_writes_it() -> None:
    refusal = Refusal("CreateQueue", "QueueAlreadyExists", "It exists.", resource="q")
    assert refusal.sentence == "AWS refused CreateQueue for q (QueueAlreadyExists): It exists."
