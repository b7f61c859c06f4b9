"""Grows and speeds up the volume of a claim, as external-resizer and the EBS driver do together.

A claim's size and its class that change within two seconds of each other are one ModifyVolume. The
driver calls it done when EC2 is optimizing; then the claim has what it asked for, and the file
system grows while the pod runs. A volume that EC2 does not let be modified yet is tried again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from core.ground.naming import EBS_CSI_DRIVER
from local.journal import Journal
from local.kubernetes.client import Api, Informer, Object, find, key_of
from local.kubernetes.ebs import request, size_gib
from local.kubernetes.node_object import timestamp
from local.kubernetes.provisioner import VOLUMES
from local.kubernetes.tasks import RETRY_SECONDS, Tasks

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
        self._informer = Informer(api, "/api/v1/persistentvolumeclaims", self._on_claim)

    def wait_synced(self) -> None:
        self._informer.wait_synced(30)

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
