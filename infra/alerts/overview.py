"""One page in CloudWatch: every alarm's state, and what the functions counted.

For who is called and has nothing but a browser and the account; Grafana's dashboards
(infra.alerts.dashboards) show Kafka itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from core import metric_names as counted
from core import naming
from core.cluster.operated import Operated
from infra.alerts.alarms import Alarm
from infra.iam import Account

WIDTH = 24


def body(cluster: Operated, account: Account, alarms: Sequence[Alarm]) -> str:
    """Return the dashboard's body as CloudWatch takes it."""
    arns = [
        account.arn("cloudwatch", f"alarm:{naming.alarm(cluster.prefix, alarm.key)}")
        for alarm in alarms
    ]
    own = [
        [counted.NAMESPACE, name, counted.CLUSTER_DIMENSION, cluster.prefix] for name in counted.ALL
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
        _widget(0, 6, "alarm", {"title": "Alarms", "alarms": arns}),
        _widget(6, 6, "metric", _graph("What the functions counted", own, "Sum", cluster.region)),
        _widget(12, 6, "metric", _graph("Oldest message, s", waiting, "Maximum", cluster.region)),
    ]
    return json.dumps({"widgets": widgets}, sort_keys=True)


def _widget(y: int, height: int, kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": kind,
        "x": 0,
        "y": y,
        "width": WIDTH,
        "height": height,
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
