"""Alarms and whom they tell: CloudWatch's alarms and dashboards, SNS's topics.

moto keeps them and evaluates none; the twin shows that AWS takes them as they are written.
"""

from __future__ import annotations

from typing import Any

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    PutAdapter,
    TagCalls,
    adapts,
    as_text,
    pick,
    request,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.values import Properties

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
class MetricAlarmAdapter(PutAdapter):
    name_property = "name"
    deletion = CallById("cloudwatch", "delete_alarms", "AlarmNames", listed=True)

    def put(self, aws: Aws, inputs: Properties) -> None:
        """Write an alarm: the API replaces it whole, and so does moto, tags and all."""
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
        self.put(aws, inputs)
        name = inputs["name"]
        return State(name, {"arn": aws.arn("cloudwatch", f"alarm:{name}")})

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        found = aws.client("cloudwatch").describe_alarms(AlarmNames=[existing.id])
        return {} if found["MetricAlarms"] else None


@adapts("cloudwatch/dashboard:Dashboard")
class DashboardAdapter(PutAdapter):
    name_property = "dashboardName"
    lookup = CallById("cloudwatch", "get_dashboard", "DashboardName")
    deletion = CallById("cloudwatch", "delete_dashboards", "DashboardNames", listed=True)

    def put(self, aws: Aws, inputs: Properties) -> None:
        aws.client("cloudwatch").put_dashboard(
            DashboardName=inputs["dashboardName"], DashboardBody=as_text(inputs["dashboardBody"])
        )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self.put(aws, inputs)
        name = inputs["dashboardName"]
        arn = aws.arn("cloudwatch", f"dashboard/{name}", regional=False)
        return State(name, {"dashboardArn": arn})


def _topic_attributes(inputs: Properties) -> dict[str, str]:
    return {name: as_text(value) for name, value in pick(inputs, _TOPIC_ATTRIBUTES).items()}


@adapts("sns/topic:Topic")
class TopicAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"fifoTopic"})
    lookup = CallById("sns", "get_topic_attributes", "TopicArn")
    deletion = CallById("sns", "delete_topic", "TopicArn")
    tagging = TagCalls("sns", "tag_resource", "untag_resource", "ResourceArn")

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
        self.tagging.bring(aws, existing.id, existing, inputs)
        return {}


@adapts("sns/topicPolicy:TopicPolicy")
class TopicPolicyAdapter(PutAdapter):
    """A topic always has a policy, so this one goes with its topic."""

    replaces = frozenset({"arn"})
    lookup = CallById("sns", "get_topic_attributes", "TopicArn")

    def put(self, aws: Aws, inputs: Properties) -> None:
        aws.client("sns").set_topic_attributes(
            TopicArn=inputs["arn"],
            AttributeName="Policy",
            AttributeValue=as_text(inputs["policy"]),
        )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self.put(aws, inputs)
        return State(inputs["arn"], {"owner": aws.account})


@adapts("sns/topicSubscription:TopicSubscription")
class TopicSubscriptionAdapter(Adapter):
    replaces = frozenset({"topic", "protocol", "endpoint"})
    lookup = CallById("sns", "get_subscription_attributes", "SubscriptionArn")
    deletion = CallById("sns", "unsubscribe", "SubscriptionArn")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        arn = aws.client("sns").subscribe(
            TopicArn=inputs["topic"],
            Protocol=inputs["protocol"],
            Endpoint=inputs["endpoint"],
            ReturnSubscriptionArn=True,
        )["SubscriptionArn"]
        return State(arn, {"arn": arn, "pendingConfirmation": False})
