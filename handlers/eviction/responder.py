"""Responds to Evictions of lifecycle.k8s.io, where the server has them (core.gate.responding).

Both replicas look, and either may answer: what they write is the same, and the ledger lets one
through.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

from aws_lambda_powertools import Logger

from core.errors import StillwaterError
from core.gate.asked import Decider
from core.gate.responding import API, EvictionTurn, calls, report

logger = Logger(service="stillwater", child=True)
MANAGER = "stillwater-gate"
# How long a question of a responder's may take; nobody waits for its answer.
ANSWER_SECONDS = 30.0
# How often a server is asked whether it has the API by now.
LOOK_AGAIN_SECONDS = 3600.0
Json = dict[str, Any]


class GateApi(Protocol):
    """What is asked of the API server."""

    def find(self, path: str) -> Json | None:
        """Return one object, or None where there is none."""

    def list(self, path: str) -> Any:
        """Return the items of a list."""

    def apply(self, path: str, body: Json, *, manager: str) -> Json:
        """Apply an object's fields as their manager."""


@dataclass
class Responder:
    """Keeps the gate's turn in every Eviction of a Kafka's pods, or ends it."""

    api: GateApi
    gate: Decider
    namespace: str
    clock: Callable[[], float] = time.time
    _missing_since: float | None = field(default=None, init=False)

    def turn(self) -> None:
        """Look once; raises StillwaterError where the API server does not answer."""
        if not self._there():
            return
        path = f"/apis/{API}/namespaces/{quote(self.namespace)}/evictions"
        for call in calls(tuple(self.api.list(path))):
            try:
                self._respond(call, path)
            except StillwaterError as error:
                # The other replica, or the controller, wrote first: the next look sees what stands.
                logger.warning("An Eviction could not be reported on.", error=str(error))

    def _there(self) -> bool:
        """Say whether the server has the API; most have not, and are not asked every time."""
        now = self.clock()
        missing = self._missing_since
        if missing is not None and now - missing < LOOK_AGAIN_SECONDS:
            return False
        there = self.api.find(f"/apis/{API}") is not None
        self._missing_since = None if there else now
        return there

    def _respond(self, call: EvictionTurn, path: str) -> None:
        now = self.clock()
        pod = self.api.find(f"/api/v1/namespaces/{quote(call.namespace)}/pods/{quote(call.pod)}")
        uid = None if pod is None else str(pod["metadata"]["uid"])
        answer = None
        if uid == call.pod_uid:
            answer = self.gate.ask(call.asked, now + ANSWER_SECONDS)
        written = report(call, uid, answer, self.clock())
        if written is None:
            return
        body = {
            "apiVersion": API,
            "kind": "Eviction",
            "metadata": {"name": call.name, "namespace": call.namespace, "uid": call.uid},
            "status": {"responders": [dict(written)]},
        }
        self.api.apply(f"{path}/{quote(call.name)}/status", body, manager=MANAGER)
