"""Makes the pods that StrimziPodSets describe, as the controller inside the operator does.

It has a thread of its own, so lost pods come back while a Kafka is paused and while a
reconciliation waits. It never restarts a pod to change it (StrimziPodSetController).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from core.ground import naming
from local.journal import Journal
from local.kubernetes.client import Api, ApiError, Informer, has_condition
from local.kubernetes.status import ENDED_PHASES
from local.kubernetes.strimzi_objects import PATHS, Object
from local.kubernetes.strimzi_resources import KIND_LABEL, POD_SET, POD_SET_API
from local.kubernetes.strimzi_rolling import reasons_to_restart

LOG = logging.getLogger("strimzi")
RETRY_SECONDS = 1.0


class PodSetController:
    """Brings the pods of every pod set; `is_owned` says whether a set's resource is still there."""

    def __init__(self, api: Api, journal: Journal, is_owned: Callable[[Object], bool]) -> None:
        self._api, self._journal, self._is_owned = api, journal, is_owned
        self._changed = threading.Event()
        self._sets = Informer(api, f"/apis/{POD_SET_API}/strimzipodsets", self._on_change)
        self._pods = Informer(
            api, "/api/v1/pods", self._on_change, labelSelector="strimzi.io/controller"
        )
        self.informers = (self._sets, self._pods)

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop: on every change, and again on what did not succeed."""
        while not stop.is_set():
            self._changed.wait(RETRY_SECONDS)
            self._changed.clear()
            for pod_set in list(self._sets.objects.values()):
                try:
                    if "deletionTimestamp" not in pod_set["metadata"] and self._is_owned(pod_set):
                        self._bring(pod_set)
                except Exception:
                    LOG.exception("StrimziPodSet %s", pod_set["metadata"]["name"])

    def _on_change(self, _event: str, _item: Object) -> None:
        self._changed.set()

    def _bring(self, pod_set: Object) -> None:
        metadata = pod_set["metadata"]
        wanted = {pod["metadata"]["name"]: pod for pod in pod_set["spec"]["pods"]}
        selector = pod_set["spec"]["selector"]["matchLabels"].items()
        live = {
            name: pod
            for (namespace, name), pod in self._pods.objects.items()
            if namespace == metadata["namespace"] and selector <= pod["metadata"]["labels"].items()
        }
        for name in wanted.keys() - live.keys():
            self._create(pod_of(pod_set, wanted[name]))
        for name, pod in live.items():
            if name not in wanted or pod.get("status", {}).get("phase") in ENDED_PHASES:
                self._delete(pod)
        status = pod_set_status(pod_set, wanted, live)
        if not status.items() <= (pod_set.get("status") or {}).items():
            path = f"{PATHS[POD_SET].format(metadata['namespace'])}/{metadata['name']}"
            self._api.merge(f"{path}/status", {"status": status})

    def _create(self, pod: Object) -> None:
        metadata = pod["metadata"]
        try:
            self._api.post(PATHS["Pod"].format(metadata["namespace"]), pod)
        except ApiError as error:
            if error.status != 409:  # the watch has not shown us our own pod yet
                raise
            return
        kafka = metadata["labels"][KIND_LABEL] == "Kafka"
        node_id = naming.node_id_of_pod(metadata["name"]) if kafka else None
        self._journal.write("strimzi", "pod_created", pod=metadata["name"], node_id=node_id)

    def _delete(self, pod: Object) -> None:
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata:
            return
        try:
            self._api.delete(f"{PATHS['Pod'].format(metadata['namespace'])}/{metadata['name']}")
        except ApiError as error:
            if error.status != 404:
                raise
            return
        self._journal.write("strimzi", "pod_removed", pod=metadata["name"])


def pod_of(pod_set: Object, described: Object) -> dict[str, Any]:
    """Return a pod of a pod set as it is made."""
    owner = {
        "apiVersion": POD_SET_API,
        "kind": POD_SET,
        "name": pod_set["metadata"]["name"],
        "uid": pod_set["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**described, "metadata": {**described["metadata"], "ownerReferences": [owner]}}


def pod_set_status(
    pod_set: Object, wanted: Mapping[str, Object], live: Mapping[str, Object]
) -> dict[str, int]:
    """Return what a pod set says of its pods; `currentPods` have the revisions that it names."""
    there = {name: pod for name, pod in live.items() if name in wanted}
    return {
        "observedGeneration": pod_set["metadata"]["generation"],
        "pods": len(live.keys() | wanted.keys()),
        "readyPods": sum(has_condition(pod) for pod in there.values()),
        "currentPods": sum(
            not reasons_to_restart(pod, wanted[name]) for name, pod in there.items()
        ),
    }
