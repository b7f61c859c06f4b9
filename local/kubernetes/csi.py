"""The EBS CSI driver's controller: volumes for claims, attached where their pods run, and grown.

The Kubernetes controllers decide, through PersistentVolumeClaims and VolumeAttachments; EC2 (moto)
holds the volumes; volumes/<id> is what is on them. Attaching is what external-attacher and the
driver's ControllerPublishVolume do together: the attach-detach controller makes a VolumeAttachment
when a pod is bound, and deletes it once the node no longer reports the volume as in use.

A claim's size and its class that change within two seconds of each other are one ModifyVolume. The
driver calls it done when EC2 is optimizing; then the claim has what it asked for, and the file
system grows while the pod runs. A volume that EC2 does not let be modified yet is tried again.

Run it as `python -m local.kubernetes.csi` with STILLWATER_TWIN set.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from core.ground.errors import Conflict
from core.ground.naming import EBS_CSI_DRIVER
from local.journal import Journal
from local.kubernetes.client import Api, Informer, Object, administrator, find, key_of
from local.kubernetes.cloud import CloudError
from local.kubernetes.ebs import (
    ATTACHMENTS,
    RETRY_SECONDS,
    VOLUMES,
    EbsCalls,
    Provisioner,
    Tasks,
    request,
    size_gib,
)
from local.kubernetes.identity import AsDriver
from local.kubernetes.node import CSI_NODES, timestamp
from local.place import Place
from local.processes import stop_event

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


CLASSES = "/apis/storage.k8s.io/v1/volumeattributesclasses"
# The driver's --modify-volume-request-handler-timeout.
COALESCE_SECONDS = 2.0
# EC2 refuses for good what is none of these.
LATER = {"IncorrectModificationState", "VolumeModificationRateExceeded", "RequestLimitExceeded"}


class Resizer:
    """Watches the claims of the EBS driver."""

    def __init__(self, api: Api, ec2: EC2Client, journal: Journal) -> None:
        self._api, self._ec2, self._journal = api, ec2, journal
        self._tasks = Tasks()
        self.informers = [Informer(api, "/api/v1/persistentvolumeclaims", self._on_claim)]

    def _on_claim(self, event: str, claim: Object) -> None:
        if event != "DELETED" and outstanding(claim):
            namespace, name = key_of(claim)
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
            self._tasks.request(f"resize {namespace}/{name}", lambda: self._resize(path))

    def _resize(self, path: str) -> float | None:
        """Take a claim one step towards what it asks for."""
        time.sleep(COALESCE_SECONDS)
        claim = find(self._api, path)
        if claim is None or not outstanding(claim):
            return None
        volume = find(self._api, f"{VOLUMES}/{claim['spec']['volumeName']}")
        if volume is None or (volume["spec"].get("csi") or {}).get("driver") != EBS_CSI_DRIVER:
            return None
        wanted = claim["spec"].get("volumeAttributesClassName")
        found = find(self._api, f"{CLASSES}/{wanted}") if wanted else None
        if wanted and found is None:
            # KEP-3751: Pending until somebody makes the class.
            self._status(path, {"modifyVolumeStatus": _modifying("Pending", wanted)})
            return RETRY_SECONDS
        return self._modify(path, claim, volume, (found or {}).get("parameters") or {})

    def _modify(
        self, path: str, claim: Object, volume: Object, parameters: dict[str, str]
    ) -> float | None:
        wanted = claim["spec"].get("volumeAttributesClassName")
        gib = size_gib(claim["spec"]["resources"]["requests"]["storage"])
        handle = volume["spec"]["csi"]["volumeHandle"]
        asked = {k: v for k, v in request(parameters, gib).items() if k in _MODIFIABLE}
        if not wanted:
            asked = {"Size": gib}
        conditions = [_condition("Resizing", "")] if gib > _capacity_gib(claim) else []
        modifying = _modifying("InProgress", wanted) if wanted and _class_differs(claim) else None
        self._status(path, {"conditions": conditions, "modifyVolumeStatus": modifying})
        try:
            changed = self._ask(handle, asked)
        except ClientError as error:
            return self._write_refusal(path, conditions, wanted, error)
        if changed:
            self._journal.write(
                "csi", "volume_modified", volume_id=handle, claim=claim["metadata"]["name"], **asked
            )
        self._write_capacity(path, volume["metadata"]["name"], gib, wanted)
        return None

    def _ask(self, handle: str, asked: dict[str, Any]) -> bool:
        """Ask EC2 and wait until the volume may be used so; say whether it had to be asked."""
        now = self._ec2.describe_volumes(VolumeIds=[handle])["Volumes"][0]
        if all(now.get(key) == value for key, value in asked.items()):
            return False
        self._ec2.modify_volume(VolumeId=handle, **asked)
        while True:
            latest = self._ec2.describe_volumes_modifications(VolumeIds=[handle])
            if latest["VolumesModifications"][0]["ModificationState"] != "modifying":
                return True
            time.sleep(RETRY_SECONDS / 4)

    def _write_refusal(
        self, path: str, conditions: list[Object], wanted: str | None, error: ClientError
    ) -> float | None:
        """Write down EC2's refusal; what it may grant later is asked again."""
        said = str(error)
        later = error.response["Error"]["Code"] in LATER
        status: dict[str, Any] = {}
        if conditions:
            status["conditions"] = [_condition("ControllerResizeError", said), *conditions]
        if wanted and not later:
            status["modifyVolumeStatus"] = _modifying("Infeasible", wanted)
        self._status(path, status)
        self._journal.write("csi", "modification_refused", reason=said)
        return RETRY_SECONDS if later else None

    def _write_capacity(self, path: str, volume: str, gib: int, wanted: str | None) -> None:
        """Give the volume and the claim what they have now; the file system has grown with it."""
        spec: dict[str, Any] = {"capacity": {"storage": f"{gib}Gi"}}
        if wanted:
            spec["volumeAttributesClassName"] = wanted
        self._api.merge(f"{VOLUMES}/{volume}", {"spec": spec})
        status: dict[str, Any] = {
            "capacity": {"storage": f"{gib}Gi"},
            "conditions": [],
            "modifyVolumeStatus": None,
        }
        if wanted:
            status["currentVolumeAttributesClassName"] = wanted
        self._status(path, status)

    def _status(self, path: str, status: dict[str, Any]) -> None:
        self._api.merge(f"{path}/status", {"status": status})


_MODIFIABLE = {"Size", "Iops", "Throughput"}


def outstanding(claim: Object) -> bool:
    """Say whether a bound claim asks for more room than it has, or for another class."""
    bound = (claim.get("status") or {}).get("phase") == "Bound" and claim["spec"].get("volumeName")
    asked = size_gib(claim["spec"]["resources"]["requests"]["storage"])
    return bool(bound) and (asked > _capacity_gib(claim) or _class_differs(claim))


def _class_differs(claim: Object) -> bool:
    wanted = claim["spec"].get("volumeAttributesClassName")
    given = (claim.get("status") or {}).get("currentVolumeAttributesClassName")
    return bool(wanted) and wanted != given


def _capacity_gib(claim: Object) -> int:
    capacity = (claim.get("status") or {}).get("capacity") or {}
    return size_gib(capacity.get("storage", "0Gi"))


def _modifying(status: str, wanted: str) -> dict[str, str]:
    return {"status": status, "targetVolumeAttributesClassName": wanted}


def _condition(kind: str, message: str) -> Object:
    return {
        "type": kind,
        "status": "True",
        "message": message,
        "lastTransitionTime": timestamp(),
    }


ATTACHER_FINALIZER = "external-attacher/ebs-csi-aws-com"
NODE_ID_ANNOTATION = "csi.alpha.kubernetes.io/node-id"
# What EC2 takes for these, at its quickest.
ATTACH_SECONDS = 1.0
DETACH_SECONDS = 1.0


class Attacher:
    """Watches the VolumeAttachments of the EBS driver."""

    def __init__(self, api: Api, ec2: EC2Client, journal: Journal) -> None:
        self._api, self._journal = api, journal
        self._ebs = EbsCalls(ec2)
        self._tasks = Tasks()
        self.informers = [Informer(api, ATTACHMENTS, self._on_attachment)]

    def _on_attachment(self, event: str, attachment: Object) -> None:
        if event != "DELETED" and attachment["spec"]["attacher"] == EBS_CSI_DRIVER:
            name = attachment["metadata"]["name"]
            self._tasks.request(f"attachment {name}", lambda: self._attachment(name))

    def _attachment(self, name: str) -> float | None:
        """Take a VolumeAttachment one step towards what it asks for."""
        path = f"{ATTACHMENTS}/{name}"
        attachment = find(self._api, path)
        if attachment is None:
            return None
        if attachment["metadata"].get("deletionTimestamp"):
            return self._detach(path, attachment)
        if (attachment.get("status") or {}).get("attached"):
            return None
        return self._attach(path, attachment)

    def _attach(self, path: str, attachment: Object) -> float | None:
        node = attachment["spec"]["nodeName"]
        instance_id = self._instance_of(node)
        if instance_id is None:
            # The driver registers on a node a moment after the node is ready.
            return RETRY_SECONDS
        volume = self._volume_of(attachment)
        if volume is None:
            return RETRY_SECONDS
        metadata = {
            "finalizers": [ATTACHER_FINALIZER],
            "annotations": {NODE_ID_ANNOTATION: instance_id},
        }
        self._api.merge(path, {"metadata": metadata})
        handle = volume["spec"]["csi"]["volumeHandle"]
        try:
            device = self._ebs.attach(handle, instance_id)
        except (Conflict, *CloudError) as error:
            problem = {"time": timestamp(), "message": str(error)}
            # Status is a resource of its own: written with the rest it would be dropped silently.
            self._api.merge(f"{path}/status", {"status": {"attachError": problem}})
            return RETRY_SECONDS
        time.sleep(ATTACH_SECONDS)
        self._api.merge(
            f"{path}/status",
            {
                "status": {
                    "attached": True,
                    "attachError": None,
                    "attachmentMetadata": {"devicePath": device},
                }
            },
        )
        self._tell("volume_attached", handle, instance_id, node, volume)
        return None

    def _detach(self, path: str, attachment: Object) -> float | None:
        if ATTACHER_FINALIZER not in (attachment["metadata"].get("finalizers") or []):
            return None
        node = attachment["spec"]["nodeName"]
        # Written at the attach, so that a node which is gone since can still be named.
        annotations = attachment["metadata"].get("annotations") or {}
        instance_id = annotations.get(NODE_ID_ANNOTATION, "")
        volume = self._volume_of(attachment)
        handle = volume["spec"]["csi"]["volumeHandle"] if volume else ""
        if handle:
            self._ebs.detach(handle, instance_id)
            time.sleep(DETACH_SECONDS)
        self._api.merge(f"{path}/status", {"status": {"attached": False, "detachError": None}})
        self._api.merge(path, {"metadata": {"finalizers": None}})
        self._tell("volume_detached", handle, instance_id, node, volume)
        return None

    def _volume_of(self, attachment: Object) -> Object | None:
        name = attachment["spec"]["source"]["persistentVolumeName"]
        return find(self._api, f"{VOLUMES}/{name}")

    def _instance_of(self, node: str) -> str | None:
        csi_node = find(self._api, f"{CSI_NODES}/{node}")
        drivers = (csi_node or {}).get("spec", {}).get("drivers") or []
        return next((d["nodeID"] for d in drivers if d["name"] == EBS_CSI_DRIVER), None)

    def _tell(
        self, event: str, handle: str, instance_id: str, node: str, volume: Object | None
    ) -> None:
        claim = ((volume or {}).get("spec", {}).get("claimRef") or {}).get("name", "")
        self._journal.write(
            "csi", event, volume_id=handle, instance_id=instance_id, node=node, claim=claim
        )


def main() -> None:
    """Run the controller of the twin named by STILLWATER_TWIN until SIGTERM."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("botocore").setLevel(logging.WARNING)
    place = Place.load()
    api = administrator(place)
    stopped = stop_event()
    ec2: Any = AsDriver(place)
    facts = Journal(place)
    provisioner, attacher = Provisioner(place, api, ec2, facts), Attacher(api, ec2, facts)
    resizer = Resizer(api, ec2, facts)
    for informer in (*provisioner.informers, *resizer.informers, *attacher.informers):
        informer.wait_synced(30)
    stopped.wait()
    # Informers are daemon threads that may sit in a read; every step taken is in EC2 or the API.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
