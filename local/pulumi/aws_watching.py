"""Alarms and whom they tell: CloudWatch's alarms and dashboards, SNS's topics.

moto keeps them and evaluates none; the twin shows that AWS takes them as they are written.
"""

from __future__ import annotations

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    PutAdapter,
    TagCalls,
    adapts,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.catalogue.events import TOPIC
from local.refusals.catalogue.parameters import attributes
from local.refusals.documents import text
from local.values import Properties


@adapts("cloudwatch/metricAlarm:MetricAlarm")
class MetricAlarmAdapter(PutAdapter):
    """An alarm: the API replaces it whole, and so does moto, tags and all."""

    name_property = "name"
    identity = "{name}"
    deletion = CallById("cloudwatch", "delete_alarms", "AlarmNames", listed=True)

    def computed(self, aws: Aws, inputs: Properties) -> Properties:
        return {"arn": aws.arn("cloudwatch", f"alarm:{inputs['name']}")}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        found = aws.client("cloudwatch").describe_alarms(AlarmNames=[existing.id])
        return {} if found["MetricAlarms"] else None


@adapts("cloudwatch/dashboard:Dashboard")
class DashboardAdapter(PutAdapter):
    name_property = "dashboardName"
    identity = "{dashboardName}"
    lookup = CallById("cloudwatch", "get_dashboard", "DashboardName")
    deletion = CallById("cloudwatch", "delete_dashboards", "DashboardNames", listed=True)

    def put(self, aws: Aws, inputs: Properties) -> None:
        self.make(aws, inputs, DashboardBody=text(inputs["dashboardBody"]))

    def computed(self, aws: Aws, inputs: Properties) -> Properties:
        name = f"dashboard/{inputs['dashboardName']}"
        return {"dashboardArn": aws.arn("cloudwatch", name, regional=False)}


@adapts("sns/topic:Topic")
class TopicAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"fifoTopic"})
    lookup = CallById("sns", "get_topic_attributes", "TopicArn")
    deletion = CallById("sns", "delete_topic", "TopicArn")
    tagging = TagCalls("sns", "tag_resource", "untag_resource", "ResourceArn")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        arn = self.make(aws, inputs)["TopicArn"]
        return State(arn, {"arn": arn, "owner": aws.account})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        sns = aws.client("sns")
        old, new = attributes(existing.inputs, TOPIC), attributes(inputs, TOPIC)
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

    identity = "{arn}"
    replaces = frozenset({"arn"})
    lookup = CallById("sns", "get_topic_attributes", "TopicArn")

    def computed(self, aws: Aws, inputs: Properties) -> Properties:  # noqa: ARG002
        return {"owner": aws.account}


@adapts("sns/topicSubscription:TopicSubscription")
class TopicSubscriptionAdapter(Adapter):
    replaces = frozenset({"topic", "protocol", "endpoint"})
    lookup = CallById("sns", "get_subscription_attributes", "SubscriptionArn")
    deletion = CallById("sns", "unsubscribe", "SubscriptionArn")

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        arn = self.make(aws, inputs, ReturnSubscriptionArn=True)["SubscriptionArn"]
        return State(arn, {"arn": arn, "pendingConfirmation": False})
