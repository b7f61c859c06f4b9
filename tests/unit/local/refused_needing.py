"""What one input needs or rules out of another, and what stands inside documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    SUBSCRIBED,
    SUBSCRIPTION,
    TABLES,
)
from tests.unit.local.refused_schema import REPORTS, SPARK
from tests.unit.local.seeded_inputs import TABLE, TEMPLATE, template

LISTENER, KEY, QUEUE = "lb/listener:Listener", "kms/key:Key", "sqs/queue:Queue"
ALLOWED, TOPIC = "sqs/redriveAllowPolicy:RedriveAllowPolicy", "sns/topic:Topic"
DASHBOARD, SUBNET = "cloudwatch/dashboard:Dashboard", "ec2/subnet:Subnet"
PLACED = {"vpcId": "vpc-0123456789abcdef0", "availabilityZone": "us-east-1a"}
VALUE, PARAMETER = "InvalidParameterValue", "InvalidParameterValueException"
BODY = "InvalidParameterInput"
SOURCE = "arn:aws:sqs:us-east-1:123456789012:q"


def allowing(**policy: Any) -> Mapping[str, Any]:
    url = "https://sqs.us-east-1.amazonaws.com/123456789012/d"
    return {"queueUrl": url, "redriveAllowPolicy": json.dumps(policy)}


def retried(**policy: int) -> Mapping[str, Any]:
    return {
        "name": "t",
        "deliveryPolicy": json.dumps({"http": {"defaultHealthyRetryPolicy": policy}}),
    }


def working(kind: str = "Executor", count: int = 1, **size: str) -> Mapping[str, Any]:
    config = {"workerCount": count, "workerConfiguration": size}
    return {
        **REPORTS,
        "initialCapacities": [{"initialCapacityType": kind, "initialCapacityConfig": config}],
    }


def drawn(kind: str = "metric", **properties: Any) -> Mapping[str, Any]:
    told = {"region": "us-east-1", "metrics": [["AWS/SQS", "Age", "QueueName", "q"]]}
    widget = {"type": kind, "properties": {**(told if kind == "metric" else {}), **properties}}
    return {"dashboardName": "d", "dashboardBody": json.dumps({"widgets": [widget]})}


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a graph of 45 seconds": (DASHBOARD, drawn(period=45), BODY),
    "a graph of an odd name": (DASHBOARD, drawn(metrics=[["AWS/SQS", "Age", "QueueName"]]), BODY),
    "a graph's middle axis": (DASHBOARD, drawn(yAxis={"middle": {"min": 0}}), BODY),
    "a line at no value": (DASHBOARD, drawn(annotations={"horizontal": [{"label": "x"}]}), BODY),
    "a legend at the top": (DASHBOARD, drawn(legend={"position": "top"}), BODY),
    "an alarm by its name": (DASHBOARD, drawn("alarm", alarms=["late"]), BODY),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a stream: with its view": (
        TABLES,
        {**TABLE, "streamEnabled": True, "streamViewType": "NEW_IMAGE"},
    ),
    "a key: that signs": (
        KEY,
        {"keyUsage": "SIGN_VERIFY", "customerMasterKeySpec": "ECC_NIST_P256"},
    ),
    "a period: of a rotation": (KEY, {"enableKeyRotation": True, "rotationPeriodInDays": 180}),
    "cores: with threads": (TEMPLATE, template(cpuOptions={"coreCount": 2, "threadsPerCore": 1})),
    "a permission: of one queue": (
        ALLOWED,
        allowing(redrivePermission="byQueue", sourceQueueArns=[SOURCE]),
    ),
    "a permission: of nobody": (ALLOWED, allowing(redrivePermission="denyAll")),
    "retries: of a topic": (TOPIC, retried(minDelayTarget=2, maxDelayTarget=20, numRetries=3)),
    "a filter: by prefix": (
        SUBSCRIPTION,
        {**SUBSCRIBED, "filterPolicy": json.dumps({"a": ["b", {"prefix": "c"}]})},
    ),
    "a worker: of eight vCPUs": (SPARK, working(cpu="8 vCPU", memory="20 GB", disk="200 GB")),
    "a graph: with everything": (
        DASHBOARD,
        drawn(
            period=300,
            stat="p99",
            legend={"position": "right"},
            yAxis={"left": {"min": 0, "max": 9.5}},
            annotations={"horizontal": [{"value": 1, "color": "#ff6384", "fill": "above"}]},
            metrics=[
                ["AWS/SQS", "Age", "QueueName", "q", {"id": "m1", "color": "#ff6384"}],
                ["...", "r", {"yAxis": "right"}],
                [{"expression": "m1 * 2", "id": "e1"}],
            ],
        ),
    ),
}
