"""Announcements about instances as EventBridge hands them over, AWS Health's among them."""

import json
from datetime import UTC, datetime
from email.utils import format_datetime

from tests.explorer.world import FIRST, START, group_of

HOUR_TEN = "2026-11-20T10:00:00Z"


def _event(source: str, kind: str, id_: str, detail: object, at: str = HOUR_TEN) -> str:
    """Return an event as EventBridge hands it over."""
    frame = {"version": "0", "id": id_, "detail-type": kind, "source": source, "time": at}
    where = {"account": "123456789012", "region": "us-east-1", "resources": []}
    return json.dumps({**frame, **where, "detail": detail})


def hook_event(
    hook: str, *, instance_id: str = FIRST[10], zone: str = "us-east-1a", token: str | None = None
) -> str:
    """Return the EventBridge event of one lifecycle hook, as AWS sends it."""
    detail = {
        "LifecycleActionToken": token or f"token-{hook}",
        "AutoScalingGroupName": group_of(zone),
        "LifecycleHookName": hook,
        "EC2InstanceId": instance_id,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }
    kind = "EC2 Instance-terminate Lifecycle Action"
    return _event("aws.autoscaling", kind, f"event-{instance_id}-{hook}", detail)


def zone_event(zone_id: str, *, said_at: float, over: bool = False) -> str:
    """Return ARC's word that AWS shifts traffic out of a zone, or back."""
    kind = "Autoshift Completed" if over else "Autoshift In Progress"
    detail = {"version": "0.0.1", "metadata": {"awayFrom": zone_id, "notes": ""}}
    id_, at = f"event-shift-{zone_id}-{said_at}", datetime.fromtimestamp(said_at, UTC).isoformat()
    return _event("aws.arc-zonal-shift", kind, id_, detail, at)


def ec2_event(detail_type: str, instance_id: str, **detail: str) -> str:
    """Return an EC2 event about one instance."""
    id_ = f"event-{detail_type}-{instance_id}"
    return _event("aws.ec2", detail_type, id_, {"instance-id": instance_id, **detail})


DAY = 86_400.0
RETIREMENT = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
REBOOT = "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"


def health_event(
    code: str = RETIREMENT,
    *,
    due: float = START + 14 * DAY,
    status: str = "open",
    said_at: float = START,
    number: int = 1,
) -> str:
    """Return a Health event about one instance, as AWS sends it."""

    def written(at: float) -> str:
        return format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)

    detail = {
        "eventArn": f"arn:aws:health:us-east-1::event/EC2/{code}/{number}",
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange",
        "communicationId": f"{code}-{number}-{status}-{said_at}",
        "startTime": written(due),
        "lastUpdatedTime": written(said_at),
        "statusCode": status,
        "affectedEntities": [{"entityValue": FIRST[10]}],
    }
    id_, at = f"health-{code}-{number}-{status}-{said_at}", datetime.fromtimestamp(said_at, UTC)
    return _event("aws.health", "AWS Health Event", id_, detail, at.isoformat())
