"""The client and its informer against a real API server, through a network that breaks."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from infra.eks.api import WATCH_SECONDS
from local.kubernetes import control_plane
from local.kubernetes.client import Api, ApiError, Informer
from tests.integration.administrator import namespace
from tests.integration.waiting import until

if TYPE_CHECKING:
    from conftest import Plane

pytestmark = pytest.mark.integration


class Relay:
    """A cable to the API server that can be pulled."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._open: list[socket.socket] = []
        self._plugged = threading.Event()
        self._plugged.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self._plugged.is_set():
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def pull(self) -> None:
        self._plugged.clear()
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def plug(self) -> None:
        self._plugged.set()

    def close(self) -> None:
        self.pull()
        self._listener.close()


def _config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def space(plane: Plane) -> Iterator[str]:
    with namespace(plane.api, f"client-{time.monotonic_ns()}") as path:
        yield path


@pytest.fixture
def relay(plane: Plane) -> Iterator[Relay]:
    found = Relay((plane.place.host("apiserver"), plane.place.port("apiserver")))
    yield found
    found.close()


def _through(relay: Relay, plane: Plane) -> Api:
    config = yaml.safe_load(plane.place.path("kubeconfig").read_text())
    token = config["users"][0]["user"]["token"]
    # The server's certificate names localhost too.
    return Api(f"https://localhost:{relay.port}", token, control_plane.ca_file(plane.place))


def test_apply_takes_a_contested_field_over_and_a_dry_run_keeps_nothing(
    plane: Plane, space: str
) -> None:
    path = f"{space}/configmaps/shared"
    plane.api.apply(path, _config_map("shared", a="theirs"), field_manager="they", dry_run=True)
    with pytest.raises(ApiError, match="not found"):
        plane.api.get(path)
    plane.api.apply(path, _config_map("shared", a="theirs", b="theirs"), field_manager="they")
    applied = plane.api.apply(path, _config_map("shared", a="ours"), field_manager="we")
    assert applied["data"] == {"a": "ours", "b": "theirs"}


def test_an_informer_that_lost_its_connection_learns_what_it_missed(
    plane: Plane, space: str, relay: Relay
) -> None:
    path = f"{space}/configmaps"
    heard: list[tuple[str, str]] = []
    informer = Informer(
        _through(relay, plane),
        path,
        lambda event, item: heard.append((event, item["metadata"]["name"])),
    )
    try:
        informer.wait_synced()
        plane.api.post(path, _config_map("first"))
        until(lambda: ("ADDED", "first") in heard, "it hears of the first")
        relay.pull()
        plane.api.delete(f"{path}/first")
        plane.api.post(path, _config_map("second"))
        relay.plug()
        until(lambda: ("ADDED", "second") in heard, "it hears of the second")
        assert heard.index(("DELETED", "first")) < heard.index(("ADDED", "second"))
        assert heard.count(("ADDED", "first")) == 1
    finally:
        informer.stop()


def test_an_informer_stops_at_once_while_nothing_happens(plane: Plane, space: str) -> None:
    informer = Informer(plane.api, f"{space}/configmaps")
    informer.wait_synced()
    started = time.monotonic()
    informer.stop()
    assert time.monotonic() - started < WATCH_SECONDS  # it does not sit the open watch out
    names = {thread.name for thread in threading.enumerate()}
    assert f"informer {space}/configmaps" not in names


def test_an_unreachable_server_is_named(plane: Plane, relay: Relay) -> None:
    api = _through(relay, plane)
    relay.close()
    with pytest.raises(
        ApiError, match=f"The API server https://localhost:{relay.port} did not"
    ) as e:
        api.get("/api/v1/nodes")
    assert e.value.status == 0
    assert api.ready() is False
