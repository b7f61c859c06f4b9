"""Writes the message that sends a termination handler to drain a node, where AWS's own got lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from core.incidents.record import Incident
from core.naming import DRAIN_HOOK


def drain_message(incident: Incident) -> str:
    """Return an announcement in place of one that got lost, or that nobody makes.

    In hooks, as a group sends it directly: without the lost token the termination handler drains
    but cannot complete its hook; the incident's end completes both. Out of hooks, EC2's
    recommendation to leave, which it drains and completes nothing for.
    """
    if not incident.hooks:
        return json.dumps(
            {
                "version": "0",
                "id": f"stillwater-{incident.id}",
                "detail-type": "EC2 Instance Rebalance Recommendation",
                "source": "aws.ec2",
                "time": datetime.fromtimestamp(incident.opened_at, UTC).isoformat(),
                "detail": {"instance-id": incident.instance_id},
            }
        )
    return json.dumps(
        {
            "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
            "AutoScalingGroupName": incident.group,
            "LifecycleHookName": DRAIN_HOOK,
            "LifecycleActionToken": "00000000-0000-0000-0000-000000000000",
            "EC2InstanceId": incident.instance_id,
            "RequestId": f"stillwater-{incident.id}",
        }
    )
