"""Alarms, rules, schedules, logs, topics and queues."""

from __future__ import annotations

from typing import Any

from local.refusals.calls import Parameters, call, enter
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


def _alarm(inputs: Inputs) -> Parameters:
    return {
        "Metrics": [_series(query) for query in inputs.get("metricQueries") or ()] or None,
        "Dimensions": _dimensions(inputs.get("dimensions")) or None,
    }


# A target's block -> the member it is, as far as their keys bear the members' names.
_BLOCKS = {
    "deadLetterConfig": "deadLetterConfig",
    "ecsTarget": "ecsParameters",
    "kinesisTarget": "kinesisParameters",
    "retryPolicy": "retryPolicy",
    "sqsTarget": "sqsParameters",
}


def _target(inputs: Inputs) -> Parameters:
    shape = input_shape("events", "PutTargets").members["Targets"].member
    blocks = {member: inputs[key] for key, member in _BLOCKS.items() if inputs.get(key)}
    if inputs.get("runCommandTargets"):
        blocks["RunCommandParameters"] = {"runCommandTargets": inputs["runCommandTargets"]}
    transformer = inputs.get("inputTransformer")
    if transformer:
        paths = transformer.get("inputPaths") or {}
        blocks["inputTransformer"] = {**transformer, "inputPathsMap": paths}
    target = coerce(shape, {**inputs, **blocks})
    target["Id"] = inputs.get("targetId") or "terraform"
    return {"Rule": inputs["rule"], "Targets": [target]}


enter("cloudwatch/dashboard:Dashboard", call("cloudwatch", "PutDashboard"))
enter("cloudwatch/eventRule:EventRule", call("events", "PutRule"))
enter(
    "cloudwatch/eventTarget:EventTarget",
    call(
        "events",
        "PutTargets",
        "arn",
        "deadLetterConfig",
        "input",
        "inputPath",
        "inputTransformer",
        "retryPolicy",
        "roleArn",
        "rule",
        "targetId",
        build=_target,
    ),
)
enter(
    "cloudwatch/logGroup:LogGroup",
    call("logs", "CreateLogGroup", names={"name": "logGroupName"}),
    call(
        "logs",
        "PutRetentionPolicy",
        names={"name": "logGroupName"},
        where=frozenset({"retentionInDays"}),
    ),
)
enter(
    "cloudwatch/metricAlarm:MetricAlarm",
    call(
        "cloudwatch",
        "PutMetricAlarm",
        "metricQueries",
        "dimensions",
        names={"name": "AlarmName"},
        build=_alarm,
    ),
)
enter("scheduler/schedule:Schedule", call("scheduler", "CreateSchedule"))
enter(
    "sns/topic:Topic",
    call("sns", "CreateTopic", *TOPIC, build=lambda i: {"Attributes": attributes(i, TOPIC)}),
)
enter(
    "sns/topicPolicy:TopicPolicy",
    call(
        "sns",
        "SetTopicAttributes",
        "arn",
        "policy",
        build=lambda i: {
            "TopicArn": i["arn"],
            "AttributeName": "Policy",
            "AttributeValue": text(i["policy"]),
        },
    ),
)
enter(
    "sns/topicSubscription:TopicSubscription", call("sns", "Subscribe", names={"topic": "TopicArn"})
)
enter(
    "sqs/queue:Queue",
    call(
        "sqs",
        "CreateQueue",
        *QUEUE,
        names={"name": "QueueName"},
        build=lambda i: {"Attributes": queue_attributes(i)},
    ),
)
enter(
    "sqs/queuePolicy:QueuePolicy",
    call(
        "sqs",
        "SetQueueAttributes",
        "policy",
        build=lambda i: {"Attributes": {"Policy": text(i["policy"])}},
    ),
)
enter(
    "sqs/redriveAllowPolicy:RedriveAllowPolicy",
    call(
        "sqs",
        "SetQueueAttributes",
        "redriveAllowPolicy",
        build=lambda i: {"Attributes": {"RedriveAllowPolicy": i["redriveAllowPolicy"]}},
    ),
)
