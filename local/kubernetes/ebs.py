"""Makes an EBS volume for a claim, and deletes it when its reclaim policy says so.

What external-provisioner and the driver's CreateVolume and DeleteVolume do together, on the twin's
EC2. moto would attach one volume to two instances; here EC2's own refusal, VolumeInUse, is kept.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from core.ground.errors import Conflict, InvalidInput, StillwaterError
from core.ground.naming import EBS_CSI_DRIVER, EBS_ZONE_LABEL, ZONE_LABEL
from core.ground.placement import quantity
from local.journal import Journal
from local.kubernetes.client import Api, Informer, Object, find, key_of, tolerating
from local.kubernetes.cloud import CLUSTER_TAG_PREFIX, CloudError, instance_id_of
from local.place import Place

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


RETRY_SECONDS = 1.0
LOG = logging.getLogger(__name__)


class Tasks:
    """Runs one piece of work per key at a time, again while it asks for it or was asked meanwhile.

    Work looks at what is true now and does the next step (level-triggered), so a request that comes
    while it runs means one more look, never two at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Key -> whether it was asked for again while running.
        self._running: dict[str, bool] = {}

    def request(self, key: str, work: Callable[[], float | None]) -> None:
        """Run `work` now; it returns the seconds until it wants to look again, or None."""
        with self._lock:
            if key in self._running:
                self._running[key] = True
                return
            self._running[key] = False
        threading.Thread(target=self._run, args=(key, work), name=key, daemon=True).start()

    def _run(self, key: str, work: Callable[[], float | None]) -> None:
        while True:
            again: float | None = RETRY_SECONDS
            try:
                again = work()
            except (StillwaterError, *CloudError) as error:
                LOG.warning("%s: %s", key, error)
            except Exception:
                LOG.exception("%s failed.", key)
            if again is not None:
                time.sleep(again)
            with self._lock:
                if again is None and not self._running[key]:
                    del self._running[key]
                    return
                self._running[key] = False


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


STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
VOLUMES = "/api/v1/persistentvolumes"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
# What EC2 takes to make a volume, at its quickest.
CREATE_SECONDS = 0.5


class Provisioner:
    """Watches claims and volumes of the EBS driver."""

    def __init__(self, place: Place, api: Api, ec2: EC2Client, journal: Journal) -> None:
        self._place, self._api, self._ec2, self._journal = place, api, ec2, journal
        self._ebs = EbsCalls(ec2)
        self._tasks = Tasks()
        self.informers = [
            Informer(api, "/api/v1/persistentvolumeclaims", self._on_claim),
            Informer(api, VOLUMES, self._on_volume),
        ]

    def _on_claim(self, event: str, claim: Object) -> None:
        annotations = claim["metadata"].get("annotations") or {}
        if (
            event != "DELETED"
            and not claim["spec"].get("volumeName")
            and annotations.get(PROVISIONER) == EBS_CSI_DRIVER
        ):
            namespace, name = key_of(claim)
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
            self._tasks.request(f"provision {namespace}/{name}", lambda: self._provision(path))

    def _on_volume(self, event: str, volume: Object) -> None:
        if event == "DELETED" or (volume["spec"].get("csi") or {}).get("driver") != EBS_CSI_DRIVER:
            return
        name = volume["metadata"]["name"]
        if finalizers(volume) is not None:
            self._tasks.request(f"guard {name}", lambda: self._guard(name))
        if to_delete(volume):
            self._tasks.request(f"delete {name}", lambda: self._delete(name))

    def _guard(self, name: str) -> None:
        """Hold back the deletion of a volume as long as EBS must be asked first, and no longer."""
        volume = find(self._api, f"{VOLUMES}/{name}")
        if volume is not None and (wanted := finalizers(volume)) is not None:
            self._api.merge(f"{VOLUMES}/{name}", {"metadata": {"finalizers": wanted or None}})

    def _provision(self, path: str) -> float | None:
        """Make the volume of a claim once the scheduler has chosen a node for its first pod."""
        claim = find(self._api, path)
        if claim is None or claim["spec"].get("volumeName"):
            return None
        annotations = claim["metadata"].get("annotations") or {}
        storage_class = self._api.get(f"{STORAGE_CLASSES}/{claim['spec']['storageClassName']}")
        selected = annotations.get(SELECTED_NODE)
        if not selected:
            return None
        node = find(self._api, f"/api/v1/nodes/{selected}")
        zone = (node or {}).get("metadata", {}).get("labels", {}).get(EBS_ZONE_LABEL)
        if not node or not zone:
            # The node is gone or cannot tell its zone: the scheduler shall choose again.
            self._api.merge(path, {"metadata": {"annotations": {SELECTED_NODE: None}}})
            return None
        name = f"pvc-{claim['metadata']['uid']}"
        parameters = storage_class.get("parameters") or {}
        gib = size_gib(claim["spec"]["resources"]["requests"]["storage"])
        labels = tags(
            parameters,
            volume=name,
            claim=claim["metadata"]["name"],
            namespace=claim["metadata"]["namespace"],
            cluster=self._cluster_of(node),
        )
        volume_id = self._ebs.ensure(zone, request(parameters, gib), labels)
        time.sleep(CREATE_SECONDS)
        self._place.path("volumes", volume_id).mkdir(parents=True, exist_ok=True)
        with tolerating(409):
            self._api.post(VOLUMES, persistent_volume(claim, storage_class, volume_id, zone, gib))
        self._journal.write(
            "csi",
            "volume_created",
            volume_id=volume_id,
            claim=claim["metadata"]["name"],
            zone=zone,
            size_gib=gib,
        )
        return None

    def _cluster_of(self, node: Object) -> str:
        """Return the EKS cluster whose tag the node's instance carries."""
        instance = instance_id_of(node["spec"].get("providerID") or "")
        # Not DescribeTags: the driver's policy does not allow it.
        found = self._ec2.describe_instances(InstanceIds=[instance])["Reservations"]
        keys = [
            tag["Key"]
            for reservation in found
            for each in reservation["Instances"]
            for tag in each.get("Tags", [])
            if tag["Key"].startswith(CLUSTER_TAG_PREFIX)
        ]
        return keys[0].removeprefix(CLUSTER_TAG_PREFIX) if keys else ""

    def _delete(self, name: str) -> float | None:
        """Delete a released volume whose reclaim policy says so, once nothing has it attached."""
        volume = find(self._api, f"{VOLUMES}/{name}")
        if volume is None or not to_delete(volume):
            return None
        if any(
            attachment["spec"]["source"].get("persistentVolumeName") == name
            for attachment in self._api.get(ATTACHMENTS)["items"]
        ):
            return RETRY_SECONDS
        handle = volume["spec"]["csi"]["volumeHandle"]
        self._ebs.delete(handle)
        shutil.rmtree(self._place.path("volumes", handle), ignore_errors=True)
        if not volume["metadata"].get("deletionTimestamp"):
            volume = self._api.delete(f"{VOLUMES}/{name}")
        held_by = volume["metadata"].get("finalizers") or []
        if PROVISIONER_FINALIZER in held_by:
            left = [f for f in held_by if f != PROVISIONER_FINALIZER]
            self._api.merge(f"{VOLUMES}/{name}", {"metadata": {"finalizers": left or None}})
        self._journal.write("csi", "volume_deleted", volume_id=handle)
        return None


def finalizers(volume: Object) -> list[str] | None:
    """Return the finalizers a volume should have where it has others, else None.

    Source: sig-storage-lib-external-provisioner, handleProtectionFinalizer: one that is retained
    is none of the provisioner's, and may be deleted without it.
    """
    metadata, spec = volume["metadata"], volume["spec"]
    current: list[str] = metadata.get("finalizers") or []
    others = [each for each in current if each != PROVISIONER_FINALIZER]
    if spec.get("persistentVolumeReclaimPolicy") != "Delete":
        wanted = others
    elif volume["status"].get("phase") == "Bound" and not metadata.get("deletionTimestamp"):
        wanted = [*others, PROVISIONER_FINALIZER]
    else:
        return None
    return None if sorted(wanted) == sorted(current) else wanted


def to_delete(volume: Object) -> bool:
    """Say whether a volume's EBS volume goes now: released, and its policy is to delete."""
    metadata = volume["metadata"]
    over = metadata.get("deletionTimestamp") and PROVISIONER_FINALIZER not in (
        metadata.get("finalizers") or []
    )
    return (
        not over
        and volume["status"].get("phase") == "Released"
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    )


def persistent_volume(
    claim: Object, storage_class: Object, volume_id: str, zone: str, gib: int
) -> Object:
    """Return the PersistentVolume of a claim, bound to it and to its zone."""
    metadata, spec = claim["metadata"], claim["spec"]
    body: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {PROVISIONED_BY: EBS_CSI_DRIVER},
            "finalizers": [PROVISIONER_FINALIZER],
        },
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": f"{gib}Gi"},
            "volumeMode": "Filesystem",
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "csi": {
                "driver": EBS_CSI_DRIVER,
                "volumeHandle": volume_id,
                "fsType": (storage_class.get("parameters") or {}).get(
                    "csi.storage.k8s.io/fstype", "ext4"
                ),
            },
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": ZONE_LABEL, "operator": "In", "values": [zone]}
                            ]
                        }
                    ]
                }
            },
        },
    }
    if spec.get("volumeAttributesClassName"):
        body["spec"]["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
    return body
