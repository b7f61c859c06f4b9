"""Announcements for the tests of core.events: the kept ones, and those that are to be varied."""

from __future__ import annotations

import json
from typing import Any

from core.events import Ignored, Interruption, parse
from tests.announcements import load

LAUNCH = load("asg-launch-hook")
SPOT = load("spot")
REBALANCE = load("rebalance")
STOPPING = load("state-stopping")
RESERVATION = load("capacity-reservation")
# The older schema: bare ids, no communicationId. A real capture.
RETIREMENT_2018 = load("health-2018")
TERMINATE: dict[str, Any] = {
    "version": "0",
    "id": "782d5b4c-0f6f-1fd6-9d62-ecf6aed0a470",
    "detail-type": "EC2 Instance-terminate Lifecycle Action",
    "source": "aws.autoscaling",
    "account": "123456789012",
    "time": "2020-07-01T22:19:58Z",
    "region": "us-east-1",
    "resources": ["arn:aws:autoscaling:us-east-1:123456789012:autoScalingGroup:26e7234b:nth"],
    "detail": {
        "LifecycleActionToken": "0befcbdb-6ecd-498a-9ff7-ae9b54447cd6",
        "AutoScalingGroupName": "nth-test1",
        "LifecycleHookName": "drain",
        "EC2InstanceId": "i-0633ac2b0d9769723",
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    },
}
# The same announcement as the group sends it to a queue of its own, and as SNS wraps it.
DIRECT: dict[str, Any] = {
    **TERMINATE["detail"],
    "AccountId": "123456789012",
    "Event": "",
    "RequestId": "3775fac9-93c3-7ead-8713-159816566000",
    "Service": "AWS Auto Scaling",
    "Time": "2020-07-01T22:19:58.872Z",
}


def ec2(detail_type: str, **detail: str) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "5d5555d5-dd55-5555-5555-5555dd55d55d",
        "detail-type": detail_type,
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2020-10-26T14:14:14Z",
        "region": "us-east-1",
        "resources": ["arn:aws:ec2:us-east-1b:instance/i-0b662ef9931388ba0"],
        "detail": {"instance-id": "i-0b662ef9931388ba0", **detail},
    }


def retirement(*entities: str, **detail: str) -> dict[str, Any]:
    """A retirement in today's schema: ARNs for entities, `resources` absent."""
    return {
        "version": "0",
        "id": "7bf73129-1428-4cd3-a780-95db273d1602",
        "detail-type": "AWS Health Event",
        "source": "aws.health",
        "account": "123456789012",
        "time": "2026-01-27T01:43:21Z",
        "region": "us-east-1",
        "detail": {
            "eventArn": "arn:aws:health:us-east-1::event/AWS_EC2_INSTANCE_RETIREMENT_9035",
            "service": "EC2",
            "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
            "eventTypeCategory": "scheduledChange",
            "communicationId": "1234abc01232a4012345678-1",
            "startTime": "Thu, 27 Aug 2026 13:19:03 GMT",
            "lastUpdatedTime": "Thu, 27 Jan 2026 13:44:13 GMT",
            "statusCode": "open",
            "eventRegion": "us-east-1",
            "affectedEntities": [
                {
                    "entityValue": f"arn:aws:ec2:us-east-1:123456789012:instance/{entity}",
                    "status": "PENDING",
                }
                for entity in entities
            ],
            "affectedAccount": "123456789012",
            "page": "1",
            "totalPages": "1",
            "backupEvent": "false",
            **detail,
        },
    }


def one(message: object) -> Interruption:
    (found,) = parse(json.dumps(message))
    assert isinstance(found, Interruption), found
    return found


def parse_ignored(message: object) -> Ignored:
    (found,) = parse(json.dumps(message))
    assert isinstance(found, Ignored), found
    return found


def with_detail(message: dict[str, Any], **detail: object) -> dict[str, Any]:
    return {**message, "detail": {**message["detail"], **detail}}
