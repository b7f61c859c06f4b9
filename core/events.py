"""What AWS announces, read once: raw bytes from a queue -> Interruption or Ignored, with a reason.

First room of an event's walk: handlers.interruption hands the body of a queue message to `parse`
and gives what comes back to core.incidents. Nothing here raises, whatever the bytes: a message that
cannot be read must reach the ledger as ignored, with its body, and never crash-loop a consumer
(NTH#272, #550).

Shapes: NTH's own tests (sqs-monitor_test.go), AWS's Health, Auto Scaling and EC2 event pages, and
captures kept by cloud-custodian.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from core.fields import Fields, digest, epoch, instance_in, readable, shown, text

# SNS may deliver to SNS's own wrapper once more (topic -> queue -> topic); deeper is not a message.
DEEPEST_WRAPPING = 3
TEST_NOTIFICATION = "autoscaling:TEST_NOTIFICATION"
LEAVING_STATES = frozenset({"stopping", "stopped", "shutting-down", "terminated"})


class Kind(StrEnum):
    """What was announced; one decision of DESIGN.md section 3 per kind."""

    ASG_TERMINATE = "asg_terminate"
    ASG_LAUNCH = "asg_launch"
    SPOT_INTERRUPTION = "spot_interruption"
    CAPACITY_RESERVATION = "capacity_reservation"
    REBALANCE = "rebalance"
    STATE_CHANGE = "state_change"
    SCHEDULED_CHANGE = "scheduled_change"


_TRANSITIONS = {
    "autoscaling:EC2_INSTANCE_TERMINATING": Kind.ASG_TERMINATE,
    "autoscaling:EC2_INSTANCE_LAUNCHING": Kind.ASG_LAUNCH,
}
# Where an instance goes when the lifecycle action is what it says; a warm pool is neither.
_DESTINATIONS = {Kind.ASG_TERMINATE: "EC2", Kind.ASG_LAUNCH: "AutoScalingGroup"}
_EC2_KINDS = {
    "EC2 Spot Instance Interruption Warning": Kind.SPOT_INTERRUPTION,
    "EC2 Capacity Reservation Instance Interruption Warning": Kind.CAPACITY_RESERVATION,
    "EC2 Instance Rebalance Recommendation": Kind.REBALANCE,
    "EC2 Instance State-change Notification": Kind.STATE_CHANGE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """One announcement about one instance."""

    kind: Kind
    instance_id: str
    event_id: str
    # Equal for duplicates and for other deliveries of the same announcement. The two hooks of a
    # terminating instance are two announcements: each has its own lifecycle token.
    dedupe_key: str
    account: str | None
    region: str | None
    occurred_at: float | None  # epoch seconds
    group: str | None = None
    hook: str | None = None
    lifecycle_token: str | None = None
    instance_state: str | None = None  # state changes
    event_type: str | None = None  # Health: its eventTypeCode
    due_at: float | None = None  # epoch seconds: Health's start, a reservation's end
    closed: bool = False  # Health: called off or done
    body: str  # the EventBridge or bare ASG JSON as received, unwrapped from SNS: what NTH reads


@dataclass(frozen=True, slots=True)
class Ignored:
    """A message that asks for nothing, with the reason in a sentence."""

    reason: str
    body: str


def parse(raw: str | bytes) -> tuple[Interruption | Ignored, ...]:
    """Read one queue message: at least one result, one per affected instance; never raises.

    >>> [type(found).__name__ for found in parse(b"not json")]
    ['Ignored']
    """
    body = readable(raw)
    for _ in range(DEEPEST_WRAPPING):
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            # ValueError also covers an integer of more digits than Python converts.
            return (Ignored("The message is not readable JSON.", body),)
        if not isinstance(message, dict):
            return (Ignored("The message is not a JSON object.", body),)
        wrapped = message.get("Message")
        if not isinstance(wrapped, str) or "detail" in message or "LifecycleTransition" in message:
            return _read(message, body)
        if message.get("Type") in {"SubscriptionConfirmation", "UnsubscribeConfirmation"}:
            return (Ignored(f"SNS sent a {message['Type']}, which announces nothing.", body),)
        body = readable(wrapped)
    return (Ignored(f"The message is wrapped more than {DEEPEST_WRAPPING} times.", body),)


def _read(message: Fields, body: str) -> tuple[Interruption | Ignored, ...]:
    source = text(message, "source")
    detail = message.get("detail")
    if source is None:
        return (_lifecycle(message, message, body),)
    if not isinstance(detail, dict):
        return (Ignored(f"{_origin(message)} carries no detail.", body),)
    if source == "aws.autoscaling":
        return (_lifecycle(message, detail, body),)
    if source == "aws.ec2":
        return (_instance_notice(message, detail, body),)
    if source == "aws.health":
        return tuple(_health(message, detail, body))
    return (Ignored(f"{_origin(message)} is no announcement about a node.", body),)


def _lifecycle(envelope: Fields, detail: Fields, body: str) -> Interruption | Ignored:
    """Read a lifecycle action: from EventBridge, or bare from the group, where both are one."""
    transition = text(detail, "LifecycleTransition")
    if TEST_NOTIFICATION in (transition, detail.get("Event")):
        return Ignored("It is the test notification that Auto Scaling sends for a new hook.", body)
    kind = _TRANSITIONS.get(transition or "")
    if kind is None:
        said = f" with the lifecycle transition {shown(transition)}" if transition else ""
        return Ignored(f"{_origin(envelope)}{said} is no lifecycle action of an instance.", body)
    instance_id = instance_in(detail.get("EC2InstanceId"))
    if instance_id is None:
        return Ignored(f"{_origin(envelope)} names no instance in EC2InstanceId.", body)
    look_alike = _look_alike(kind, instance_id, detail)
    if look_alike:
        return Ignored(look_alike, body)
    hook, token = text(detail, "LifecycleHookName"), text(detail, "LifecycleActionToken")
    event_id = text(envelope, "id") or text(detail, "RequestId") or digest(body)
    return Interruption(
        kind=kind,
        instance_id=instance_id,
        event_id=event_id,
        dedupe_key=":".join((kind, instance_id, hook or "", token or event_id)),
        account=text(envelope, "account") or text(detail, "AccountId"),
        region=text(envelope, "region"),
        occurred_at=epoch(envelope.get("time", envelope.get("Time"))),
        group=text(detail, "AutoScalingGroupName"),
        hook=hook,
        lifecycle_token=token,
        body=body,
    )


def _look_alike(kind: Kind, instance_id: str, detail: Fields) -> str | None:
    """Say why an action that looks like a launch or a termination is neither."""
    action, destination = text(detail, "Action"), text(detail, "Destination")
    if action == "ReplaceRootVolume":
        return f"Instance {instance_id} only has its root volume replaced; it stays in its group."
    if destination == "WarmPool":
        return f"Instance {instance_id} moves to the warm pool; no Kafka node runs there."
    if destination is not None and destination != _DESTINATIONS[kind]:
        return (
            f"Instance {instance_id} goes to {shown(destination)}, "
            f"so this is not the {kind.value.removeprefix('asg_')} action it looks like."
        )
    return None


def _instance_notice(envelope: Fields, detail: Fields, body: str) -> Interruption | Ignored:
    kind = _EC2_KINDS.get(text(envelope, "detail-type") or "")
    if kind is None:
        return Ignored(f"{_origin(envelope)} is no announcement about a node.", body)
    instance_id = instance_in(detail.get("instance-id"))
    if instance_id is None:
        return Ignored(f"{_origin(envelope)} names no instance in instance-id.", body)
    state = text(detail, "state") if kind is Kind.STATE_CHANGE else None
    if kind is Kind.STATE_CHANGE and state not in LEAVING_STATES:
        return Ignored(f"Instance {instance_id} is {shown(state)}: it is not leaving.", body)
    event_id = text(envelope, "id") or digest(body)
    return Interruption(
        kind=kind,
        instance_id=instance_id,
        event_id=event_id,
        dedupe_key=":".join((kind, instance_id, event_id)),
        account=text(envelope, "account"),
        region=text(envelope, "region"),
        occurred_at=epoch(envelope.get("time")),
        instance_state=state,
        due_at=epoch(detail.get("instance-termination-time")),
        body=body,
    )


def _health(envelope: Fields, detail: Fields, body: str) -> Iterator[Interruption | Ignored]:
    """Read a Health event: one Interruption per affected instance, not for the first alone."""
    service, category = text(detail, "service"), text(detail, "eventTypeCategory")
    code = text(detail, "eventTypeCode")
    if service != "EC2" or category != "scheduledChange":
        yield Ignored(
            f"{_origin(envelope)} ({shown(code)}) is about service {shown(service)}, category "
            f"{shown(category)}; only EC2's scheduledChange takes a node away.",
            body,
        )
        return
    entities = dict(_entities(envelope, detail))
    if not entities:
        yield Ignored(f"{_origin(envelope)} ({shown(code)}) names no affected entity.", body)
    closed = text(detail, "statusCode") == "closed"
    for value, resolved in entities.items():
        instance_id = instance_in(value)
        if instance_id is None:
            yield Ignored(
                f"{_origin(envelope)} ({shown(code)}) is about {shown(value)}, which is no "
                f"instance.",
                body,
            )
        else:
            yield _scheduled_change(
                envelope, detail, body, instance_id=instance_id, closed=closed or resolved
            )


def _scheduled_change(
    envelope: Fields, detail: Fields, body: str, *, instance_id: str, closed: bool
) -> Interruption:
    account = text(detail, "affectedAccount") or text(envelope, "account")
    event_id = text(envelope, "id") or digest(body)
    # A backup copy arrives in another region under another event id, with the communication's own.
    # Before communicationId existed, an update kept the ARN and changed a time.
    times = text(detail, "lastUpdatedTime") or text(detail, "startTime") or ""
    announcement = text(detail, "communicationId") or (
        f"{text(detail, 'eventArn') or event_id} {times}"
    )
    status = "closed" if closed else "open"
    return Interruption(
        kind=Kind.SCHEDULED_CHANGE,
        instance_id=instance_id,
        event_id=event_id,
        dedupe_key=":".join(
            (Kind.SCHEDULED_CHANGE, account or "", instance_id, announcement, status)
        ),
        account=account,
        # `region` is where the event was delivered, `eventRegion` where it happens.
        region=text(detail, "eventRegion") or text(envelope, "region"),
        occurred_at=epoch(envelope.get("time")),
        event_type=text(detail, "eventTypeCode"),
        due_at=epoch(detail.get("startTime")),
        closed=closed,
        body=body,
    )


def _entities(envelope: Fields, detail: Fields) -> Iterator[tuple[str, bool]]:
    """Yield each affected entity and whether Health says it is resolved."""
    listed = detail.get("affectedEntities")
    named = False
    for entity in listed if isinstance(listed, list) else []:
        value = text(entity, "entityValue") if isinstance(entity, dict) else None
        if value is not None:
            named = True
            yield value, text(entity, "status") == "RESOLVED"
    # The older schema repeats the entities here; the current one leaves `resources` out.
    resources = envelope.get("resources")
    if not named and isinstance(resources, list):
        yield from ((value, False) for value in resources if isinstance(value, str))


def _origin(envelope: Fields) -> str:
    """Name a message by its source and detail-type, to start a sentence."""
    source, detail_type = text(envelope, "source"), text(envelope, "detail-type")
    if source is None and detail_type is None:
        return "A message without source and detail-type"
    return f"The event {shown(detail_type)} of source {shown(source)}"
