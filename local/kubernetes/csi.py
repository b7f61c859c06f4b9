"""The EBS CSI driver's controller: makes a volume for a claim, attaches it to a node, detaches it.

It does the work of three side cars and the driver: external-provisioner, external-attacher and
ebs-plugin. The Kubernetes controllers decide, through PersistentVolumeClaims and VolumeAttachments;
EC2 (moto) holds the volumes; volumes/<id> is what is on them.

Run it as `python -m local.kubernetes.csi` with STILLWATER_TWIN set.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from core.errors import Conflict, StillwaterError
from core.naming import EBS_CSI_DRIVER, EBS_ZONE_LABEL, ZONE_LABEL
from local.journal import Journal, journal
from local.kubernetes import ebs
from local.kubernetes.client import Api, ApiError, Informer, Object, key_of
from local.kubernetes.cloud import CLUSTER_TAG_PREFIX, CloudError, client, instance_id_of
from local.kubernetes.ebs import Ebs
from local.kubernetes.node import CSI_NODES, timestamp
from local.place import Place

STORAGE = "/apis/storage.k8s.io/v1"
ATTACHMENTS = f"{STORAGE}/volumeattachments"
VOLUMES = "/api/v1/persistentvolumes"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
ATTACHER_FINALIZER = "external-attacher/ebs-csi-aws-com"
PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
# What EC2 takes for these, at its quickest.
CREATE_SECONDS = 0.5
ATTACH_SECONDS = 1.0
DETACH_SECONDS = 1.0
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


class Controller:
    """Provisioner and attacher of one twin."""

    def __init__(self, place: Place, api: Api, volumes: Ebs, facts: Journal) -> None:
        self._place, self._api, self._ebs, self._journal = place, api, volumes, facts
        self._tasks = Tasks()
        self._informers = [
            Informer(api, "/api/v1/persistentvolumeclaims", self._on_claim),
            Informer(api, VOLUMES, self._on_volume),
            Informer(api, ATTACHMENTS, self._on_attachment),
        ]

    def wait_synced(self) -> None:
        for informer in self._informers:
            informer.wait_synced(30)

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
        spec = volume["spec"]
        if (
            event != "DELETED"
            and volume["status"].get("phase") == "Released"
            and spec.get("persistentVolumeReclaimPolicy") == "Delete"
            and (spec.get("csi") or {}).get("driver") == EBS_CSI_DRIVER
        ):
            name = volume["metadata"]["name"]
            self._tasks.request(f"delete {name}", lambda: self._delete(name))

    def _on_attachment(self, event: str, attachment: Object) -> None:
        if event != "DELETED" and attachment["spec"]["attacher"] == EBS_CSI_DRIVER:
            name = attachment["metadata"]["name"]
            self._tasks.request(f"attachment {name}", lambda: self._attachment(name))

    def _provision(self, path: str) -> float | None:
        """Make the volume of a claim once the scheduler has chosen a node for its first pod."""
        claim = self._read(path)
        if claim is None or claim["spec"].get("volumeName"):
            return None
        annotations = claim["metadata"].get("annotations") or {}
        storage_class = self._api.get(
            f"{STORAGE}/storageclasses/{claim['spec']['storageClassName']}"
        )
        selected = annotations.get(SELECTED_NODE)
        if not selected:
            return None
        node = self._read(f"/api/v1/nodes/{selected}")
        zone = (node or {}).get("metadata", {}).get("labels", {}).get(EBS_ZONE_LABEL)
        if not node or not zone:
            # The node is gone or cannot tell its zone: the scheduler shall choose again.
            self._api.merge(path, {"metadata": {"annotations": {SELECTED_NODE: None}}})
            return None
        name = f"pvc-{claim['metadata']['uid']}"
        parameters = storage_class.get("parameters") or {}
        gib = ebs.size_gib(claim["spec"]["resources"]["requests"]["storage"])
        labels = ebs.tags(
            parameters,
            volume=name,
            claim=claim["metadata"]["name"],
            namespace=claim["metadata"]["namespace"],
            cluster=self._cluster_of(node),
        )
        volume_id = self._ebs.ensure(zone, ebs.request(parameters, gib), labels)
        time.sleep(CREATE_SECONDS)
        self._place.path("volumes", volume_id).mkdir(parents=True, exist_ok=True)
        try:
            body = persistent_volume(claim, storage_class, volume_id, zone, gib)
            self._api.post(VOLUMES, body)
        except ApiError as error:
            if error.status != 409:
                raise
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
        described: list[dict[str, Any]] = client("ec2", self._place).describe_tags(
            Filters=[{"Name": "resource-id", "Values": [instance]}]
        )["Tags"]
        keys = [tag["Key"] for tag in described if tag["Key"].startswith(CLUSTER_TAG_PREFIX)]
        return keys[0].removeprefix(CLUSTER_TAG_PREFIX) if keys else ""

    def _attachment(self, name: str) -> float | None:
        """Take a VolumeAttachment one step towards what it asks for."""
        path = f"{ATTACHMENTS}/{name}"
        attachment = self._read(path)
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
        volume = self._read(f"{VOLUMES}/{attachment['spec']['source']['persistentVolumeName']}")
        if volume is None:
            return RETRY_SECONDS
        metadata = {
            "finalizers": [ATTACHER_FINALIZER],
            "annotations": {"csi.alpha.kubernetes.io/node-id": instance_id},
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
        instance_id = annotations.get("csi.alpha.kubernetes.io/node-id", "")
        volume = self._read(f"{VOLUMES}/{attachment['spec']['source']['persistentVolumeName']}")
        handle = volume["spec"]["csi"]["volumeHandle"] if volume else ""
        if handle:
            self._ebs.detach(handle, instance_id)
            time.sleep(DETACH_SECONDS)
        self._api.merge(f"{path}/status", {"status": {"attached": False, "detachError": None}})
        self._api.merge(path, {"metadata": {"finalizers": None}})
        self._tell("volume_detached", handle, instance_id, node, volume)
        return None

    def _delete(self, name: str) -> float | None:
        """Delete a released volume whose reclaim policy says so, once nothing has it attached."""
        volume = self._read(f"{VOLUMES}/{name}")
        if volume is None or volume["status"].get("phase") != "Released":
            return None
        if any(
            attachment["spec"]["source"].get("persistentVolumeName") == name
            for attachment in self._informers[2].objects.values()
        ):
            return RETRY_SECONDS
        handle = volume["spec"]["csi"]["volumeHandle"]
        self._ebs.delete(handle)
        shutil.rmtree(self._place.path("volumes", handle), ignore_errors=True)
        if not volume["metadata"].get("deletionTimestamp"):
            volume = self._api.delete(f"{VOLUMES}/{name}")
        left = [f for f in volume["metadata"].get("finalizers") or [] if f != PROVISIONER_FINALIZER]
        self._api.merge(f"{VOLUMES}/{name}", {"metadata": {"finalizers": left or None}})
        self._journal.write("csi", "volume_deleted", volume_id=handle)
        return None

    def _instance_of(self, node: str) -> str | None:
        csi_node = self._read(f"{CSI_NODES}/{node}")
        drivers = (csi_node or {}).get("spec", {}).get("drivers") or []
        return next((d["nodeID"] for d in drivers if d["name"] == EBS_CSI_DRIVER), None)

    def _read(self, path: str) -> Object | None:
        try:
            return self._api.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _tell(
        self, event: str, handle: str, instance_id: str, node: str, volume: Object | None
    ) -> None:
        claim = ((volume or {}).get("spec", {}).get("claimRef") or {}).get("name", "")
        self._journal.write(
            "csi", event, volume_id=handle, instance_id=instance_id, node=node, claim=claim
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


def main() -> None:
    """Run the controller of the twin named by STILLWATER_TWIN until SIGTERM."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(message)s"
    )
    place = Place.load()
    api = Api.from_kubeconfig(place.path("kubeconfig"))
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    controller = Controller(place, api, Ebs(client("ec2", place)), journal(place))
    controller.wait_synced()
    stopped.wait()
    # Informers are daemon threads that may sit in a read; every step taken is in EC2 or the API.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
