"""EKS add-ons in the twin: stored as said, and what the rest of the program needs of them is there.

The twin's own parts stand where an add-on's pods would: its kubelet for the network plugin and DNS,
its CSI stand-in for the volume driver. The snapshot controller's kinds are real objects of the API
server, since the program makes some of them.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from local.kubernetes import crds
from local.kubernetes.client import Api, ApiError, administrator, find
from local.pulumi.aws_adapter import Adapter, Aws, adapts
from local.pulumi.provider import Existing, Resource, State
from local.values import Properties

SNAPSHOT_CONTROLLER = "snapshot-controller"
FIELD_MANAGER = "eks"
NOT_FOUND = 404
GONE_SECONDS = 60
REMINDED = "stillwater.dev/reminded"


@adapts("eks/addon:Addon")
class AddonAdapter(Adapter):
    replaces = frozenset({"clusterName", "addonName"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        cluster, addon = inputs["clusterName"], inputs["addonName"]
        if addon == SNAPSHOT_CONTROLLER:
            _define_snapshots(aws, cluster)
        path = f"addon/{cluster}/{addon}/{resource.token(36)}"
        return State(
            f"{cluster}:{addon}",
            {
                "arn": aws.arn("eks", path),
                # EKS says which it chose where the program names none.
                "addonVersion": inputs.get("addonVersion") or "v0.0.0-twin.1",
            },
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:  # noqa: ARG002
        return {"addonVersion": inputs.get("addonVersion") or existing.outputs["addonVersion"]}

    def delete(self, aws: Aws, existing: Existing) -> None:
        if existing.inputs["addonName"] == SNAPSHOT_CONTROLLER:
            _forget_snapshots(aws, existing.inputs["clusterName"])


def _api(aws: Aws) -> Api | None:
    """Return the twin's API server, or None for an account without one."""
    place = aws.place
    if place is None or not place.path("kubeconfig").exists():
        return None
    return administrator(place)


def _define_snapshots(aws: Aws, cluster: str) -> None:
    api = _api(aws)
    if api is not None:
        for definition in crds.snapshot_definitions():
            name = definition["metadata"]["name"]
            api.apply(f"{crds.DEFINITIONS}/{name}", definition, field_manager=_manager(cluster))


def _forget_snapshots(aws: Aws, cluster: str) -> None:
    api = _api(aws)
    if api is None:
        return
    paths = [
        f"{crds.DEFINITIONS}/{each['metadata']['name']}" for each in crds.snapshot_definitions()
    ]
    mine = [path for path in paths if not _others_need(api, path, cluster)]
    for path in mine:
        _is_gone(api.delete, path)
    for path in mine:
        # A definition that is still going takes a new one of its name with it.
        until_gone = Retrying(
            retry=retry_if_result(lambda is_gone: not is_gone),
            wait=wait_fixed(0.3),
            stop=stop_after_delay(GONE_SECONDS),
        )
        until_gone(_is_gone, functools.partial(_remind, api), path)


def _remind(api: Api, path: str) -> None:
    """Change a definition that is going, or learn that it has gone.

    The API server's finalizer gives up on a definition whose storage was made a moment ago
    ("storage is (re)initializing"), and looks again when somebody changes it.
    """
    api.merge(path, {"metadata": {"annotations": {REMINDED: str(time.monotonic())}}})


def _others_need(api: Api, path: str, cluster: str) -> bool:
    """Say whether another cluster of the twin has the kind: they share one API server."""
    found = find(api, path)
    if found is None:
        return False
    # An apply that names nothing gives up what this cluster's add-on had said.
    named = {key: found[key] for key in ("apiVersion", "kind")}
    named["metadata"] = {"name": found["metadata"]["name"]}
    managers = {entry["manager"] for entry in found["metadata"].get("managedFields", [])}
    others = {m for m in managers if m.startswith(_manager(""))} - {_manager(cluster)}
    if others:
        api.apply(path, named, field_manager=_manager(cluster))
    return bool(others)


def _manager(cluster: str) -> str:
    return f"{FIELD_MANAGER}-{cluster}"


def _is_gone(ask: Callable[[str], object], path: str) -> bool:
    """Say whether nothing is at a path, whatever is asked of it."""
    try:
        ask(path)
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        return True
    return False
