"""EC2's word on volumes: their shape, their latest modification, the instances they are on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import boto3
from botocore.exceptions import ClientError

from core.stored import take_word
from core.volumes.ledger import Modification, ModificationState
from core.volumes.limits import Gp3, Performance
from handlers.adapters.calls import PATIENT_CLIENT, portions
from handlers.adapters.shapes import known_shape

MOST_PER_CALL = 200
# Of volumes that were never modified EC2 says that there is no such thing.
_NEVER_MODIFIED = {"InvalidVolumeModification.NotFound", "InvalidVolume.NotFound"}


@dataclass(frozen=True, slots=True)
class EbsView:
    """A volume as EC2 has it, and where it is attached."""

    shape: Gp3
    instance_id: str | None


class Ebs(Protocol):
    """What λ volumes asks of EC2."""

    def volumes(self, ids: Sequence[str]) -> Mapping[str, EbsView]:
        """Return the volumes that EC2 knows; another type's than gp3 are left out."""

    def modifications(self, ids: Sequence[str]) -> Mapping[str, Modification]:
        """Return the latest modification of those that have one."""

    def instance_types(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the type of every instance."""


class Ec2Ebs:
    """EC2 through boto3."""

    def __init__(self, region: str) -> None:
        self._ec2: Any = boto3.client("ec2", region_name=region, config=PATIENT_CLIENT)

    @known_shape("EC2")
    def volumes(self, ids: Sequence[str]) -> Mapping[str, EbsView]:
        found = {}
        for some in portions(ids, MOST_PER_CALL):
            # A filter, since one volume that is gone would fail a call that names it.
            filters = [{"Name": "volume-id", "Values": some}]
            for item in self._ec2.describe_volumes(Filters=filters)["Volumes"]:
                if item.get("VolumeType") == "gp3":
                    attached = [a["InstanceId"] for a in item.get("Attachments", [])]
                    found[item["VolumeId"]] = EbsView(
                        Gp3(item["Size"], Performance(item["Iops"], item["Throughput"])),
                        attached[0] if attached else None,
                    )
        return found

    @known_shape("EC2")
    def modifications(self, ids: Sequence[str]) -> Mapping[str, Modification]:
        found: dict[str, Modification] = {}
        for some in portions(ids, MOST_PER_CALL):
            filters = [{"Name": "volume-id", "Values": some}]
            try:
                answer = self._ec2.describe_volumes_modifications(Filters=filters)
            except ClientError as error:
                if error.response["Error"]["Code"] in _NEVER_MODIFIED:
                    continue
                raise
            for item in answer["VolumesModifications"]:
                read = _modification(item)
                known = found.get(item["VolumeId"])
                if known is None or known.started_at < read.started_at:
                    found[item["VolumeId"]] = read
        return found

    @known_shape("EC2")
    def instance_types(self, ids: Sequence[str]) -> Mapping[str, str]:
        found = {}
        for some in portions(ids, MOST_PER_CALL):
            filters = [{"Name": "instance-id", "Values": some}]
            for reservation in self._ec2.describe_instances(Filters=filters)["Reservations"]:
                for item in reservation["Instances"]:
                    found[item["InstanceId"]] = item["InstanceType"]
        return found


def _modification(item: Mapping[str, Any]) -> Modification:
    ended = item.get("EndTime")
    found = {
        "started_at": item["StartTime"].timestamp(),
        "ended_at": ended.timestamp() if ended else None,
        "state": item.get("ModificationState"),
        "target": _shape(item, "Target"),
        "original": _shape(item, "Original"),
    }
    take_word(found, "state", ModificationState, ModificationState.UNKNOWN)
    return Modification(**found)


def _shape(item: Mapping[str, Any], side: str) -> Gp3:
    return Gp3(item[f"{side}Size"], Performance(item[f"{side}Iops"], item[f"{side}Throughput"]))
