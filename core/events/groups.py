"""aws.autoscaling: lifecycle actions, what a group launched or terminated, instance refreshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.events import lifecycle
from core.events.announcements import Advisory, GroupChange, GroupNotice, Ignored, Interruption
from core.events.envelope import Envelope
from core.fields import instance_in, part, text

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
        yield lifecycle.action(envelope)


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
