"""Alarms and whom they tell: CloudWatch's alarms and dashboards, SNS's topics.

moto keeps them and evaluates none; the twin shows that AWS takes them as they are written.
"""

from __future__ import annotations

import json
from typing import Any

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    adapts,
    has_changed,
    pick,
    request,
    retag,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.pulumi.values import Properties

_TOPIC_ATTRIBUTES = {
    "displayName": "DisplayName",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "policy": "Policy",
    "deliveryPolicy": "DeliveryPolicy",
}


def _dimensions(given: Any) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in sorted((given or {}).items())]


def _query(query: Properties) -> Properties:
    """Return one of an alarm's series, or the sum over them, as CloudWatch takes it."""
    found = pick(
        query,
        {
            "id": "Id",
            "expression": "Expression",
            "label": "Label",
            "period": "Period",
            "returnData": "ReturnData",
            "accountId": "AccountId",
        },
    )
    metric = query.get("metric")
    if metric:
        names = {"namespace": "Namespace", "metricName": "MetricName"}
        found["MetricStat"] = {
            "Metric": {
                **pick(metric, names),
                "Dimensions": _dimensions(metric.get("dimensions")),
            },
            **pick(metric, {"period": "Period", "stat": "Stat", "unit": "Unit"}),
        }
    return found


@adapts("cloudwatch/metricAlarm:MetricAlarm")
class MetricAlarmAdapter(Adapter):
    name_property = "name"

    @staticmethod
    def _put(aws: Aws, inputs: Properties) -> None:
        cloudwatch = aws.client("cloudwatch")
        parameters = request(
            cloudwatch, "PutMetricAlarm", inputs, "dimensions", "metricQueries", "tags", "tagsAll"
        )
        if inputs.get("dimensions"):
            parameters["Dimensions"] = _dimensions(inputs["dimensions"])
        if inputs.get("metricQueries"):
            parameters["Metrics"] = [_query(query) for query in inputs["metricQueries"]]
        cloudwatch.put_metric_alarm(
            **{**parameters, "AlarmName": inputs["name"], "Tags": tag_list(tags_of(inputs))}
        )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self._put(aws, inputs)
        name = inputs["name"]
        return State(name, {"arn": aws.arn("cloudwatch", f"alarm:{name}")})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:  # noqa: ARG002
        # The API replaces an alarm whole; so does moto, tags and all.
        self._put(aws, inputs)
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        found = aws.client("cloudwatch").describe_alarms(AlarmNames=[existing.id])
        return {} if found["MetricAlarms"] else None

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("cloudwatch").delete_alarms(AlarmNames=[existing.id])


@adapts("cloudwatch/dashboard:Dashboard")
class DashboardAdapter(Adapter):
    name_property = "dashboardName"

    @staticmethod
    def _put(aws: Aws, inputs: Properties) -> None:
        given = inputs["dashboardBody"]
        text = given if isinstance(given, str) else json.dumps(given)
        aws.client("cloudwatch").put_dashboard(
            DashboardName=inputs["dashboardName"], DashboardBody=text
        )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self._put(aws, inputs)
        name = inputs["dashboardName"]
        arn = aws.arn("cloudwatch", f"dashboard/{name}", regional=False)
        return State(name, {"dashboardArn": arn})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        if has_changed(existing, inputs, "dashboardBody"):
            self._put(aws, inputs)
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        aws.client("cloudwatch").get_dashboard(DashboardName=existing.id)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("cloudwatch").delete_dashboards(DashboardNames=[existing.id])


def _topic_attributes(inputs: Properties) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in pick(inputs, _TOPIC_ATTRIBUTES).items()
    }


@adapts("sns/topic:Topic")
class TopicAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"fifoTopic"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        arn = aws.client("sns").create_topic(
            Name=inputs["name"],
            Attributes=_topic_attributes(inputs),
            Tags=tag_list(tags_of(inputs)),
        )["TopicArn"]
        return State(arn, {"arn": arn, "owner": aws.account})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        sns = aws.client("sns")
        old, new = _topic_attributes(existing.inputs), _topic_attributes(inputs)
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                sns.set_topic_attributes(
                    TopicArn=existing.id, AttributeName=name, AttributeValue=new.get(name, "")
                )
        retag(
            existing,
            inputs,
            lambda tags: sns.tag_resource(ResourceArn=existing.id, Tags=tag_list(tags)),
            lambda keys: sns.untag_resource(ResourceArn=existing.id, TagKeys=keys),
        )
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        aws.client("sns").get_topic_attributes(TopicArn=existing.id)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("sns").delete_topic(TopicArn=existing.id)


@adapts("sns/topicPolicy:TopicPolicy")
class TopicPolicyAdapter(Adapter):
    replaces = frozenset({"arn"})

    @staticmethod
    def _put(aws: Aws, inputs: Properties) -> None:
        policy = inputs["policy"]
        aws.client("sns").set_topic_attributes(
            TopicArn=inputs["arn"],
            AttributeName="Policy",
            AttributeValue=policy if isinstance(policy, str) else json.dumps(policy),
        )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self._put(aws, inputs)
        return State(inputs["arn"], {"owner": aws.account})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        if has_changed(existing, inputs, "policy"):
            self._put(aws, inputs)
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        aws.client("sns").get_topic_attributes(TopicArn=existing.id)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        """Leave the policy: a topic always has one, and this one goes with its topic."""


@adapts("sns/topicSubscription:TopicSubscription")
class TopicSubscriptionAdapter(Adapter):
    replaces = frozenset({"topic", "protocol", "endpoint"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        arn = aws.client("sns").subscribe(
            TopicArn=inputs["topic"],
            Protocol=inputs["protocol"],
            Endpoint=inputs["endpoint"],
            ReturnSubscriptionArn=True,
        )["SubscriptionArn"]
        return State(arn, {"arn": arn, "pendingConfirmation": False})

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        aws.client("sns").get_subscription_attributes(SubscriptionArn=existing.id)
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("sns").unsubscribe(SubscriptionArn=existing.id)
