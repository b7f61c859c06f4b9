"""Lifecycle hooks of an instance in transition, and what its Auto Scaling group says meanwhile.

Semantics are those of EC2 Auto Scaling: every hook of a transition has its own action, token and
deadline; CONTINUE waits for the others, ABANDON ends the wait at once; a deadline that passes
answers with the hook's default result; heartbeats extend a deadline by one heartbeat timeout, up to
min(48 h, 100 heartbeat timeouts) after the action began. The time is passed in.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.sns import sns_backends
from moto.sqs import sqs_backends

from local.aws import events

CONTINUE = "CONTINUE"
ABANDON = "ABANDON"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
LONGEST_HOLD_SECONDS = 48 * 3600
LONGEST_HOLD_HEARTBEATS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHook:
    """A lifecycle hook as it was when the transition began."""

    name: str
    heartbeat_timeout_seconds: int
    default_result: str
    notification_target_arn: str | None = None
    notification_metadata: str | None = None

    @property
    def global_timeout_seconds(self) -> int:
        """The longest an action of this hook may last, heartbeats or not."""
        return min(LONGEST_HOLD_SECONDS, LONGEST_HOLD_HEARTBEATS * self.heartbeat_timeout_seconds)


@dataclass(slots=True)
class HookAction:
    """One hook's question about one instance, open until it has a result."""

    hook: GroupHook
    token: str
    started_at: float
    deadline: float
    result: str | None = None


@dataclass(slots=True)
class HookTransition:
    """An instance waiting for the hooks of its termination."""

    instance_id: str
    actions: tuple[HookAction, ...] = field(default_factory=tuple)

    @staticmethod
    def begin(instance_id: str, hooks: Sequence[GroupHook], now: float) -> HookTransition:
        return HookTransition(
            instance_id,
            tuple(
                HookAction(hook, str(uuid.uuid4()), now, now + hook.heartbeat_timeout_seconds)
                for hook in hooks
            ),
        )

    @property
    def verdict(self) -> str | None:
        """CONTINUE when every hook said so, ABANDON as soon as one did, None while it waits."""
        results = [action.result for action in self.actions]
        if ABANDON in results:
            return ABANDON
        return None if None in results else CONTINUE

    def find(self, hook_name: str, *, token: str | None = None) -> HookAction | None:
        """Return the open action of a hook; one given a token must also carry it."""
        if self.verdict is not None:
            return None
        return next(
            (
                action
                for action in self.actions
                if action.hook.name == hook_name
                and action.result is None
                and (token is None or action.token == token)
            ),
            None,
        )

    def expire(self, now: float) -> list[HookAction]:
        """Answer every action whose deadline has passed by its default; return those actions."""
        late = [a for a in self.actions if a.result is None and a.deadline <= now]
        if self.verdict is not None:
            return []
        for action in late:
            action.result = action.hook.default_result
        return late


def heartbeat(action: HookAction, now: float) -> None:
    """Give an open action one more heartbeat timeout, within its hook's longest hold."""
    action.deadline = min(
        now + action.hook.heartbeat_timeout_seconds,
        action.started_at + action.hook.global_timeout_seconds,
    )


LOG = logging.getLogger(__name__)
SOURCE = "aws.autoscaling"
KEPT_ACTIVITIES = 200


def utc_now() -> datetime:
    return datetime.now(UTC)


def milliseconds(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


@dataclass(slots=True)
class Activity:
    """One scaling activity, with the attribute names moto's serializer looks for."""

    auto_scaling_group_name: str
    auto_scaling_group_arn: str
    description: str
    cause: str
    details: str
    status_code: str = "InProgress"
    progress: int = 0
    status_message: str | None = None
    instance_id: str = ""
    activity_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    start_time: datetime = field(default_factory=utc_now)
    end_time: datetime | None = None

    def end(self, status_code: str, message: str | None = None) -> None:
        self.status_code, self.progress, self.status_message = status_code, 100, message
        self.end_time = utc_now()


def begin(group: Any, description: str, cause: str, *, subnet_id: str, zone: str) -> Activity:
    """Open an activity of a group and keep it for describe_scaling_activities."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    activity = Activity(
        auto_scaling_group_name=group.name,
        auto_scaling_group_arn=group.arn,
        description=description,
        cause=f"At {stamp} {cause}",
        details=json.dumps({"Subnet ID": subnet_id, "Availability Zone": zone}),
    )
    kept: list[Activity] = group.autoscaling_backend.__dict__.setdefault("activities", [])
    kept.insert(0, activity)
    del kept[KEPT_ACTIVITIES:]
    return activity


def announce_activity(group: Any, detail_type: str, activity: Activity) -> None:
    """Send `EC2 Instance Launch Successful` and its siblings; their StatusCode is InProgress."""
    resources = [group.arn]
    if activity.instance_id:
        resources.append(
            f"arn:aws:ec2:{group.region}:{group.account_id}:instance/{activity.instance_id}"
        )
    ended = activity.end_time or utc_now()
    events.put(
        group.account_id,
        group.region,
        source=SOURCE,
        detail_type=detail_type,
        detail={
            "StatusCode": "Failed" if activity.status_code == "Failed" else "InProgress",
            "Description": activity.description,
            "AutoScalingGroupName": group.name,
            "ActivityId": activity.activity_id,
            "Details": json.loads(activity.details),
            # Captured on AWS: an event's RequestId is its activity's id, not the API call's.
            "RequestId": activity.activity_id,
            "StatusMessage": activity.status_message or "",
            "EndTime": milliseconds(ended),
            "EC2InstanceId": activity.instance_id,
            "StartTime": milliseconds(activity.start_time),
            "Cause": activity.cause,
        },
        resources=resources,
    )


def announce_action(group: Any, instance_id: str, action: HookAction) -> bool:
    """Ask one hook about one instance; return False when its notification target refused it."""
    hook = action.hook
    detail = {
        "LifecycleActionToken": action.token,
        "AutoScalingGroupName": group.name,
        "LifecycleHookName": hook.name,
        "EC2InstanceId": instance_id,
        "LifecycleTransition": TERMINATING,
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }
    if hook.notification_metadata:
        detail["NotificationMetadata"] = hook.notification_metadata
    events.put(
        group.account_id,
        group.region,
        source=SOURCE,
        detail_type="EC2 Instance-terminate Lifecycle Action",
        detail=detail,
        resources=[group.arn],
    )
    return notify(group, hook.notification_target_arn, detail)


def notify(group: Any, target_arn: str | None, content: dict[str, str]) -> bool:
    """Send a hook's flat notification to its queue or topic; return False when that fails."""
    if not target_arn:
        return True
    body = json.dumps(
        {
            **content,
            "AccountId": group.account_id,
            "RequestId": str(uuid.uuid4()),
            "Service": "AWS Auto Scaling",
            "Time": milliseconds(utc_now()),
        }
    )
    service, region, account, name = target_arn.split(":", 5)[2:]
    try:
        if service == "sqs":
            sqs_backends[account][region].send_message(name, body)
        else:
            subject = f'Auto Scaling:  Lifecycle action for group "{group.name}"'
            sns_backends[account][region].publish(body, arn=target_arn, subject=subject)
    except Exception as error:  # noqa: BLE001  # a queue or topic that is gone, whatever moto calls it
        LOG.warning("group %s cannot notify %s: %s", group.name, target_arn, error)
        return False
    return True


def test_notification(group: Any, target_arn: str | None) -> bool:
    """Send what Auto Scaling sends when a hook with a target is put."""
    content = {
        "AutoScalingGroupARN": group.arn,
        "AutoScalingGroupName": group.name,
        "Event": "autoscaling:TEST_NOTIFICATION",
    }
    return notify(group, target_arn, content)
