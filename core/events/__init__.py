"""Reads what AWS announces, once: raw bytes of a queue -> announcements, or why there is none.

First room of an event's walk: handlers.interruption hands the body of a queue message to `parse`
and gives what comes back to core.incidents. Nothing here raises, whatever the bytes: a message that
cannot be read must reach the ledger as ignored, with its body, and never crash-loop a consumer
(NTH#272, #550).

announcements  the results: about an instance, a volume, zones or a group, for a person, or ignored
envelope       EventBridge's frame around every event, read the same way by everybody
parsing        `parse`: unwraps, and asks the reader of the event's source
lifecycle, groups    aws.autoscaling: hooks, launches, terminations, instance refreshes
instances, volumes   aws.ec2: warnings, state changes, EBS volume notifications
health, zones, alarms    aws.health, aws.arc-zonal-shift, aws.cloudwatch
health_detail  a Health event's own fields
prose, scheduled    which zones a text calls troubled; what a scheduled change's code asks for

Shapes: NTH's own tests (sqs-monitor_test.go), AWS's Health, Auto Scaling, EC2, EBS, ARC and
CloudWatch event pages, and captures kept by cloud-custodian.
"""

from __future__ import annotations

from core.events.announcements import (
    Advisory,
    Announcement,
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
from core.events.parsing import parse

__all__ = [
    "Advisory",
    "Announcement",
    "GroupChange",
    "GroupNotice",
    "Ignored",
    "Interruption",
    "Kind",
    "VolumeChange",
    "VolumeNotice",
    "ZoneNotice",
    "ZoneSource",
    "parse",
]
