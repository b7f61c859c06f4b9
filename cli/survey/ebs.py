"""Reads Kafka's disks from EBS into core.survey's facts, and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from cli.survey.aws_pages import pages
from core.survey.account_facts import Disk
from core.survey.ebs import EBS_IDS
from core.survey.facts import Unread
from core.survey.kafka_facts import Volume

# Filters take no more values at once.
AT_ONCE = 200
OVER = "completed"
UNWELL = [{"Name": "volume-status.status", "Values": ["impaired", "warning"]}]
FAILED = ("failed", "degraded", "severely-degraded", "stalled")
# Of a snapshot that is not whole yet.
MADE = [{"Name": "status", "Values": ["pending"]}]


def disks(ec2: Any, volumes: Iterable[Volume]) -> dict[str, Disk]:
    """Return Kafka's disks by id; one that is gone is left out, since a filter passes over it."""
    names = sorted({v.handle for v in volumes if v.handle and v.handle.startswith(EBS_IDS)})
    found: dict[str, Disk] = {}
    for start in range(0, len(names), AT_ONCE):
        asked = [{"Name": "volume-id", "Values": names[start : start + AT_ONCE]}]
        changes = {
            str(each["VolumeId"]): str(each.get("ModificationState"))
            for each in pages(
                ec2, "describe_volumes_modifications", "VolumesModifications", Filters=asked
            )
        }
        for item in pages(ec2, "describe_volumes", "Volumes", Filters=asked):
            name = str(item["VolumeId"])
            change = changes.get(name, OVER)
            found[name] = Disk(
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
    return found


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
    names = sorted(known)
    found: Counter[str] = Counter()
    for start in range(0, len(names), AT_ONCE):
        asked = [{"Name": "volume-id", "Values": names[start : start + AT_ONCE]}, *MADE]
        for each in pages(ec2, "describe_snapshots", "Snapshots", OwnerIds=["self"], Filters=asked):
            found[str(each["VolumeId"])] += 1
    return dict(found)


def as_they_are(
    volumes: tuple[Volume, ...] | Unread, known: Mapping[str, Disk] | Unread
) -> tuple[Volume, ...] | Unread:
    """Return volumes with type and size as EBS has them: a class speaks of those it makes next."""
    if isinstance(volumes, Unread) or isinstance(known, Unread):
        return volumes
    return tuple(
        replace(each, ebs_type=disk.type or each.ebs_type, gib=disk.gib or each.gib)
        if (disk := known.get(each.handle or ""))
        else each
        for each in volumes
    )
