"""Reads Kafka's disks from EBS into core.survey's facts, and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from cli.aws_pages import of_names, pages
from core.survey.account_facts import Disk
from core.survey.ebs import EBS_IDS
from core.survey.kafka_facts import Volume
from core.unknown import Unknown

OVER = "completed"
UNWELL = [{"Name": "volume-status.status", "Values": ["impaired", "warning"]}]
FAILED = ("failed", "degraded", "severely-degraded", "stalled")
# Of a snapshot that is not whole yet.
MADE = [{"Name": "status", "Values": ["pending"]}]


def disks(ec2: Any, volumes: Iterable[Volume]) -> dict[str, Disk]:
    """Return Kafka's disks by id; one that is gone is left out, since a filter passes over it."""
    names = {v.handle for v in volumes if v.handle and v.handle.startswith(EBS_IDS)}
    modified = of_names(
        ec2, "describe_volumes_modifications", "VolumesModifications", "volume-id", names
    )
    changes = {str(each["VolumeId"]): str(each.get("ModificationState")) for each in modified}
    return {
        (name := str(item["VolumeId"])): _disk(item, changes.get(name, OVER))
        for item in of_names(ec2, "describe_volumes", "Volumes", "volume-id", names)
    }


def _disk(item: Mapping[str, Any], change: str) -> Disk:
    return Disk(
        type=str(item.get("VolumeType") or ""),
        gib=float(item.get("Size") or 0),
        state=str(item.get("State") or "in-use"),
        multi_attach=bool(item.get("MultiAttachEnabled")),
        key=item.get("KmsKeyId"),
        attached={
            str(each["InstanceId"]): str(each.get("State") or "attached")
            for each in item.get("Attachments") or ()
            # What a service has attached is no machine of the account's.
            if each.get("InstanceId")
        },
        change=None if change == OVER else change,
    )


def checks(ec2: Any, known: Collection[str]) -> dict[str, str]:
    """Return what EBS's checks say of those of some disks that are not ok."""
    # All that are unwell: this call has no filter by name, and fails where one of some is gone.
    return {
        name: _failed_checks(each.get("VolumeStatus") or {})
        for each in pages(ec2, "describe_volume_status", "VolumeStatuses", Filters=UNWELL)
        if (name := str(each["VolumeId"])) in known
    }


def _failed_checks(status: Mapping[str, Any]) -> str:
    """Return what EBS's checks say of a volume that is unwell: impaired (io-enabled: failed)."""
    failed = [
        f"{each.get('Name')}: {each.get('Status')}"
        for each in status.get("Details") or ()
        if each.get("Status") in FAILED
    ]
    return str(status.get("Status")) + (f" ({', '.join(failed)})" if failed else "")


def snapshots(ec2: Any, known: Collection[str]) -> dict[str, int]:
    """Return how many snapshots of each of some disks are being made."""
    made = of_names(
        ec2, "describe_snapshots", "Snapshots", "volume-id", known, MADE, OwnerIds=["self"]
    )
    return dict(Counter(str(each["VolumeId"]) for each in made))


def as_they_are(
    volumes: tuple[Volume, ...] | Unknown, known: Mapping[str, Disk] | Unknown
) -> tuple[Volume, ...] | Unknown:
    """Return volumes with type and size as EBS has them: a class speaks of those it makes next."""
    if isinstance(volumes, Unknown) or isinstance(known, Unknown):
        return volumes
    return tuple(
        replace(each, ebs_type=disk.type or each.ebs_type, gib=disk.gib or each.gib)
        if (disk := known.get(each.handle or ""))
        else each
        for each in volumes
    )
