"""Alarms, rules, schedules, logs, topics and queues."""

from __future__ import annotations

from typing import Any

from local.refusals.calls import Parameters, reads
from local.refusals.catalogue.parameters import Inputs, attributes, pick
from local.refusals.documents import text
from local.refusals.model import input_shape
from local.shapes import coerce

QUEUE = {
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "maxMessageSize": "MaximumMessageSize",
    "delaySeconds": "DelaySeconds",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "policy": "Policy",
    "redrivePolicy": "RedrivePolicy",
    "redriveAllowPolicy": "RedriveAllowPolicy",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "kmsDataKeyReusePeriodSeconds": "KmsDataKeyReusePeriodSeconds",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "fifoQueue": "FifoQueue",
    "contentBasedDeduplication": "ContentBasedDeduplication",
}
TOPIC = {
    "displayName": "DisplayName",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "policy": "Policy",
    "deliveryPolicy": "DeliveryPolicy",
}


def queue_attributes(inputs: Inputs) -> dict[str, str]:
    """Return a queue's attributes; SQS does not take FifoQueue where it is not one."""
    found = attributes(inputs, QUEUE)
    return {key: value for key, value in found.items() if (key, value) != ("FifoQueue", "false")}


def _dimensions(given: Any) -> list[Parameters]:
    return [{"Name": name, "Value": value} for name, value in sorted((given or {}).items())]


def _series(query: Inputs) -> Parameters:
    """Return one of an alarm's series, or the sum over them, as CloudWatch takes it."""
    plain = {"id": "Id", "expression": "Expression", "label": "Label", "returnData": "ReturnData"}
    found = pick(query, {**plain, "accountId": "AccountId", "period": "Period"})
    metric = query.get("metric")
    if metric:
        found["MetricStat"] = {
            "Metric": {
                **pick(metric, {"namespace": "Namespace", "metricName": "MetricName"}),
                "Dimensions": _dimensions(metric.get("dimensions")),
            },
            **pick(metric, {"period": "Period", "stat": "Stat", "unit": "Unit"}),
        }
    return found


@reads("metricQueries", "dimensions")
def alarm(inputs: Inputs) -> Parameters:
    """Return an alarm's series and its dimensions."""
    return {
        "Metrics": [_series(query) for query in inputs.get("metricQueries") or ()] or None,
        "Dimensions": _dimensions(inputs.get("dimensions")) or None,
    }


_TARGET = "arn deadLetterConfig input inputPath retryPolicy roleArn"


@reads("rule", "targetId", *_TARGET.split())
def target(inputs: Inputs) -> Parameters:
    """Return a rule's target; an id is drawn where it has none."""
    shape = input_shape("events", "PutTargets").members["Targets"].member
    found = coerce(shape, inputs)
    found["Id"] = inputs.get("targetId") or "terraform"
    return {"Rule": inputs["rule"], "Targets": [found]}


@reads(*TOPIC)
def topic(inputs: Inputs) -> Parameters:
    """Return a topic's attributes."""
    return {"Attributes": attributes(inputs, TOPIC)}


@reads("arn", "policy")
def topic_policy(inputs: Inputs) -> Parameters:
    """Return a topic's policy, which is one of its attributes."""
    value = text(inputs["policy"])
    return {"TopicArn": inputs["arn"], "AttributeName": "Policy", "AttributeValue": value}


@reads(*QUEUE)
def queue(inputs: Inputs) -> Parameters:
    """Return a queue's attributes."""
    return {"Attributes": queue_attributes(inputs)}


@reads("policy")
def queue_policy(inputs: Inputs) -> Parameters:
    """Return a queue's policy, which is one of its attributes."""
    return {"Attributes": {"Policy": text(inputs["policy"])}}


@reads("redriveAllowPolicy")
def redrive_allow_policy(inputs: Inputs) -> Parameters:
    """Return who may send a queue what it did not read."""
    return {"Attributes": {"RedriveAllowPolicy": inputs["redriveAllowPolicy"]}}
