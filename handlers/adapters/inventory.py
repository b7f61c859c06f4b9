"""EC2's lists, answered in core's words: volumes, instances by tag, status checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import boto3
from botocore.exceptions import ClientError

from core.incidents.inventory import EbsVolume, ScheduledEvent, StatusView
from core.incidents.ownership import Ownership
from handlers.adapters.aws import tag_filters
from handlers.adapters.calls import CLIENT, portions
from handlers.adapters.shapes import known_shape

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceStatusTypeDef

# EC2 names at most so many instances in one question about their status.
MOST_STATUSES_PER_CALL = 100
# EC2 keeps a terminated instance on its list for about an hour.
_NO_SUCH_VOLUME = {"InvalidVolume.NotFound", "InvalidParameterValue"}


class Inventory(Protocol):
    """What the handlers ask of EC2's lists."""

    def volume(self, volume_id: str) -> EbsVolume | None:
        """Return a volume, or None when EC2 does not know it (any more)."""

    def instance_states(self, whose: Ownership) -> Mapping[str, str]:
        """Return the state of every instance of a cluster, those that ended too."""

    def statuses(self, instance_ids: Sequence[str]) -> Mapping[str, StatusView]:
        """Return the checks and scheduled events of running instances; others are missing."""


class Ec2Inventory:
    """EC2 through boto3."""

    def __init__(self, region: str) -> None:
        self._ec2 = boto3.client("ec2", region_name=region, config=CLIENT)

    @known_shape("EC2")
    def volume(self, volume_id: str) -> EbsVolume | None:
        try:
            answer = self._ec2.describe_volumes(VolumeIds=[volume_id])
        except ClientError as error:
            if error.response["Error"]["Code"] in _NO_SUCH_VOLUME:
                return None
            raise
        if not answer["Volumes"]:
            return None
        found = answer["Volumes"][0]
        attached = [a["InstanceId"] for a in found.get("Attachments", []) if "InstanceId" in a]
        return EbsVolume(
            volume_id=volume_id,
            instance_id=attached[0] if attached else None,
            zone=found.get("AvailabilityZone", ""),
            tags={tag["Key"]: tag.get("Value", "") for tag in found.get("Tags", [])},
        )

    @known_shape("EC2")
    def instance_states(self, whose: Ownership) -> Mapping[str, str]:
        pages = self._ec2.get_paginator("describe_instances")
        return {
            instance["InstanceId"]: instance["State"]["Name"]
            for mark in whose.of_instances
            for page in pages.paginate(Filters=tag_filters(mark))
            for reservation in page["Reservations"]
            for instance in reservation.get("Instances", [])
        }

    @known_shape("EC2")
    def statuses(self, instance_ids: Sequence[str]) -> Mapping[str, StatusView]:
        found: dict[str, StatusView] = {}
        for some in portions(instance_ids, MOST_STATUSES_PER_CALL):
            found |= self._some_statuses(some)
        return found

    def _some_statuses(self, instance_ids: list[str]) -> dict[str, StatusView]:
        pages = self._ec2.get_paginator("describe_instance_status").paginate(
            InstanceIds=instance_ids
        )
        try:
            return {s["InstanceId"]: _status(s) for page in pages for s in page["InstanceStatuses"]}
        except ClientError as error:
            if error.response["Error"]["Code"] == "InvalidInstanceID.NotFound":
                # One that EC2 has just forgotten hides the others until the next round.
                return {}
            raise


def _status(found: InstanceStatusTypeDef) -> StatusView:
    checks: Mapping[str, Mapping[str, Any]] = {
        "system": found.get("SystemStatus", {}),
        "instance": found.get("InstanceStatus", {}),
        "attached EBS": found.get("AttachedEbsStatus", {}),
    }
    return StatusView(
        instance_id=found["InstanceId"],
        events=tuple(
            ScheduledEvent(
                event_id=event.get("InstanceEventId", ""),
                code=event.get("Code", ""),
                description=event.get("Description", ""),
                not_before=_seconds(event.get("NotBefore")),
            )
            for event in found.get("Events", [])
        ),
        impaired={
            # Without a time it counts as long since.
            name: min(filter(None, map(_impaired_since, check.get("Details") or ())), default=0.0)
            for name, check in checks.items()
            if check.get("Status") == "impaired"
        },
    )


def _impaired_since(detail: Mapping[str, Any]) -> float | None:
    return _seconds(detail.get("ImpairedSince"))


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
