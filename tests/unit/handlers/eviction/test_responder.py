"""The responder before an API server in memory."""

from __future__ import annotations

from typing import Any

from core.errors import Conflict
from core.gate.asked import GateAnswer, RemovalRequest
from core.gate.responding import API
from handlers.eviction.responder import LOOK_AGAIN_SECONDS, Responder
from tests.unit.core.gate.test_responding import AT, POD, eviction

PATH = f"/apis/{API}/namespaces/kafka/evictions"


class Server:
    """Has the API or not, one Eviction, and its pod."""

    def __init__(self, *, there: bool = True) -> None:
        self.there, self.found, self.written = there, list[str](), list[Any]()
        self.pod: dict[str, Any] | None = {"metadata": {"uid": POD}}
        self.conflicts = False

    def find(self, path: str) -> dict[str, Any] | None:
        self.found.append(path)
        if path == f"/apis/{API}":
            return {} if self.there else None
        return self.pod

    def list(self, path: str) -> list[Any]:
        assert path == PATH
        return [eviction()]

    def apply(self, path: str, body: dict[str, Any], *, manager: str) -> dict[str, Any]:
        assert (path, manager) == (f"{PATH}/e-1/status", "stillwater-gate")
        if self.conflicts:
            raise Conflict("another version")
        self.written += body["status"]["responders"]
        return {}


class Gate:
    def __init__(self, *, allowed: bool) -> None:
        self.allowed, self.asked = allowed, list[RemovalRequest]()

    def ask(self, asked: RemovalRequest, deadline: float) -> GateAnswer:
        assert deadline > AT
        self.asked.append(asked)
        return GateAnswer(allowed=self.allowed, reason="So it is.")


def responding(server: Server, *, allowed: bool = False) -> tuple[Responder, Gate]:
    gate = Gate(allowed=allowed)
    return Responder(server, gate, "kafka", clock=lambda: AT), gate


def test_the_gates_answer_is_what_is_reported() -> None:
    server = Server()
    responder, gate = responding(server, allowed=True)
    responder.turn()
    assert [each.name for each in gate.asked] == ["orders-a-10"]
    assert [each["message"] for each in server.written] == ["So it is."]
    assert "completionTime" in server.written[0]


def test_a_pod_that_is_gone_is_not_asked_about() -> None:
    server = Server()
    server.pod = None
    responder, gate = responding(server)
    responder.turn()
    assert gate.asked == []
    assert "completionTime" in server.written[0]


def test_a_server_without_the_api_is_asked_once_an_hour() -> None:
    server, now = Server(there=False), [AT]
    responder = Responder(server, Gate(allowed=True), "kafka", clock=lambda: now[0])
    for _ in range(3):
        responder.turn()
    assert len(server.found) == 1
    now[0] += LOOK_AGAIN_SECONDS
    server.there = True
    responder.turn()
    assert server.written


def test_what_the_other_replica_has_written_first_stands() -> None:
    server = Server()
    server.conflicts = True
    responder, gate = responding(server)
    responder.turn()
    assert (len(gate.asked), server.written) == (1, [])
