"""Opens the desk: a socket on loopback, a token, and the address with both, printed once."""

from __future__ import annotations

import secrets
import socket

import uvicorn
from rich.console import Console

from cli.desk.reading import DeskReading, Stores, cluster_of
from cli.desk.server import application
from cli.desk.watch import DeskWatch
from cli.desk.wishes import fulfil
from cli.incidents import Desk
from core.errors import InvalidInput, passed_on

LOOPBACK = "127.0.0.1"


def serve_desk(environment: str, port: int, console: Console) -> None:
    """Serve the desk of an environment until Ctrl-C; port 0 is any that is free."""
    desk = Desk.of(environment)
    # Of 256 bits; a fragment, which a browser sends to nobody.
    token = secrets.token_urlsafe(32)
    with _socket(port) as listening:
        bound = int(listening.getsockname()[1])
        console.print(f"The desk of {desk.spec.prefix}, until Ctrl-C:")
        console.print(f"http://{LOOPBACK}:{bound}/#{token}")
        console.print("Whoever has this address may hold, release and pause in your name.")
        server_of(environment, desk, token, bound).run(sockets=[listening])


def server_of(environment: str, desk: Desk, token: str, port: int) -> uvicorn.Server:
    """Return what serves a desk at a port, for the one who holds the token."""
    watch = DeskWatch(DeskReading(cluster_of(environment, desk)), Stores(desk).ask)
    app = application(watch, lambda name, said: fulfil(desk, name, said), token, port)
    # No log of requests; an open stream must not hold up the end.
    settings = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=1
    )
    return uvicorn.Server(settings)


def _socket(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        ours = f"--port {port} cannot be listened at; leave it out for one that is free."
        raise InvalidInput([passed_on(ours, error)]) from None
