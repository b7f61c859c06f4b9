"""The EBS CSI driver's controller: volumes for claims, attached where their pods run, and grown.

The Kubernetes controllers decide, through PersistentVolumeClaims and VolumeAttachments; EC2 (moto)
holds the volumes; volumes/<id> is what is on them. Attaching is what external-attacher and the
driver's ControllerPublishVolume do together: the attach-detach controller makes a VolumeAttachment
when a pod is bound, and deletes it once the node no longer reports the volume as in use.

Run it as `python -m local.kubernetes.csi` with STILLWATER_TWIN set.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from core.ground.errors import Conflict
from core.ground.naming import EBS_CSI_DRIVER
from local.journal import Journal
from local.kubernetes.client import Api, Informer, Object, administrator, find
from local.kubernetes.cloud import CloudError
from local.kubernetes.ebs import EbsCalls
from local.kubernetes.identity import AsDriver
from local.kubernetes.node import CSI_NODES
from local.kubernetes.node_object import timestamp
from local.kubernetes.provisioner import ATTACHMENTS, VOLUMES, Provisioner
from local.kubernetes.resizer import Resizer
from local.kubernetes.tasks import RETRY_SECONDS, Tasks
from local.place import Place
from local.stopping import stop_event

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

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
        self._informer = Informer(api, ATTACHMENTS, self._on_attachment)

    def wait_synced(self) -> None:
        self._informer.wait_synced(30)

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
        volume = find(
            self._api, f"{VOLUMES}/{attachment['spec']['source']['persistentVolumeName']}"
        )
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
        volume = find(
            self._api, f"{VOLUMES}/{attachment['spec']['source']['persistentVolumeName']}"
        )
        handle = volume["spec"]["csi"]["volumeHandle"] if volume else ""
        if handle:
            self._ebs.detach(handle, instance_id)
            time.sleep(DETACH_SECONDS)
        self._api.merge(f"{path}/status", {"status": {"attached": False, "detachError": None}})
        self._api.merge(path, {"metadata": {"finalizers": None}})
        self._tell("volume_detached", handle, instance_id, node, volume)
        return None

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
    provisioner.wait_synced()
    resizer.wait_synced()
    attacher.wait_synced()
    stopped.wait()
    # Informers are daemon threads that may sit in a read; every step taken is in EC2 or the API.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
