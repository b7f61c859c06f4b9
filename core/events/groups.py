"""aws.autoscaling: lifecycle actions, what a group launched or terminated, instance refreshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.events.announcements import (
    Advisory,
    Envelope,
    GroupChange,
    GroupNotice,
    Ignored,
    Interruption,
    Kind,
)
from core.ground.fields import Fields, display_text, instance_in, part, text

TEST_NOTIFICATION = "autoscaling:TEST_NOTIFICATION"

_TRANSITIONS = {
    "autoscaling:EC2_INSTANCE_TERMINATING": Kind.ASG_TERMINATE,
    "autoscaling:EC2_INSTANCE_LAUNCHING": Kind.ASG_LAUNCH,
}
# Where an instance goes when the lifecycle action is what it says; a warm pool is neither.
_DESTINATIONS = {Kind.ASG_TERMINATE: "EC2", Kind.ASG_LAUNCH: "AutoScalingGroup"}


def action(envelope: Envelope) -> Interruption | Advisory | Ignored:
    """Read a lifecycle action: from EventBridge, or bare from the group, where both are one."""
    detail = envelope.detail
    transition = text(detail, "LifecycleTransition")
    if TEST_NOTIFICATION in (transition, detail.get("Event")):
        return envelope.ignored(
            "It is the test notification that Auto Scaling sends for a new hook."
        )
    kind = _TRANSITIONS.get(transition or "")
    if kind is None:
        said = f"with the lifecycle transition {display_text(transition)} " if transition else ""
        return envelope.says(f"{said}is no lifecycle action of an instance.")
    instance_id = instance_in(detail.get("EC2InstanceId"))
    if instance_id is None:
        return envelope.says("names no instance in EC2InstanceId.")
    look_alike = _look_alike(kind, instance_id, detail)
    if look_alike and kind is Kind.ASG_LAUNCH:
        return envelope.ignored(look_alike)
    if look_alike:
        return _waits(envelope, instance_id, look_alike)
    hook, token = text(detail, "LifecycleHookName"), text(detail, "LifecycleActionToken")
    return Interruption(
        kind=kind,
        instance_id=instance_id,
        dedupe_key=":".join((kind, instance_id, hook or "", token or envelope.event_id)),
        group=text(detail, "AutoScalingGroupName"),
        hook=hook,
        lifecycle_token=token,
        **envelope.identity,
    )


def _waits(envelope: Envelope, instance_id: str, what: str) -> Advisory:
    """Tell of an instance that stands in a hook which nobody here completes; once for its hooks."""
    detail = envelope.detail
    hook = text(detail, "LifecycleHookName")
    group = text(detail, "AutoScalingGroupName")
    action_name, destination = text(detail, "Action"), text(detail, "Destination")
    moment = envelope.identity["occurred_at"] or 0.0
    return Advisory(
        sentence=(
            f"{what} It stands in hook {display_text(hook)} of group {display_text(group)}, "
            "where a broker on it "
            f"stops without a drain or the hook runs out: move its broker away first, then "
            f"complete the hook with `aws autoscaling complete-lifecycle-action`."
        ),
        subjects=(instance_id,),
        # Both hooks of one departure are one matter, and so is every delivery of them.
        dedupe_key=":".join(
            ("advisory", instance_id, action_name or "", destination or "", f"{moment // 3600:.0f}")
        ),
        **envelope.identity,
    )


def _look_alike(kind: Kind, instance_id: str, detail: Fields) -> str | None:
    """Say why an action that looks like a launch or a termination is neither."""
    action_name, destination = text(detail, "Action"), text(detail, "Destination")
    if action_name == "ReplaceRootVolume":
        return f"Instance {instance_id} only has its root volume replaced; it stays in its group."
    if destination == "WarmPool":
        return f"Instance {instance_id} moves to the warm pool; no Kafka node runs there."
    if destination is not None and destination != _DESTINATIONS[kind]:
        return (
            f"Instance {instance_id} goes to {display_text(destination)}, "
            f"so this is not the {kind.value.removeprefix('asg_')} action it looks like."
        )
    return None


ACTIVITIES: Mapping[str, GroupChange] = {
    "EC2 Instance Launch Successful": GroupChange.LAUNCHED,
    "EC2 Instance Launch Unsuccessful": GroupChange.LAUNCH_FAILED,
    "EC2 Instance Terminate Successful": GroupChange.TERMINATED,
    "EC2 Instance Terminate Unsuccessful": GroupChange.TERMINATE_FAILED,
}
_REFRESH = "EC2 Auto Scaling Instance Refresh"
REFRESHES: Mapping[str, GroupChange] = {
    f"{_REFRESH} Started": GroupChange.REFRESH_STARTED,
    f"{_REFRESH} Checkpoint Reached": GroupChange.REFRESH_CHECKPOINT,
    f"{_REFRESH} Succeeded": GroupChange.REFRESH_SUCCEEDED,
    f"{_REFRESH} Failed": GroupChange.REFRESH_FAILED,
    f"{_REFRESH} Cancelled": GroupChange.REFRESH_CANCELLED,
    f"{_REFRESH} Rollback Started": GroupChange.ROLLBACK_STARTED,
    f"{_REFRESH} Rollback Succeeded": GroupChange.ROLLBACK_SUCCEEDED,
    f"{_REFRESH} Rollback Failed": GroupChange.ROLLBACK_FAILED,
}


def read(envelope: Envelope) -> Iterator[Interruption | GroupNotice | Advisory | Ignored]:
    detail_type = envelope.detail_type or ""
    if (what := ACTIVITIES.get(detail_type)) is not None:
        yield _activity(envelope, what)
    elif (what := REFRESHES.get(detail_type)) is not None:
        yield _refresh(envelope, what)
    else:
        yield action(envelope)


def _activity(envelope: Envelope, what: GroupChange) -> GroupNotice | Ignored:
    detail = envelope.detail
    group = text(detail, "AutoScalingGroupName")
    if group is None:
        return envelope.says("names no group in AutoScalingGroupName.")
    failed = what in {GroupChange.LAUNCH_FAILED, GroupChange.TERMINATE_FAILED}
    # An activity is announced once per outcome. A failed launch is tried again under a new id.
    activity_id = text(detail, "ActivityId")
    return GroupNotice(
        group=group,
        what=what,
        # Empty when a launch failed before EC2 gave an id.
        instance_id=instance_in(detail.get("EC2InstanceId")),
        zone=text(part(detail.get("Details")), "Availability Zone"),
        cause=_cause(envelope, failed=failed),
        activity_id=activity_id,
        dedupe_key=":".join((what, group, activity_id or envelope.event_id)),
        **envelope.identity,
    )


def _cause(envelope: Envelope, *, failed: bool) -> str:
    """Return why an activity was begun or, of one that failed, why it failed."""
    if failed:
        said = text(envelope.detail, "StatusMessage") or text(envelope.detail, "Description")
        return said or "AWS gives no reason."
    return text(envelope.detail, "Cause") or ""


def _refresh(envelope: Envelope, what: GroupChange) -> GroupNotice | Ignored:
    detail = envelope.detail
    group = text(detail, "AutoScalingGroupName")
    if group is None:
        return envelope.says("names no group in AutoScalingGroupName.")
    refresh_id = text(detail, "InstanceRefreshId")
    named = [what.value, group, refresh_id or envelope.event_id]
    if what is GroupChange.REFRESH_CHECKPOINT:
        named.append(text(detail, "CheckpointPercentage") or envelope.event_id)
    return GroupNotice(
        group=group,
        what=what,
        activity_id=refresh_id,
        dedupe_key=":".join(named),
        **envelope.identity,
    )
