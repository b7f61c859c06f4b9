"""Reads what AWS announces, once: raw bytes of a queue -> announcements, or why there is none.

First room of an event's walk: handlers.interruption hands the body of a queue message to `parse`
and gives what comes back to core.incidents. Nothing here raises, whatever the bytes: a message that
cannot be read must reach the ledger as ignored, with its body, and never crash-loop a consumer
(NTH#272, #550). Shapes: NTH's own tests (sqs-monitor_test.go), AWS's Health, Auto Scaling, EC2,
EBS, ARC and CloudWatch event pages, and captures kept by cloud-custodian.
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
