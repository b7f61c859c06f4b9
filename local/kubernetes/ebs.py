"""EBS volumes as the CSI driver makes and moves them, on the twin's EC2.

moto would attach one volume to two instances; here EC2's own refusal, VolumeInUse, is kept.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from core.ground.errors import Conflict, InvalidInput
from core.ground.placement import quantity

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

GIB = 1024**3
# What EC2 gives a gp3 volume that asks for nothing.
GP3_IOPS, GP3_THROUGHPUT_MIB_PER_S = 3000, 125
NAME_TAG = "CSIVolumeName"
CLUSTER_TAG = "ebs.csi.aws.com/cluster"
TEMPLATE = re.compile(r"\{\{\s*\.(\w+)\s*\}\}")


def size_gib(written: str) -> int:
    """Return a Kubernetes quantity of storage in whole GiB, rounded up as the driver does."""
    size = quantity(written)
    if size is None:
        raise InvalidInput([f"{written!r} is not the size of a volume; write it as in 10Gi."])
    return math.ceil(size / GIB)


def request(parameters: Mapping[str, str], gib: int) -> dict[str, Any]:
    """Return what a StorageClass's parameters ask of CreateVolume."""
    kind = parameters.get("type", "gp3")
    asked: dict[str, Any] = {
        "VolumeType": kind,
        "Size": gib,
        # The driver's own default is false, whatever the account's default.
        "Encrypted": parameters.get("encrypted", "false").lower() == "true",
    }
    if "kmsKeyId" in parameters:
        asked["KmsKeyId"] = parameters["kmsKeyId"]
    if "iopsPerGB" in parameters:
        asked["Iops"] = int(parameters["iopsPerGB"]) * gib
    elif "iops" in parameters or kind == "gp3":
        asked["Iops"] = int(parameters.get("iops", GP3_IOPS))
    if kind == "gp3":
        asked["Throughput"] = int(parameters.get("throughput", GP3_THROUGHPUT_MIB_PER_S))
    return asked


def tags(
    parameters: Mapping[str, str], *, volume: str, claim: str, namespace: str, cluster: str
) -> dict[str, str]:
    """Return a volume's tags: the driver's own, the provisioner's, and the StorageClass's."""
    values = {"PVCName": claim, "PVCNamespace": namespace, "PVName": volume}
    extra = {}
    for key, text in parameters.items():
        if key.startswith("tagSpecification_"):
            name, _, value = text.partition("=")
            extra[name] = TEMPLATE.sub(lambda m: values.get(m.group(1), m.group(0)), value)
    owned = {f"kubernetes.io/cluster/{cluster}": "owned"} if cluster else {}
    return {
        **extra,
        **owned,
        NAME_TAG: volume,
        CLUSTER_TAG: "true",
        "Name": f"{cluster}-dynamic-{volume}" if cluster else volume,
        "kubernetes.io/created-for/pv/name": volume,
        "kubernetes.io/created-for/pvc/name": claim,
        "kubernetes.io/created-for/pvc/namespace": namespace,
    }


class EbsCalls:
    """The calls of the EBS CSI driver's controller."""

    def __init__(self, ec2: EC2Client) -> None:
        self._ec2 = ec2
        self._lock = threading.Lock()

    def ensure(self, zone: str, asked: Mapping[str, Any], labels: Mapping[str, str]) -> str:
        """Return the id of the volume with this name tag, made now if there is none."""
        found = self._ec2.describe_volumes(
            Filters=[{"Name": f"tag:{NAME_TAG}", "Values": [labels[NAME_TAG]]}]
        )["Volumes"]
        if found:
            return str(found[0]["VolumeId"])
        created = self._ec2.create_volume(
            AvailabilityZone=zone,
            TagSpecifications=[
                {
                    "ResourceType": "volume",
                    "Tags": [{"Key": key, "Value": value} for key, value in labels.items()],
                }
            ],
            **asked,
        )
        return str(created["VolumeId"])

    def attach(self, volume_id: str, instance_id: str) -> str:
        """Attach a volume and return its device; raise Conflict while another instance has it."""
        with self._lock:
            attachments = self._ec2.describe_volumes(VolumeIds=[volume_id])["Volumes"][0][
                "Attachments"
            ]
            for attachment in attachments:
                if attachment["InstanceId"] == instance_id:
                    return str(attachment["Device"])
                raise Conflict(
                    f"VolumeInUse: {volume_id} is already attached to {attachment['InstanceId']}; "
                    f"it can be attached to {instance_id} once it is detached there."
                )
            device = self._free_device(instance_id)
            self._ec2.attach_volume(VolumeId=volume_id, InstanceId=instance_id, Device=device)
            return device

    def detach(self, volume_id: str, instance_id: str) -> None:
        """Detach a volume; one that is not attached there is left as it is."""
        with self._lock:
            found = self._ec2.describe_volumes(
                Filters=[{"Name": "volume-id", "Values": [volume_id]}]
            )["Volumes"]
            for attachment in found[0]["Attachments"] if found else []:
                if attachment["InstanceId"] == instance_id:
                    self._ec2.detach_volume(VolumeId=volume_id, InstanceId=instance_id)

    def delete(self, volume_id: str) -> None:
        try:
            self._ec2.delete_volume(VolumeId=volume_id)
        except ClientError as error:
            if error.response["Error"]["Code"] != "InvalidVolume.NotFound":
                raise

    def _free_device(self, instance_id: str) -> str:
        """Return the first of the driver's device names that the instance has free."""
        attached = self._ec2.describe_volumes(
            Filters=[{"Name": "attachment.instance-id", "Values": [instance_id]}]
        )["Volumes"]
        used = {a["Device"] for volume in attached for a in volume["Attachments"]}
        names = (f"/dev/xvd{x}{y}" for x in "abcd" for y in "abcdefghijklmnopqrstuvwxyz")
        return next(name for name in names if name not in used and name != "/dev/xvda")
