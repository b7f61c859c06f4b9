"""Runs a plugin that is a Python program for the engine, and passes on what it prints.

The engine reads the plugin's port from its output, and ends it by giving up the call.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Any

from pulumi.runtime.proto import language_pb2

STOP_SECONDS = 2.0
CHUNK_BYTES = 65536


def command(request: Any) -> list[str]:
    """Return how the engine's own host for Python starts a plugin: its folder, as a program."""
    program = request.info.program_directory or request.program
    return [sys.executable, "-u", program, *request.args]


def start(request: Any, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start the plugin with what the engine adds to the environment."""
    added = dict(pair.split("=", 1) for pair in request.env if "=" in pair)
    return subprocess.Popen(
        command(request),
        cwd=request.pwd or None,
        env={**environment, **added},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def output(child: subprocess.Popen[bytes]) -> Iterator[Any]:
    """Yield what the plugin prints as it prints it, and its exit code at its end."""
    said: queue.Queue[Any] = queue.Queue()
    readers = [
        threading.Thread(target=_read, args=(stream, answer, said), daemon=True)
        for stream, answer in (
            (child.stdout, lambda data: language_pb2.RunPluginResponse(stdout=data)),
            (child.stderr, lambda data: language_pb2.RunPluginResponse(stderr=data)),
        )
        if stream is not None
    ]
    for reader in readers:
        reader.start()
    open_streams = len(readers)
    while open_streams:
        answer = said.get()
        if answer is None:
            open_streams -= 1
        else:
            yield answer
    yield language_pb2.RunPluginResponse(exitcode=child.wait())


def end(child: subprocess.Popen[Any]) -> None:
    """Ask the plugin to end, and do not ask twice."""
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()


def _read(stream: IO[bytes], answer: Callable[[bytes], Any], said: queue.Queue[Any]) -> None:
    with suppress(ValueError, OSError):
        while data := stream.read1(CHUNK_BYTES):  # type: ignore[attr-defined]
            said.put(answer(data))
    said.put(None)
