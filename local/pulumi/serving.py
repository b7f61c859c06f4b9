"""Runs one plugin of the Pulumi engine: a gRPC server on a free port, printed for the engine.

The engine starts plugins, reads the port from their output and ends them with a signal. A Ctrl-C
reaches the whole group of the user's terminal, so a plugin ends quietly on it: a traceback would
land in the middle of the user's output. If the engine is killed, nobody tells its plugins; they
notice that their parent has changed and end by themselves.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from types import FrameType
from typing import Any

import grpc

WORKERS = 32
PARENT_POLL_SECONDS = 0.5
# The engine lifts gRPC's 4 MiB limit in the same way: a Lambda's zip travels as one property.
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", 400 * 1024 * 1024),
    ("grpc.max_send_message_length", 400 * 1024 * 1024),
]


def serve(register: Callable[[grpc.Server], None], stop: Callable[[], None] | None = None) -> None:
    """Serve until a signal arrives or the engine is gone; `stop` ends what the plugin started."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    parent = os.getppid()
    server: Any = grpc.server(
        futures.ThreadPoolExecutor(max_workers=WORKERS), options=CHANNEL_OPTIONS
    )
    register(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while not ended.wait(PARENT_POLL_SECONDS) and os.getppid() == parent:
        pass
    if stop is not None:
        stop()
    server.stop(grace=0)
    # Worker threads may be inside an AWS call; nobody is left to hear its answer.
    sys.stdout.flush()
    os._exit(0)
