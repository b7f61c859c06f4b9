"""Brings every KafkaConnect of one API server to what it says; the twin's operator calls it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from core.ground import naming
from core.ground.errors import InvalidInput
from local.kubernetes.client import Api, ApiError, Informer
from local.kubernetes.lookups import find
from local.kubernetes.strimzi_connect import (
    KIND,
    Workers,
    config_map,
    pod,
    pod_set,
    read,
    secrets,
    surroundings,
)
from local.kubernetes.strimzi_objects import (
    PATHS,
    READY,
    STRIMZI,
    Object,
    OperatorObjects,
    not_ready,
    resource_path,
)
from local.kubernetes.strimzi_resources import KIND_LABEL, digest
from local.kubernetes.strimzi_rolling import is_ready, next_to_roll, reasons_to_restart

LOG = logging.getLogger("strimzi")


class Connects:
    """The Connect side of the operator."""

    def __init__(
        self, api: Api, objects: OperatorObjects, changed: Callable[[str, Object], None]
    ) -> None:
        self._api, self._objects = api, objects
        self._connects = Informer(api, f"{STRIMZI}/kafkaconnects", changed)
        self._pods = Informer(api, "/api/v1/pods", changed, labelSelector=f"{KIND_LABEL}={KIND}")
        self.informers = (self._connects, self._pods)

    @property
    def known(self) -> Mapping[tuple[str, str], Object]:
        """Return every KafkaConnect by namespace and name."""
        return self._connects.objects

    def reconcile_all(self) -> bool:
        """Reconcile every KafkaConnect; return whether one should soon be tried again."""
        failed = False
        for connect in list(self._connects.objects.values()):
            if "deletionTimestamp" in connect["metadata"]:
                continue  # its objects name it as their owner and go with it
            try:
                failed |= self._reconcile(connect)
            except ApiError as error:
                LOG.warning("KafkaConnect %s: %s", connect["metadata"]["name"], error)
                failed = True
        return failed

    def _reconcile(self, connect: Object) -> bool:
        """Bring one to what it says; return whether a Secret is missing, of which nobody tells."""
        path = resource_path("kafkaconnects", connect)
        try:
            workers = read(connect)
        except InvalidInput as error:
            self._objects.report(connect, path, not_ready("InvalidResourceException", str(error)))
            return False
        missing, credentials = self._credentials(workers)
        waiting = missing or self._bring(workers, credentials)
        creating = not_ready("Creating", f"Waiting for {', '.join(waiting)}.")
        self._objects.report(connect, path, creating if waiting else READY)
        return bool(missing)

    def _bring(self, workers: Workers, credentials: str) -> list[str]:
        """Apply the cluster's objects; return the workers that are not ready yet."""
        budget = f"{PATHS['PodDisruptionBudget'].format(workers.namespace)}/{workers.name}"
        given = find(self._api, budget) is not None  # its description's own, as in strimzi.py
        for rendered in surroundings(workers):
            if not (given and rendered["kind"] == "PodDisruptionBudget"):
                self._objects.apply(rendered)
        wanted = {}
        for name in workers.pods:
            config = config_map(workers, name)
            self._objects.apply(config)
            wanted[name] = pod(workers, name, config, credentials)
        self._objects.apply(pod_set(workers, wanted))
        live = {
            name: pod
            for (namespace, name), pod in self._pods.objects.items()
            if namespace == workers.namespace
            and pod["metadata"]["labels"].get(naming.CLUSTER_LABEL) == workers.name
        }
        outdated = next_to_roll(wanted, live)
        if outdated is not None:
            self._api.delete(f"{PATHS['Pod'].format(workers.namespace)}/{outdated}")
        return [
            name
            for name, rendered in wanted.items()
            if name not in live
            or not is_ready(live[name])
            or reasons_to_restart(live[name], rendered)
        ]

    def _credentials(self, workers: Workers) -> tuple[list[str], str]:
        """Return the Secrets that are not there yet, and a digest of those that are."""
        names = [source["secretName"] for _, _, source in secrets(workers)]
        path = f"/api/v1/namespaces/{workers.namespace}/secrets"
        found = {name: find(self._api, f"{path}/{name}") for name in names}
        missing = [f"Secret {name}" for name, held in found.items() if held is None]
        return missing, digest([(held or {}).get("data") for held in found.values()])
