"""Queues and rules: how an announcement of AWS reaches the toolkit."""

from __future__ import annotations

from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    CallById,
    PutAdapter,
    TagCalls,
    adapts,
    request,
    tag_list,
    tags_of,
)
from local.pulumi.provider import Existing, Resource, State
from local.refusals.catalogue.events import queue_attributes
from local.values import Properties


@adapts("sqs/queue:Queue")
class QueueAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"fifoQueue"})
    lookup = CallById("sqs", "get_queue_attributes", "QueueUrl")
    deletion = CallById("sqs", "delete_queue", "QueueUrl")
    tagging = TagCalls("sqs", "tag_queue", "untag_queue", "QueueUrl", mapped=True)

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        url = self.make(aws, inputs)["QueueUrl"]
        return State(url, {"url": url, "arn": aws.arn("sqs", inputs["name"])})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        sqs = aws.client("sqs")
        old, new = queue_attributes(existing.inputs), queue_attributes(inputs)
        # An attribute the program no longer sets goes back to what a new queue has.
        back = {name: "" for name in ("Policy", "RedrivePolicy") if name in old and name not in new}
        difference = {k: v for k, v in new.items() if old.get(k) != v} | back
        if difference:
            sqs.set_queue_attributes(QueueUrl=existing.id, Attributes=difference)
        self.tagging.bring(aws, existing.id, existing, inputs)
        return {}


@adapts("sqs/queuePolicy:QueuePolicy")
class QueuePolicyAdapter(PutAdapter):
    identity = "{queueUrl}"
    replaces = frozenset({"queueUrl"})

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("sqs").set_queue_attributes(QueueUrl=existing.id, Attributes={"Policy": ""})


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
    identity = "{rule}-{targetId}"
    replaces = frozenset({"rule", "eventBusName"})

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("events").remove_targets(
            **_rule(existing, "Rule"), Ids=[existing.outputs["targetId"]]
        )
