"""Carries the twin's operators of topics and users: each works what changes off, in a thread."""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from typing import ClassVar

from kafka.errors import KafkaError

from core.ground import naming
from core.ground.errors import StillwaterError
from local.kubernetes.client import Api
from local.kubernetes.strimzi_objects import Object, OperatorObjects

LOG = logging.getLogger("strimzi")


class EntityOperator(ABC):
    """Brings all resources of a kind to what they say, in its own thread: Kafka may be slow."""

    kind: ClassVar[str]
    retry_seconds: ClassVar[float]

    def __init__(self, api: Api, objects: OperatorObjects) -> None:
        self._api, self._objects = api, objects
        self._work: queue.Queue[Object | None] = queue.Queue()

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop: on every change, and again on what did not succeed."""
        while not stop.is_set():
            try:
                gone = self._work.get(timeout=self.retry_seconds)
            except queue.Empty:
                gone = None
            try:
                if gone is not None:
                    self._forget(gone)
                self._reconcile_all()
            except (StillwaterError, KafkaError, OSError) as error:
                LOG.warning("%s: %s", self.kind, error)

    def _on_change(self, event: str, entity: Object) -> None:
        self._work.put(entity if event == "DELETED" else None)

    @abstractmethod
    def _reconcile_all(self) -> None: ...
    @abstractmethod
    def _forget(self, entity: Object) -> None: ...


def kafka_of(entity: Object) -> tuple[str, str]:
    """Return the namespace and the name of the Kafka that a topic or user is of."""
    metadata = entity["metadata"]
    return metadata["namespace"], (metadata.get("labels") or {}).get(naming.CLUSTER_LABEL, "")
