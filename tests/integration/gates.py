"""A gate of the test's own process before a twin's API server, which dials it by its address."""

import contextlib
import datetime as dt
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import uvicorn

from handlers.eviction.certificate import WEBHOOKS, Keeper
from handlers.eviction.gate import Gate
from handlers.eviction.server import Counts, application
from handlers.gate import server_of
from local.kubernetes.client import Api
from tests.integration.administrator import Administrator, Json
from tests.integration.waiting import until

HOST = "127.0.0.1"


@dataclass(frozen=True)
class GateByAddress(Administrator):
    """Has the API server dial a gate at a port of this machine, where it would dial a Service."""

    port: int

    def moved(self, configuration: Json) -> Json:
        """Return webhooks with the Service of each replaced by the gate's address."""
        asked = [self._moved(each) for each in configuration["webhooks"]]
        return {**configuration, "webhooks": asked}

    def find(self, path: str) -> Json | None:
        found = super().find(path)
        for each in (found or {}).get("webhooks") or ():
            url = urlsplit(each["clientConfig"].pop("url"))
            each["clientConfig"]["service"] = {"path": url.path}
        return found

    def apply(self, path: str, body: Json, *, manager: str) -> Json:
        return super().apply(path, self.moved(body), manager=manager)

    def _moved(self, webhook: Json) -> Json:
        client = {k: v for k, v in webhook["clientConfig"].items() if k != "service"}
        path = webhook["clientConfig"]["service"].get("path", "")
        return {**webhook, "clientConfig": {**client, "url": f"https://{HOST}:{self.port}{path}"}}


@dataclass(frozen=True)
class ServedGate:
    """A gate that the API server asks, and who keeps its certificate."""

    server: uvicorn.Server
    objects: GateByAddress
    keeper: Keeper


@contextlib.contextmanager
def served(
    api: Api, gate: Gate, name: str, webhooks: list[Json], at: dt.datetime
) -> Iterator[ServedGate]:
    """Serve a gate for the block under a certificate of a moment, behind webhooks of its own."""
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    secrets = f"/api/v1/namespaces/{gate.namespace}/secrets"
    api.post(secrets, {"metadata": {"name": name}, "type": "Opaque"})
    objects = GateByAddress(api, port)
    api.post(WEBHOOKS, objects.moved({"metadata": {"name": name}, "webhooks": webhooks}))
    keeper = Keeper(objects, secret_path=f"{secrets}/{name}", webhook=name, hosts=[HOST])
    server = server_of(application(gate, Counts(), keeper.admits), keeper.context(at), HOST, port)
    thread = threading.Thread(target=lambda: anyio.run(server.serve), daemon=True)
    thread.start()
    until(lambda: server.started, "the gate serves")
    try:
        yield ServedGate(server, objects, keeper)
    finally:
        server.should_exit = True
        thread.join(10)
        api.delete(f"{WEBHOOKS}/{name}")
