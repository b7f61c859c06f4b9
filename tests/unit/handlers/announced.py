"""Announcements about instances as EventBridge hands them over."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from tests.explorer.world import FIRST, group_of


def hook_event(
    hook: str, *, instance_id: str = FIRST[10], zone: str = "us-east-1a", token: str | None = None
) -> str:
    """Return the EventBridge event of one lifecycle hook, as AWS sends it."""
    return json.dumps(
        {
            "version": "0",
            "id": f"event-{instance_id}-{hook}",
            "detail-type": "EC2 Instance-terminate Lifecycle Action",
            "source": "aws.autoscaling",
            "account": "123456789012",
            "time": "2026-11-20T10:00:00Z",
            "region": "us-east-1",
            "resources": [],
            "detail": {
                "LifecycleActionToken": token or f"token-{hook}",
                "AutoScalingGroupName": group_of(zone),
                "LifecycleHookName": hook,
                "EC2InstanceId": instance_id,
                "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
                "Origin": "AutoScalingGroup",
                "Destination": "EC2",
            },
        }
    )


def zone_event(zone_id: str, *, said_at: float, over: bool = False) -> str:
    """Return ARC's word that AWS shifts traffic out of a zone, or back."""
    return json.dumps(
        {
            "version": "0",
            "id": f"event-shift-{zone_id}-{said_at}",
            "detail-type": "Autoshift Completed" if over else "Autoshift In Progress",
            "source": "aws.arc-zonal-shift",
            "account": "123456789012",
            "time": datetime.fromtimestamp(said_at, UTC).isoformat(),
            "region": "us-east-1",
            "resources": [],
            "detail": {"version": "0.0.1", "metadata": {"awayFrom": zone_id, "notes": ""}},
        }
    )


def ec2_event(detail_type: str, instance_id: str, **detail: str) -> str:
    """Return an EC2 event about one instance."""
    return json.dumps(
        {
            "version": "0",
            "id": f"event-{detail_type}-{instance_id}",
            "detail-type": detail_type,
            "source": "aws.ec2",
            "account": "123456789012",
            "time": "2026-11-20T10:00:00Z",
            "region": "us-east-1",
            "resources": [],
            "detail": {"instance-id": instance_id, **detail},
        }
    )
