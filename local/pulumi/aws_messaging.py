"""Queues and rules: how an announcement of AWS reaches the toolkit."""

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
from local.shapes import coerce
from local.values import Properties

_QUEUE_ATTRIBUTES = {
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


def _attributes(inputs: Properties) -> dict[str, str]:
    """Return a queue's attributes as SQS takes them: every value a string."""
    found = {}
    for api, value in pick(inputs, _QUEUE_ATTRIBUTES).items():
        if isinstance(value, bool):
            if api == "FifoQueue" and not value:
                continue
            found[api] = str(value).lower()
        else:
            found[api] = as_text(value)
    return found


@adapts("sqs/queue:Queue")
class QueueAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"fifoQueue"})
    lookup = CallById("sqs", "get_queue_attributes", "QueueUrl")
    deletion = CallById("sqs", "delete_queue", "QueueUrl")
    tagging = TagCalls("sqs", "tag_queue", "untag_queue", "QueueUrl", mapped=True)

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        name = inputs["name"]
        url = aws.client("sqs").create_queue(
            QueueName=name, Attributes=_attributes(inputs), tags=tags_of(inputs)
        )["QueueUrl"]
        return State(url, {"url": url, "arn": aws.arn("sqs", name)})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        sqs = aws.client("sqs")
        old, new = _attributes(existing.inputs), _attributes(inputs)
        # An attribute the program no longer sets goes back to what a new queue has.
        back = {name: "" for name in ("Policy", "RedrivePolicy") if name in old and name not in new}
        difference = {k: v for k, v in new.items() if old.get(k) != v} | back
        if difference:
            sqs.set_queue_attributes(QueueUrl=existing.id, Attributes=difference)
        self.tagging.bring(aws, existing.id, existing, inputs)
        return {}


@adapts("sqs/queuePolicy:QueuePolicy")
class QueuePolicyAdapter(Adapter):
    replaces = frozenset({"queueUrl"})

    @staticmethod
    def _put(aws: Aws, url: str, policy: Any) -> None:
        aws.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": as_text(policy)})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self._put(aws, inputs["queueUrl"], inputs["policy"])
        return State(inputs["queueUrl"], {})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self._put(aws, existing.id, inputs["policy"])
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        self._put(aws, existing.id, "")


@adapts("cloudwatch/eventRule:EventRule")
class EventRuleAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"eventBusName"})
    tagging = TagCalls("events", "tag_resource", "untag_resource", "ResourceARN")

    @staticmethod
    def _put(aws: Aws, inputs: Properties, *, tags: bool) -> str:
        parameters = request(aws.client("events"), "PutRule", inputs, "tags")
        if inputs.get("isEnabled") is False:
            parameters["State"] = "DISABLED"
        if tags and tags_of(inputs):
            parameters["Tags"] = tag_list(tags_of(inputs))
        return str(aws.client("events").put_rule(**parameters)["RuleArn"])

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        arn = self._put(aws, inputs, tags=True)
        bus = inputs.get("eventBusName")
        return State(f"{bus}/{inputs['name']}" if bus else inputs["name"], {"arn": arn})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        self._put(aws, inputs, tags=False)
        self.tagging.bring(aws, existing.outputs["arn"], existing, inputs)
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        aws.client("events").describe_rule(**_rule(existing, "Name"))
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("events").delete_rule(**_rule(existing, "Name"))


def _rule(existing: Existing, parameter: str) -> dict[str, str]:
    """Return which rule is meant, and on which bus."""
    outputs = existing.outputs
    bus = outputs.get("eventBusName")
    name = outputs["rule"] if "rule" in outputs else outputs["name"]
    return {parameter: name, **({"EventBusName": bus} if bus else {})}


@adapts("cloudwatch/eventTarget:EventTarget")
class EventTargetAdapter(PutAdapter):
    name_property = "targetId"
    replaces = frozenset({"rule", "eventBusName"})

    def put(self, aws: Aws, inputs: Properties) -> None:
        events = aws.client("events")
        shape = events.meta.service_model.operation_model("PutTargets").input_shape
        target = {
            "Id": inputs["targetId"],
            **coerce(shape.members["Targets"].member, inputs),
        }
        # Where the API's names differ from the resource's.
        if inputs.get("sqsTarget"):
            target["SqsParameters"] = {"MessageGroupId": inputs["sqsTarget"]["messageGroupId"]}
        transformer = inputs.get("inputTransformer")
        if transformer:
            target["InputTransformer"] = {
                "InputPathsMap": transformer.get("inputPaths", {}),
                "InputTemplate": transformer["inputTemplate"],
            }
        bus = inputs.get("eventBusName")
        events.put_targets(
            Rule=inputs["rule"], Targets=[target], **({"EventBusName": bus} if bus else {})
        )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        self.put(aws, inputs)
        return State(f"{inputs['rule']}-{inputs['targetId']}", {})

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("events").remove_targets(
            **_rule(existing, "Rule"), Ids=[existing.outputs["targetId"]]
        )
