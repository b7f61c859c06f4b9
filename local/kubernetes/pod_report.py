"""Reports one pod for the kubelet: its status to the API, its story to the journal."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from local.journal import Journal
from local.kubernetes import status
from local.kubernetes.client import Api, ApiError, Object
from local.kubernetes.containers import Container
from local.kubernetes.node_object import timestamp
from local.kubernetes.status import PodObservation

LOG = logging.getLogger(__name__)


class PodGone(Exception):
    """The pod's object is gone, or its name belongs to another pod by now."""


class PodReport:
    """Writes a pod's status when it changed, and each change once to the journal."""

    def __init__(self, api: Api, journal: Journal, pod: Object, node: str) -> None:
        metadata = pod["metadata"]
        self._api, self._journal, self._node = api, journal, node
        self._namespace, self._name, self._uid = (
            metadata["namespace"],
            metadata["name"],
            metadata["uid"],
        )
        self.path = f"/api/v1/namespaces/{self._namespace}/pods/{self._name}"
        self._published: Object = {}
        self._told: set[str] = set()
        self._restarts = 0

    def write(self, pod: Object, seen: PodObservation, containers: Sequence[Container]) -> bool:
        """Bring the API up to date; say whether it is. Raises PodGone."""
        body = status.pod_status(pod, seen, timestamp())
        if _without_times(body) == self._published:
            return True
        try:
            self._api.strategic(
                f"{self.path}/status", {"metadata": {"uid": self._uid}, "status": body}
            )
        except ApiError as error:
            if error.status in {404, 409}:
                raise PodGone from error
            LOG.info("Status of %s/%s: %s", self._namespace, self._name, error)
            return False
        self._published = _without_times(body)
        self._tell_changes(body, seen, containers)
        return True

    def tell(self, event: str, **fields: object) -> None:
        self._journal.write(
            "kubelet", event, namespace=self._namespace, pod=self._name, node=self._node, **fields
        )

    def _tell_changes(
        self, body: Object, seen: PodObservation, containers: Sequence[Container]
    ) -> None:
        if any(container.running for container in containers):
            self._tell_once("pod_started", address=seen.pod_ip)
        true = {c["type"] for c in body["conditions"] if c["status"] == "True"}
        if "ContainersReady" in true:
            # What a pod with readiness gates is before it is Ready.
            self._tell_once("pod_containers_ready", address=seen.pod_ip)
        if "Ready" in true:
            self._tell_once("pod_ready", address=seen.pod_ip)
        elif "pod_ready" in self._told and not seen.ended:
            self._told -= {"pod_ready", "pod_containers_ready"}
            self.tell("pod_unready")
        restarts = sum(container.restarts for container in containers)
        if restarts > self._restarts:
            why = next((c.last_failure for c in containers if c.last_failure), "")
            self.tell("container_restarted", restarts=restarts, why=why)
        self._restarts = restarts

    def _tell_once(self, event: str, **fields: object) -> None:
        if event not in self._told:
            self._told.add(event)
            self.tell(event, **fields)


def _without_times(body: Object) -> Object:
    """Return a status without the times that change whenever it is computed."""
    conditions: list[dict[str, Any]] = body["conditions"]
    plain = [{k: v for k, v in c.items() if k != "lastTransitionTime"} for c in conditions]
    return {**body, "conditions": plain}
