"""Inputs that AWS takes, of which seeded violations change one thing."""

from __future__ import annotations

import json
from typing import Any

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


INGRESS = "vpc/securityGroupIngressRule:SecurityGroupIngressRule"
LAMBDA = "lambda/function:Function"
HOOK = "autoscaling/lifecycleHook:LifecycleHook"
TEMPLATE = "ec2/launchTemplate:LaunchTemplate"
LOG_GROUP = "cloudwatch/logGroup:LogGroup"
