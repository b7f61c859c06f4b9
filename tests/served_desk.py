"""Serves a desk at a free port of loopback, as `stillwater desk` does, while a test looks at it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from cli.desk.server import LOOPBACK, desk_server
from cli.target import Cluster


@contextlib.contextmanager
def serving(desk: Cluster, token: str) -> Iterator[str]:
    """Yield the address of a desk, for whoever has the token; it ends with the block."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        port = listening.getsockname()[1]
        server = desk_server("local", desk, token, port)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://{LOOPBACK}:{port}/"
        finally:
            server.should_exit = True
            thread.join()
