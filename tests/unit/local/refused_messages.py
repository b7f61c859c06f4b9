"""Functions, queues, topics, rules and alarms: what each service refuses beyond its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.unit.local.aws_inputs import (
    MAPPING,
    POLICED,
    QUEUE_POLICY,
    QUEUES,
    RULE_TARGET,
    SCHEDULE,
    SCHEDULED,
    SUBSCRIBED,
    SUBSCRIPTION,
    TARGETED,
    TOPIC_ARN,
    TOPIC_POLICY,
    WATCHING,
    policy,
    without,
)
from tests.unit.local.seeded_inputs import ALARM, FUNCTION, LAMBDA
from tests.unit.local.test_refused_parts import ALARM_TYPE, METRIC, QUEUE, RULE_TYPE

REFUSED: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a function: disk": (
        LAMBDA,
        {**FUNCTION, "ephemeralStorage": {"size": 20000}},
        "InvalidParameterValueException",
    ),
    "a function: subnets no groups": (
        LAMBDA,
        {**FUNCTION, "vpcConfig": {"subnetIds": ["subnet-1"], "securityGroupIds": []}},
        "InvalidParameterValueException",
    ),
    "a mapping: fifo 11": (
        MAPPING,
        {
            "eventSourceArn": QUEUE + ".fifo",
            "functionName": "f",
            "batchSize": 11,
            "maximumBatchingWindowInSeconds": 5,
        },
        "InvalidParameterValueException",
    ),
    "a queue: two sse": (
        QUEUES,
        {"name": "q", "sqsManagedSseEnabled": True, "kmsMasterKeyId": "alias/x"},
        "InvalidAttributeValue",
    ),
    "a queue: dedup standard": (
        QUEUES,
        {"name": "q", "contentBasedDeduplication": True},
        "InvalidAttributeName",
    ),
    "a queue: kms reuse": (
        QUEUES,
        {"name": "q", "kmsMasterKeyId": "alias/x", "kmsDataKeyReusePeriodSeconds": 30},
        "InvalidAttributeValue",
    ),
    "a queue: redrive fifo": (
        QUEUES,
        {
            "name": "q",
            "redrivePolicy": json.dumps(
                {"deadLetterTargetArn": QUEUE + ".fifo", "maxReceiveCount": 3}
            ),
        },
        "InvalidParameterValue",
    ),
    "a queue: redrive no arn": (
        QUEUES,
        {"name": "q", "redrivePolicy": json.dumps({"maxReceiveCount": 3})},
        "InvalidParameterValue",
    ),
    "a queue: redrive, no object": (
        QUEUES,
        {"name": "q", "redrivePolicy": "5"},
        "InvalidAttributeValue",
    ),
    "a queue: redrive no count": (
        QUEUES,
        {"name": "q", "redrivePolicy": json.dumps({"deadLetterTargetArn": QUEUE})},
        "InvalidParameterValue",
    ),
    "a queue: policy json": (QUEUE_POLICY, {**POLICED, "policy": "{"}, "InvalidAttributeValue"),
    "a queue: policy no principal": (
        QUEUE_POLICY,
        {
            **POLICED,
            "policy": policy([{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}]),
        },
        "InvalidAttributeValue",
    ),
    "a subscription: protocol": (
        SUBSCRIPTION,
        {**SUBSCRIBED, "protocol": "mail", "endpoint": "a@b.org"},
        "InvalidParameter",
    ),
    "a subscription: https": (
        SUBSCRIPTION,
        {**SUBSCRIBED, "protocol": "https", "endpoint": "http://a.org"},
        "InvalidParameter",
    ),
    "a subscription: sqs fifo": (
        SUBSCRIPTION,
        {**SUBSCRIBED, "protocol": "sqs", "endpoint": QUEUE + ".fifo"},
        "InvalidParameter",
    ),
    "a subscription: lambda name": (
        SUBSCRIPTION,
        {**SUBSCRIBED, "protocol": "lambda", "endpoint": "tick"},
        "InvalidParameter",
    ),
    "a topic: policy json": (TOPIC_POLICY, {"arn": TOPIC_ARN, "policy": "{"}, "InvalidParameter"),
    "a rule: pattern json": (
        RULE_TYPE,
        {"name": "r", "eventPattern": '{"source": ['},
        "InvalidEventPatternException",
    ),
    "a rule: pattern op": (
        RULE_TYPE,
        {"name": "r", "eventPattern": json.dumps({"source": [{"begins": "x"}]})},
        "InvalidEventPatternException",
    ),
    "a rule: cron ??": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0 12 ? * ? *)"},
        "ValidationException",
    ),
    "a rule: cron 60": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(60 12 * * ? *)"},
        "ValidationException",
    ),
    "a rule: cron 24": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0 24 * * ? *)"},
        "ValidationException",
    ),
    "a rule: cron day 0": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0 1 ? * 0 *)"},
        "ValidationException",
    ),
    "a rule: cron MONDAY": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0 1 ? * MONDAY *)"},
        "ValidationException",
    ),
    "a rule: cron year": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0 1 * * ? 1969)"},
        "ValidationException",
    ),
    "a target: two inputs": (
        RULE_TARGET,
        {**TARGETED, "input": "{}", "inputPath": "$.x"},
        "ValidationException",
    ),
    "a target: input no json": (RULE_TARGET, {**TARGETED, "input": "hello"}, "ValidationException"),
    "a target: dlq not queue": (
        RULE_TARGET,
        {**TARGETED, "deadLetterConfig": {"arn": "arn:aws:sns:us-east-1:123456789012:x"}},
        "ValidationException",
    ),
    "a target: dlq fifo": (
        RULE_TARGET,
        {**TARGETED, "deadLetterConfig": {"arn": QUEUE + ".fifo"}},
        "ValidationException",
    ),
    "a target: arn": (RULE_TARGET, {**TARGETED, "arn": "tick"}, "ValidationException"),
    "a schedule: zone": (
        SCHEDULE,
        {**SCHEDULED, "scheduleExpressionTimezone": "Mars/Base"},
        "ValidationException",
    ),
    "a schedule: at": (
        SCHEDULE,
        {**SCHEDULED, "scheduleExpression": "at(2026-13-01T00:00:00)"},
        "ValidationException",
    ),
    "a schedule: at, without its bracket": (
        SCHEDULE,
        {**SCHEDULED, "scheduleExpression": "at(2026-12-01T00:00:00"},
        "ValidationException",
    ),
    "an alarm: no stat": (
        ALARM_TYPE,
        {**ALARM, "metricName": "m", "namespace": "n", "period": 60},
        "ValidationError",
    ),
    "an alarm: two stats": (
        ALARM_TYPE,
        {**WATCHING, "extendedStatistic": "p99"},
        "ValidationError",
    ),
    "an alarm: p101": (
        ALARM_TYPE,
        {**ALARM, "metricName": "m", "namespace": "n", "period": 60, "extendedStatistic": "p101"},
        "ValidationError",
    ),
    "an alarm: missing": (ALARM_TYPE, {**WATCHING, "treatMissingData": "ok"}, "ValidationError"),
    "an alarm: no threshold": (ALARM_TYPE, without(WATCHING, "threshold"), "ValidationError"),
    "an alarm: action": (ALARM_TYPE, {**WATCHING, "alarmActions": ["on-call"]}, "ValidationError"),
    "an alarm: aws 10s": (
        ALARM_TYPE,
        {**WATCHING, "namespace": "AWS/SQS", "period": 10},
        "ValidationError",
    ),
    "an alarm: no period": (ALARM_TYPE, without(WATCHING, "period"), "ValidationError"),
    "an alarm: dup ids": (
        ALARM_TYPE,
        {
            **ALARM,
            "metricQueries": [
                {"id": "a", "metric": METRIC, "returnData": True},
                {"id": "a", "metric": METRIC, "returnData": False},
            ],
        },
        "ValidationError",
    ),
}
TAKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a function: in no network": (
        LAMBDA,
        {**FUNCTION, "vpcConfig": {"subnetIds": [], "securityGroupIds": []}},
    ),
    "a queue: dead letters": (
        QUEUES,
        {
            "name": "work",
            "redrivePolicy": json.dumps({"deadLetterTargetArn": QUEUE, "maxReceiveCount": 3}),
        },
    ),
    "a FIFO queue: of its own": (
        QUEUES,
        {
            "name": "work.fifo",
            "fifoQueue": True,
            "contentBasedDeduplication": True,
            "redrivePolicy": json.dumps(
                {"deadLetterTargetArn": f"{QUEUE}.fifo", "maxReceiveCount": "3"}
            ),
        },
    ),
    "a subscription: filtered": (
        SUBSCRIPTION,
        {**SUBSCRIBED, "filterPolicy": json.dumps({"a": ["b"]})},
    ),
    "a subscription: by https": (
        SUBSCRIPTION,
        {**SUBSCRIBED, "protocol": "https", "endpoint": "https://a.org"},
    ),
    "a pattern: every match": (
        RULE_TYPE,
        {
            "name": "r",
            "eventPattern": json.dumps(
                {
                    "source": [{"prefix": "aws."}, {"anything-but": ["x"]}],
                    "detail": {"n": [{"numeric": [">", 1]}], "e": [{"exists": False}]},
                    "$or": [{"a": ["b"]}, {"c": ["d"]}],
                }
            ),
        },
    ),
    "a cron: names, steps and ranges": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0/15 8-17 ? JAN-MAR,jun MON-FRI *)"},
    ),
    "a cron: the last Friday": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0 1 ? * 6L 2026-2030)"},
    ),
    "a cron: the last day": (RULE_TYPE, {"name": "r", "scheduleExpression": "cron(59 23 L * ? *)"}),
    "a cron: the second Tuesday": (
        RULE_TYPE,
        {"name": "r", "scheduleExpression": "cron(0 3 ? * TUE#2 *)"},
    ),
    "a target: constant": (
        RULE_TARGET,
        {**TARGETED, "input": '"x"', "deadLetterConfig": {"arn": QUEUE}},
    ),
    "a schedule: in a zone": (
        SCHEDULE,
        {
            **SCHEDULED,
            "scheduleExpressionTimezone": "Europe/Berlin",
            "scheduleExpression": "at(2026-12-31T23:59:59)",
        },
    ),
    "an alarm: of a percentile": (
        ALARM_TYPE,
        {
            **without(WATCHING, "statistic"),
            "extendedStatistic": "p99.9",
            "treatMissingData": "notBreaching",
        },
    ),
    "an alarm: fast, on one's own": (ALARM_TYPE, {**WATCHING, "period": 10}),
}
