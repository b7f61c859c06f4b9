"""Alarms and topics of a program in moto: as they are written, as they change, and gone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.pulumi.aws_adapter import Aws
from local.pulumi.aws_provider import AwsProvider
from local.pulumi.provider import Existing, Resource
from local.store import ResourceStore
from local.values import Properties

TOPIC = "arn:aws:sns:us-east-1:123456789012:alerts"
PUBLISHES = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "cloudwatch.amazonaws.com"},
                "Action": "sns:Publish",
                "Resource": TOPIC,
            }
        ],
    }
)


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsProvider]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield AwsProvider(Aws(), ResourceStore(tmp_path))


def create(provider: AwsProvider, kind: str, inputs: Properties) -> Existing:
    resource = Resource(f"urn:pulumi:t::s::aws:{kind}::x")
    checked = provider.check(resource, {}, inputs)
    made = provider.create(resource, checked)
    return Existing(resource, made.id, checked, made.outputs)


def alarm() -> dict[str, Any]:
    found = boto3.client("cloudwatch", region_name="us-east-1").describe_alarms()["MetricAlarms"]
    (only,) = found
    return dict(only)


def test_an_alarm_over_one_series_may_be_written_the_short_way(provider: AwsProvider) -> None:
    judged = {"comparisonOperator": "GreaterThanThreshold", "threshold": 0, "evaluationPeriods": 2}
    series = {"namespace": "AWS/SQS", "metricName": "Age", "statistic": "Maximum", "period": 60}
    inputs = {"name": "old-messages", **judged, **series, "dimensions": {"Q": "q"}}
    create(provider, "cloudwatch/metricAlarm:MetricAlarm", inputs)
    assert alarm()["Dimensions"] == [{"Name": "Q", "Value": "q"}]
    assert alarm()["Statistic"] == "Maximum"


def test_a_topic_its_policy_and_who_listens(provider: AwsProvider) -> None:
    topic = create(
        provider, "sns/topic:Topic", {"name": "alerts", "kmsMasterKeyId": "k", "tags": {"a": "1"}}
    )
    arn = topic.id
    assert arn == TOPIC
    policy = create(provider, "sns/topicPolicy:TopicPolicy", {"arn": arn, "policy": PUBLISHES})
    heard = create(
        provider,
        "sns/topicSubscription:TopicSubscription",
        {"topic": arn, "protocol": "email", "endpoint": "a@example.com"},
    )
    sns = boto3.client("sns", region_name="us-east-1")
    attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    assert attributes["KmsMasterKeyId"] == "k"
    assert json.loads(attributes["Policy"]) == json.loads(PUBLISHES)
    (there,) = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    assert there["Endpoint"] == "a@example.com"
    assert [provider.read(each) is not None for each in (topic, policy, heard)] == [True] * 3
    provider.update(topic, {**topic.inputs, "displayName": "Orders", "tagsAll": {"b": "2"}})
    assert sns.get_topic_attributes(TopicArn=arn)["Attributes"]["DisplayName"] == "Orders"
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == [{"Key": "b", "Value": "2"}]
    for each in (heard, policy, topic):
        provider.delete(each)
    assert provider.read(topic) is None
    assert sns.list_subscriptions()["Subscriptions"] == []
