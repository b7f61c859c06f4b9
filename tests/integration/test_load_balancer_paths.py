"""The two ways to a pod of the twin: the API server's by the egress proxy, clients' by the NLB."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.kubernetes import egress
from local.kubernetes.egress import Egress
from local.nlb import Proxy
from local.place import Place, claim_place
from tests.integration.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.integration
POD_ONE, POD_TWO, PORT, LISTENER = "10.{}.1.5", "10.{}.2.5", 9094, 10010


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with claim_place(tmp_path) as claim:
        yield Place(claim.number, tmp_path)


@contextlib.contextmanager
def pod(place: Place, address: str) -> Iterator[None]:
    """Listen at a pod's address; say it to whoever connects, then echo."""

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(address.encode() + b"\n")
            while data := connection.recv(1000):
                connection.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()

    with socket.create_server((place.socket_address(address), PORT)) as door:
        threading.Thread(target=accept, daemon=True).start()
        yield
        door.shutdown(socket.SHUT_RDWR)


def connect(place: Place, target: str) -> socket.socket:
    """Ask the egress proxy for a tunnel, as the API server does; return it after the answer."""
    tunnel = socket.socket(socket.AF_UNIX)
    tunnel.settimeout(5)
    tunnel.connect(f"\0{egress.socket_name(place)}")
    tunnel.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return tunnel


@pytest.fixture
def proxy(place: Place) -> Iterator[None]:
    with Egress(place) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield
        running.shutdown()


def read_until(tunnel: socket.socket, end: bytes) -> bytes:
    seen = b""
    while not seen.endswith(end):
        seen += tunnel.recv(1)
    return seen


def test_the_api_server_reaches_a_pod_at_its_address_in_the_vpc(place: Place, proxy: None) -> None:
    address = POD_ONE.format(place.number)
    with pod(place, address), connect(place, f"{address}:{PORT}") as tunnel:
        assert read_until(tunnel, b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\n\r\n"
        assert read_until(tunnel, b"\n") == address.encode() + b"\n"
        tunnel.sendall(b"and back")
        assert read_until(tunnel, b"back") == b"and back"


@pytest.mark.parametrize("target", ["192.0.2.1:443", "10.9.1.5:443", "nonsense"])
def test_nothing_outside_the_vpc_is_reached(place: Place, proxy: None, target: str) -> None:
    with connect(place, target) as tunnel:
        assert b" 403 " in tunnel.recv(100)


def listener(*targets: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "port": LISTENER,
            "targets": [{"id": id_, "port": PORT, "state": state} for id_, state in targets],
        }
    ]


def test_a_connection_ends_when_its_target_is_unhealthy_and_stays_while_it_drains(
    place: Place,
) -> None:
    one, two = POD_ONE.format(place.number), POD_TWO.format(place.number)

    async def run() -> None:
        nlb = Proxy(place)
        await nlb.apply(listener((one, "healthy")))
        reader, writer = await asyncio.open_connection(place.nlb_host, LISTENER)
        await asyncio.wait_for(reader.readline(), PATIENCE_SECONDS)
        await nlb.apply(listener((one, "draining"), (two, "healthy")))
        writer.write(b"still here\n")
        assert await asyncio.wait_for(reader.readline(), PATIENCE_SECONDS) == b"still here\n"
        await nlb.apply(listener((one, "unhealthy"), (two, "healthy")))
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        await nlb.apply([])

    with pod(place, one), pod(place, two):
        asyncio.run(run())
