"""Alarms, rules, schedules, logs, topics and queues."""

from __future__ import annotations

from typing import Any

from local.refusals.calls import Parameters, call, enter
from local.refusals.catalogue.parameters import Inputs, attributes
from local.refusals.model import input_shape
from local.shapes import coerce

_QUEUE = {
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "redrivePolicy": "RedrivePolicy",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "delaySeconds": "DelaySeconds",
    "fifoQueue": "FifoQueue",
    "maxMessageSize": "MaximumMessageSize",
}


_TOPIC = {"displayName": "DisplayName", "kmsMasterKeyId": "KmsMasterKeyId"}


def _dimensions(given: Any) -> list[Parameters]:
    return [{"Name": name, "Value": value} for name, value in (given or {}).items()]


def _series(query: Inputs) -> Parameters:
    metric = query.get("metric")
    plain = {"id": "Id", "expression": "Expression", "label": "Label", "returnData": "ReturnData"}
    plain |= {"accountId": "AccountId", "period": "Period"}
    found = {member: query[key] for key, member in plain.items() if query.get(key) is not None}
    if metric:
        found["MetricStat"] = {
            "Metric": {
                "Namespace": metric.get("namespace"),
                "MetricName": metric["metricName"],
                "Dimensions": _dimensions(metric.get("dimensions")),
            },
            "Period": metric["period"],
            "Stat": metric["stat"],
            "Unit": metric.get("unit"),
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
    target: Parameters = {"Id": inputs.get("targetId") or "terraform", "Arn": inputs["arn"]}
    for key, member in (("roleArn", "RoleArn"), ("input", "Input")):
        if inputs.get(key):
            target[member] = inputs[key]
    shape = input_shape("events", "PutTargets").members["Targets"].member
    blocks = {member: inputs[key] for key, member in _BLOCKS.items() if inputs.get(key)}
    if inputs.get("runCommandTargets"):
        blocks["RunCommandParameters"] = {"runCommandTargets": inputs["runCommandTargets"]}
    return {"Rule": inputs["rule"], "Targets": [{**coerce(shape, blocks), **target}]}


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
    call("sns", "CreateTopic", *_TOPIC, build=lambda i: {"Attributes": attributes(i, _TOPIC)}),
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
            "AttributeValue": i["policy"],
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
        *_QUEUE,
        names={"name": "QueueName"},
        build=lambda i: {"Attributes": attributes(i, _QUEUE)},
    ),
)
enter(
    "sqs/queuePolicy:QueuePolicy",
    call(
        "sqs",
        "SetQueueAttributes",
        "policy",
        build=lambda i: {"Attributes": {"Policy": i["policy"]}},
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
