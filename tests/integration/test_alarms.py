"""Alarms and dashboards as they are provisioned: each watches something that is really there."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from core.cluster import ClusterSpec, parse
from core.cluster.operated import operated_cluster
from infra.alerts.alarms import alarms
from infra.alerts.dashboards import dashboards
from local.demo import spec as demo_spec
from tests.integration.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@pytest.fixture
def spec(cluster: Cluster) -> ClusterSpec:
    """The description that the shared cluster was made from."""
    return parse(demo_spec.spec(cluster.twin.place))


def there(cluster: Cluster, prefix: str) -> list[dict[str, Any]]:
    pages = cluster.twin.aws("cloudwatch").get_paginator("describe_alarms")
    return [
        dict(alarm)
        for page in pages.paginate(AlarmNamePrefix=f"{prefix}-")
        for alarm in page["MetricAlarms"]
    ]


def dimensions(cluster: Cluster, prefix: str) -> Iterator[tuple[str, str]]:
    for alarm in there(cluster, prefix):
        for query in alarm["Metrics"]:
            for each in query.get("MetricStat", {}).get("Metric", {}).get("Dimensions", []):
                yield each["Name"], each["Value"]


def test_every_alarm_stands_and_tells_one_encrypted_topic(
    cluster: Cluster, spec: ClusterSpec
) -> None:
    standing = there(cluster, spec.prefix)
    assert {alarm["AlarmName"] for alarm in standing} == {
        f"{spec.prefix}-{alarm.key}" for alarm in alarms(operated_cluster(spec))
    }
    topic = str(cluster.outputs["alerts_topic"])
    assert {action for alarm in standing for action in alarm["AlarmActions"]} == {topic}
    sns = cluster.twin.aws("sns")
    assert sns.get_topic_attributes(TopicArn=topic)["Attributes"]["KmsMasterKeyId"]
    (heard,) = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert heard["Endpoint"] == "on-call@example.com"


def test_what_an_alarm_watches_exists(cluster: Cluster, spec: ClusterSpec) -> None:
    looks = {
        "QueueName": lambda name: cluster.twin.aws("sqs").get_queue_url(QueueName=name),
        "FunctionName": lambda name: cluster.twin.aws("lambda").get_function(FunctionName=name),
        "TableName": lambda name: cluster.twin.aws("dynamodb").describe_table(TableName=name),
    }
    seen = set()
    for name, value in set(dimensions(cluster, spec.prefix)):
        if name in looks:
            looks[name](value)  # raises where it is not
            seen.add(name)
    assert seen == set(looks)


def test_dashboards_are_where_grafanas_sidecar_looks(cluster: Cluster, spec: ClusterSpec) -> None:
    path = "/api/v1/namespaces/kafka/configmaps?labelSelector=grafana_dashboard%3D1"
    found = cluster.twin.api.get(path)["items"]
    uids = {json.loads(text)["uid"] for each in found for text in each["data"].values()}
    assert uids == {dashboard["uid"] for dashboard in dashboards(spec).values()}
