"""One topic that everybody listens to, the alarms that speak on it, and one page of them all.

CloudWatch cannot use AWS's own key for SNS, whose policy nobody can change (the alarm's history
then says so, and nobody is called): the topic has a key of its own that lets CloudWatch in, for
alarms of this account alone. Whoever brings a topic of their own looks after its policy. The page
in CloudWatch is for who is called and has nothing but a browser and the account.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from core.cluster.operated import Operated
from core.ground import constants, naming
from infra import iam
from infra.alerts.alarms import Alarm, AlarmMetric, alarms
from infra.functions.definition import Scope
from infra.iam import Account

WIDTH = 24


def body(cluster: Operated, account: Account, alarms: Sequence[Alarm]) -> str:
    """Return the dashboard's body as CloudWatch takes it."""
    arns = [
        account.arn("cloudwatch", f"alarm:{naming.alarm(cluster.prefix, alarm.key)}")
        for alarm in alarms
    ]
    own = [
        [constants.NAMESPACE, name, constants.CLUSTER_DIMENSION, cluster.prefix]
        for name in constants.ALL
    ]
    waiting = [
        [
            "AWS/SQS",
            "ApproximateAgeOfOldestMessage",
            "QueueName",
            naming.queue(cluster.prefix, role),
        ]
        for role in ("events", "ticks", "nth")
        if role in cluster.queues
    ]
    widgets = [
        _widget(0, "alarm", {"title": "Alarms", "alarms": arns}),
        _widget(6, "metric", _graph("What the functions counted", own, "Sum", cluster.region)),
        _widget(12, "metric", _graph("Oldest message, s", waiting, "Maximum", cluster.region)),
    ]
    return json.dumps({"widgets": widgets}, sort_keys=True)


def _widget(y: int, kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": kind,
        "x": 0,
        "y": y,
        "width": WIDTH,
        "height": 6,
        "properties": properties,
    }


def _graph(title: str, metrics: list[list[str]], statistic: str, region: str) -> dict[str, Any]:
    return {
        "title": title,
        "metrics": metrics,
        "stat": statistic,
        "period": 300,
        "region": region,
        "view": "timeSeries",
    }


TYPE = "stillwater:infra:Alerts"
KEY_DELETION_WINDOW_DAYS = 30
CLOUDWATCH = "cloudwatch.amazonaws.com"


class AlertTopic(pulumi.ComponentResource):
    """The topic, its subscribers, an alarm for each of `alarms`, and one page of them all."""

    topic_arn: pulumi.Output[str]

    def __init__(self, name: str, scope: Scope, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(TYPE, name, None, opts)
        self._name, self._scope = name, scope
        self._child = pulumi.ResourceOptions(parent=self)
        given = scope.cluster.alerts.sns_topic_arn
        self.topic_arn = self._topic() if given is None else pulumi.Output.from_input(given)
        found = alarms(scope.cluster)
        for alarm in found:
            self._alarm(alarm)
        aws.cloudwatch.Dashboard(
            f"{name}-overview",
            dashboard_name=scope.cluster.prefix,
            dashboard_body=body(scope.cluster, scope.account, found),
            opts=self._child,
        )
        self.register_outputs({"topic_arn": self.topic_arn})

    def _topic(self) -> pulumi.Output[str]:
        prefix = self._scope.cluster.prefix
        key = aws.kms.Key(
            f"{self._name}-key",
            description=f"Alerts of {prefix}",
            enable_key_rotation=True,
            deletion_window_in_days=KEY_DELETION_WINDOW_DAYS,
            policy=iam.document(self._key_statements()),
            opts=self._child,
        )
        topic = aws.sns.Topic(
            f"{self._name}-topic",
            name=f"{prefix}-alerts",
            display_name=f"Stillwater {prefix}",
            kms_master_key_id=key.key_id,
            opts=self._child,
        )
        policy = aws.sns.TopicPolicy(
            f"{self._name}-policy",
            arn=topic.arn,
            policy=iam.document(self._topic_statements(topic.arn)),
            opts=self._child,
        )
        for address in self._scope.cluster.alerts.email:
            aws.sns.TopicSubscription(
                f"{self._name}-{address}",
                topic=topic.arn,
                protocol="email",
                endpoint=address,
                opts=self._child,
            )
        # Alarms come after what lets them speak.
        return pulumi.Output.all(topic.arn, policy.id).apply(lambda known: str(known[0]))

    def _alarms_of_ours(self) -> dict[str, object]:
        account = self._scope.account
        return {
            "StringEquals": {"aws:SourceAccount": account.account_id},
            "ArnLike": {
                "aws:SourceArn": account.arn("cloudwatch", f"alarm:{self._scope.cluster.prefix}-*")
            },
        }

    def _key_statements(self) -> list[dict[str, object]]:
        return [
            {
                "Sid": "TheAccountDecides",
                "Effect": "Allow",
                "Principal": {"AWS": self._scope.account.global_arn("iam", "root")},
                # What AWS gives every key without a policy: without it nobody could ever change
                # or delete this one, not even its owner. `*` is this key.
                "Action": "kms:*",
                "Resource": "*",
            },
            {
                "Sid": "OurAlarmsMaySpeak",
                "Effect": "Allow",
                "Principal": {"Service": CLOUDWATCH},
                "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
                "Resource": "*",
                "Condition": self._alarms_of_ours(),
            },
        ]

    def _topic_statements(self, topic_arn: pulumi.Output[str]) -> list[dict[str, object]]:
        return [
            iam.only_over_tls("sns:Publish", [topic_arn]),
            {
                "Sid": "OurAlarmsMaySpeak",
                "Effect": "Allow",
                "Principal": {"Service": CLOUDWATCH},
                "Action": "sns:Publish",
                "Resource": [topic_arn],
                "Condition": self._alarms_of_ours(),
            },
        ]

    def _alarm(self, alarm: Alarm) -> None:
        cluster = self._scope.cluster
        aws.cloudwatch.MetricAlarm(
            f"{self._name}-{alarm.key}",
            name=naming.alarm(cluster.prefix, alarm.key),
            alarm_description=alarm.description(cluster.alerts.runbooks_url),
            comparison_operator="LessThanThreshold" if alarm.below else "GreaterThanThreshold",
            threshold=alarm.threshold,
            evaluation_periods=alarm.periods,
            datapoints_to_alarm=alarm.periods,
            treat_missing_data=alarm.missing.treatment,
            alarm_actions=[self.topic_arn],
            ok_actions=[self.topic_arn] if alarm.announces_end else [],
            tags={"severity": alarm.severity},
            metric_queries=_queries(alarm),
            opts=self._child,
        )


def _queries(alarm: Alarm) -> list[aws.cloudwatch.MetricAlarmMetricQueryArgsDict]:
    """Return what an alarm watches: one series, or the sum of several."""
    single = len(alarm.metrics) == 1
    watched = [
        _query(f"series{number}", metric, alarm, returned=single)
        for number, metric in enumerate(alarm.metrics)
    ]
    if single:
        return watched
    total: aws.cloudwatch.MetricAlarmMetricQueryArgsDict = {
        "id": "total",
        "expression": "SUM(METRICS())",
        "label": alarm.key,
        "return_data": True,
    }
    return [total, *watched]


def _query(
    query_id: str, metric: AlarmMetric, alarm: Alarm, *, returned: bool
) -> aws.cloudwatch.MetricAlarmMetricQueryArgsDict:
    return {
        "id": query_id,
        "return_data": returned,
        "metric": {
            "namespace": metric.namespace,
            "metric_name": metric.name,
            "dimensions": dict(metric.dimensions),
            "stat": alarm.statistic,
            "period": alarm.period_seconds,
        },
    }
