"""Reads what AWS announces about instances, EBS volumes and zones, but for aws.health.

aws.ec2: two-minute warnings, recommendations, state changes, volume notifications. aws.cloudwatch:
an alarm on stalled I/O, for which EBS has no event. aws.arc-zonal-shift: traffic that moves away
from a zone. aws.autoscaling: lifecycle actions, launches, terminations, instance refreshes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from core.events.announcements import (
    Advisory,
    Envelope,
    GroupChange,
    GroupNotice,
    Ignored,
    Interruption,
    Kind,
    VolumeChange,
    VolumeNotice,
    ZoneNotice,
    ZoneSource,
)
from core.ground.fields import (
    LONGEST_FIELD,
    Fields,
    display_text,
    epoch,
    instance_in,
    part,
    text,
    volume_in,
    zone_id_in,
)

VOLUME_NOTIFICATION = "EBS Volume Notification"
# (event, result); what is left out went as it should and asks for nothing.
OUTCOMES: Mapping[tuple[str, str], VolumeChange] = {
    ("attachVolume", "failed"): VolumeChange.ATTACH_FAILED,
    # AWS attaches again by itself after it has served a host; a key that is gone forbids it.
    ("reattachVolume", "failed"): VolumeChange.ATTACH_FAILED,
    ("createVolume", "failed"): VolumeChange.CREATE_FAILED,
    ("modifyVolume", "optimizing"): VolumeChange.MODIFICATION_STARTED,
    ("modifyVolume", "completed"): VolumeChange.MODIFICATION_COMPLETED,
    ("modifyVolume", "failed"): VolumeChange.MODIFICATION_FAILED,
}


def read_volume(envelope: Envelope) -> Iterator[VolumeNotice | Ignored]:
    # AWS's own sample of one of these events has a blank before its name.
    event = (text(envelope.detail, "event") or "").strip()
    result = text(envelope.detail, "result")
    found = [id_ for value in envelope.resources if (id_ := volume_in(value))]
    if not found:
        # A key's ARN may stand beside the volume's.
        yield envelope.says(f"({display_text(event)}) names no volume in resources.")
        return
    change = OUTCOMES.get((event, result or ""))
    for volume_id in dict.fromkeys(found):
        if change is None:
            yield envelope.ignored(
                f"{display_text(event)} of volume {volume_id} is {display_text(result)}: nothing "
                "is to be done."
            )
        else:
            yield VolumeNotice(
                volume_id=volume_id,
                change=change,
                cause=text(envelope.detail, "cause") or "",
                dedupe_key=":".join((change, volume_id, _request(envelope))),
                **envelope.identity,
            )


def _request(envelope: Envelope) -> str:
    """Return what two deliveries of one outcome share; a failed attachment has no request id."""
    return text(envelope.detail, "request-id") or envelope.event_id


LEAVING_STATES = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
STAYING_STATES = frozenset({"pending", "running"})


class Notice(NamedTuple):
    """What an announcement about one instance is, and the name of the rule that lets it through."""

    kind: Kind
    rule: str


NOTICES = {
    "EC2 Spot Instance Interruption Warning": Notice(Kind.SPOT_INTERRUPTION, "spot"),
    "EC2 Capacity Reservation Instance Interruption Warning": Notice(
        Kind.CAPACITY_RESERVATION, "capacity-reservation"
    ),
    "EC2 Instance Rebalance Recommendation": Notice(Kind.REBALANCE, "rebalance"),
    "EC2 Instance State-change Notification": Notice(Kind.STATE_CHANGE, "state-change"),
}
# AWS's pages name it both ways. Forty minutes before a block ends; its instances go from half an
# hour before.
BLOCK_EXPIRES = (
    "Capacity Block Expiration Warning",
    "Capacity Block Reservation Expiration Warning",
)


def read_instance(envelope: Envelope) -> Iterator[Interruption | VolumeNotice | Advisory | Ignored]:
    if envelope.detail_type == VOLUME_NOTIFICATION:
        yield from read_volume(envelope)
    elif (notice := NOTICES.get(envelope.detail_type or "")) is not None:
        yield _notice(envelope, notice.kind)
    elif envelope.detail_type in BLOCK_EXPIRES:
        yield _block_expires(envelope)
    else:
        yield envelope.says("is not an announcement about a node.")


def _block_expires(envelope: Envelope) -> Advisory:
    """Tell of a capacity block that ends: it names a reservation, and no instance."""
    reservation = text(envelope.detail, "capacity-reservation-id")
    ends = text(envelope.detail, "end-date")
    named = display_text(reservation or next(iter(envelope.resources), None))
    return Advisory(
        sentence=(
            f"Capacity block {named} ends at {display_text(ends)}; EC2 terminates its instances in "
            "the half hour before. Rotate brokers off them now."
        ),
        dedupe_key=":".join(("advisory", "capacity-block", reservation or envelope.event_id)),
        **envelope.identity,
    )


def _notice(envelope: Envelope, kind: Kind) -> Interruption | Ignored:
    detail = envelope.detail
    # The reservation's page shows the id in `instance-id` and the ARN in `resources`, as text.
    named = (detail.get("instance-id"), *envelope.resources)
    instance_id = next((found for value in named if (found := instance_in(value))), None)
    if instance_id is None:
        return envelope.says("names no instance in instance-id.")
    state = (text(detail, "state") or "").strip().lower() if kind is Kind.STATE_CHANGE else None
    if state in STAYING_STATES:
        return envelope.ignored(
            f"Instance {instance_id} is {display_text(state)}: it is not leaving."
        )
    if state is not None and state not in LEAVING_STATES:
        return envelope.ignored(
            f"Instance {instance_id} is {display_text(state)}, an unknown state; the sweep asks "
            "EC2."
        )
    return Interruption(
        kind=kind,
        instance_id=instance_id,
        dedupe_key=":".join((kind, instance_id, envelope.event_id)),
        instance_state=state,
        due_at=epoch(detail.get("instance-termination-time")),
        **envelope.identity,
    )


ALARM_STATE_CHANGE = "CloudWatch Alarm State Change"
# Metrics that say a node's storage answers no more, whatever the alarm on them is called.
STALLED_METRICS = frozenset({"StatusCheckFailed_AttachedEBS", "VolumeStalledIOCheck"})
# An alarm watches ten metrics at most; more than that is no alarm.
MOST_METRICS = 20


def read_alarm(envelope: Envelope) -> Iterator[Interruption | VolumeNotice | Ignored]:
    if envelope.detail_type != ALARM_STATE_CHANGE:
        yield envelope.says("is not an announcement about a node.")
        return
    name = text(envelope.detail, "alarmName")
    state = part(envelope.detail.get("state"))
    value = text(state, "value")
    if value not in {"ALARM", "OK"}:
        yield envelope.says(f"({display_text(name)}) is {display_text(value)}, which says nothing.")
        return
    watched = list(_watched_dimensions(envelope.detail))
    if not watched:
        yield envelope.says(
            f"({display_text(name)}) watches no stalled I/O of a volume or an instance."
        )
    said = text(state, "reason") or ""
    for dimensions in watched:
        yield _stall(envelope, dimensions, over=value == "OK", name=name, said=said)


def _stall(
    envelope: Envelope, dimensions: Fields, *, over: bool, name: str | None, said: str
) -> Interruption | VolumeNotice | Ignored:
    volume_id = volume_in(dimensions.get("VolumeId"))
    instance_id = instance_in(dimensions.get("InstanceId"))
    spell = ":".join(("ok" if over else "alarm", name or "", envelope.event_id))
    if volume_id is not None:
        return VolumeNotice(
            volume_id=volume_id,
            change=VolumeChange.STALLED_IO,
            cause=said,
            instance_id=instance_id,
            event_type=name,
            over=over,
            dedupe_key=":".join((VolumeChange.STALLED_IO, volume_id, spell)),
            **envelope.identity,
        )
    if instance_id is not None:
        return Interruption(
            kind=Kind.VOLUME_PROBLEM,
            instance_id=instance_id,
            event_type=VolumeChange.STALLED_IO,
            closed=over,
            dedupe_key=":".join((Kind.VOLUME_PROBLEM, instance_id, spell)),
            **envelope.identity,
        )
    return envelope.says(f"({display_text(name)}) watches a metric of no volume and no instance.")


def _watched_dimensions(detail: Fields) -> Iterator[Mapping[str, object]]:
    """Yield the dimensions of each metric of stalled I/O that the alarm watches."""
    metrics = part(detail.get("configuration")).get("metrics")
    for entry in metrics[:MOST_METRICS] if isinstance(metrics, list) else []:
        metric = part(part(part(entry).get("metricStat")).get("metric"))
        if text(metric, "name") in STALLED_METRICS:
            yield part(metric.get("dimensions"))


# detail-type -> who moves traffic, and whether that is over.
SHIFTS: Mapping[str, tuple[ZoneSource, bool]] = {
    "Autoshift In Progress": (ZoneSource.AUTOSHIFT, False),
    "Autoshift Completed": (ZoneSource.AUTOSHIFT, True),
    "FIS Experiment Autoshift In Progress": (ZoneSource.AUTOSHIFT, False),
    "FIS Experiment Autoshift Completed": (ZoneSource.AUTOSHIFT, True),
    "FIS Experiment Autoshift Canceled": (ZoneSource.AUTOSHIFT, True),
    "Manual Shift Started": (ZoneSource.MANUAL_SHIFT, False),
    "Manual Shift Updated": (ZoneSource.MANUAL_SHIFT, False),
    "Manual Shift Canceled": (ZoneSource.MANUAL_SHIFT, True),
    "Practice Run Started": (ZoneSource.PRACTICE_RUN, False),
    "Practice Run Succeeded": (ZoneSource.PRACTICE_RUN, True),
    "Practice Run Interrupted": (ZoneSource.PRACTICE_RUN, True),
    "Practice Run Failed": (ZoneSource.PRACTICE_RUN, True),
}
# Nobody announces that a manual shift has expired: this is the longest one may last unless updated.
LONGEST_MANUAL_SHIFT_SECONDS = 3 * 24 * 3600


def read_zonal_shift(envelope: Envelope) -> Iterator[ZoneNotice | Ignored]:
    shift = SHIFTS.get(envelope.detail_type or "")
    if shift is None:
        yield envelope.says("is not a shift that this toolkit knows.")
        return
    metadata = part(envelope.detail.get("metadata"))
    away_from = text(metadata, "awayFrom")
    zone_id = zone_id_in(away_from)
    if zone_id is None:
        yield envelope.says(f"names no zone id in awayFrom: {display_text(away_from)}.")
        return
    source, over = shift
    said_at = envelope.identity["occurred_at"]
    longest = LONGEST_MANUAL_SHIFT_SECONDS if source is ZoneSource.MANUAL_SHIFT else None
    resource = next(iter(envelope.resources), None)
    yield ZoneNotice(
        key=_key(source, zone_id, _shift_id(envelope.detail, metadata) or resource),
        zone_ids=(zone_id,),
        over=over,
        source=source,
        # Without a resource it is AWS's word on the zone itself (observer notification).
        resource=resource,
        updated_at=said_at,
        until=None if over or longest is None or said_at is None else said_at + longest,
        event_type=envelope.detail_type,
        said=(text(metadata, "notes") or "")[:LONGEST_FIELD],
        dedupe_key=":".join((source, zone_id, "over" if over else "began", envelope.event_id)),
        **envelope.identity,
    )


def _key(source: ZoneSource, zone_id: str, shift: str | None) -> str:
    """Name a shift. AWS moves traffic out of a zone once for everybody; people, per resource."""
    if source is ZoneSource.MANUAL_SHIFT and shift is not None:
        return f"{source}:{zone_id}:{shift}"
    return f"{source}:{zone_id}"


def _shift_id(detail: Fields, metadata: Fields) -> str | None:
    """Return ARC's id of a shift; its events' pages show none, its API calls it zonalShiftId."""
    for fields in (metadata, part(detail.get("data")), detail):
        found = text(fields, "zonalShiftId") or text(fields, "shiftId")
        if found is not None:
            return found
    return None


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
            f"{what} It waits in hook {display_text(hook)} of group {display_text(group)}, where "
            "its broker stops without a drain or the hook runs out. Move its broker away first, "
            "then complete the hook with `aws autoscaling complete-lifecycle-action`."
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
