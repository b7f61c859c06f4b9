"""Settles volumes for `stillwater destroy`, between Kafka's layer and the ones below it.

They are retained, so that a Kafka deleted by mistake loses no data, and `pulumi destroy` leaves
them to whoever owns them. An environment that its spec calls ephemeral has nothing worth keeping:
there the EBS driver, which runs until the foundation goes, is told to delete them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from core.errors import StillwaterError
from core.naming import EBS_CSI_DRIVER

VOLUMES = "/api/v1/persistentvolumes"
# One is detached first, which EC2 does in seconds, and deleted, which it does at once.
LIMIT_SECONDS = 120.0
POLL_SECONDS = 0.5


class VolumesApi(Protocol):
    """The two requests made here."""

    def get(self, path: str) -> dict[str, Any]: ...

    def merge(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]: ...


def delete_retained(
    api: VolumesApi, namespace: str, limit_seconds: float = LIMIT_SECONDS
) -> tuple[str, ...]:
    """Delete the volumes that a namespace's claims left behind, EBS's with them; name them."""
    left = retained_volumes(api.get(VOLUMES)["items"], namespace)
    for name in left:
        api.merge(f"{VOLUMES}/{name}", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
    deadline = time.monotonic() + limit_seconds
    while still := set(left) & {v["metadata"]["name"] for v in api.get(VOLUMES)["items"]}:
        if time.monotonic() > deadline:
            raise StillwaterError(
                f"The EBS driver has not deleted {', '.join(sorted(still))} within "
                f"{limit_seconds:.0f} s; see its controller's log, and run destroy again."
            )
        time.sleep(POLL_SECONDS)
    return left


def of_namespace(volumes: list[dict[str, Any]], namespace: str) -> tuple[str, ...]:
    """Return the EBS volumes of a namespace's claims, each as its claim, size and id."""
    found = []
    for volume in volumes:
        claim = volume["spec"].get("claimRef") or {}
        csi = volume["spec"].get("csi") or {}
        if csi.get("driver") == EBS_CSI_DRIVER and claim.get("namespace") == namespace:
            size = volume["spec"].get("capacity", {}).get("storage", "of unknown size")
            found.append(f"{claim.get('name')} ({size}, {csi.get('volumeHandle')})")
    return tuple(sorted(found))


def retained_volumes(volumes: list[dict[str, Any]], namespace: str) -> tuple[str, ...]:
    """Return the EBS volumes whose claim was in a namespace and is gone."""
    return tuple(
        volume["metadata"]["name"]
        for volume in volumes
        if (volume["spec"].get("csi") or {}).get("driver") == EBS_CSI_DRIVER
        and (volume["spec"].get("claimRef") or {}).get("namespace") == namespace
        and volume["status"].get("phase") == "Released"
    )
