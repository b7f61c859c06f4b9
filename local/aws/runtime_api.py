"""Lambda's Runtime API over HTTP: what a runtime in an execution environment asks and answers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

PREFIX = "/2018-06-01/runtime/"


@dataclass(slots=True)
class Work:
    """One invocation on its way through an environment."""

    request_id: str
    payload: bytes
    deadline: float
    function_arn: str
    taken: bool = False
    answer: bytes | None = None
    failed: bool = False


class Runtime(Protocol):
    """What the API stands in front of."""

    def next_work(self) -> Work | None: ...

    def answer(self, request_id: str, payload: bytes, *, failed: bool) -> bool: ...

    def init_failed(self, payload: bytes) -> None: ...


class RuntimeServer(ThreadingHTTPServer):
    """The Runtime API of one environment."""

    daemon_threads = True

    def __init__(self, runtime: Runtime, host: str) -> None:
        super().__init__((host, 0), RuntimeRequests)
        self.runtime = runtime


class RuntimeRequests(BaseHTTPRequestHandler):
    """Answers `next`, takes answers and errors."""

    protocol_version = "HTTP/1.1"
    # Head and body leave as two small segments; without this the second one waits 40 ms.
    disable_nagle_algorithm = True
    server: RuntimeServer

    def log_message(self, *_: Any) -> None:
        """Say nothing: the function's own log is the one to read."""

    def do_GET(self) -> None:
        work = self.server.runtime.next_work() if self.path == f"{PREFIX}invocation/next" else None
        if work is None:
            self._send(410, b"{}", {})
            return
        self._send(
            200,
            work.payload,
            {
                "Lambda-Runtime-Aws-Request-Id": work.request_id,
                "Lambda-Runtime-Deadline-Ms": str(int(work.deadline * 1000)),
                "Lambda-Runtime-Invoked-Function-Arn": work.function_arn,
                "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000;Sampled=0",
            },
        )

    def do_POST(self) -> None:
        body = self._body()
        parts = self.path.removeprefix(PREFIX).split("/")
        if parts == ["init", "error"]:
            self.server.runtime.init_failed(body)
        elif parts[0] == "invocation":
            self.server.runtime.answer(parts[1], body, failed=parts[2] == "error")
        self._send(202, b'{"status":"OK"}', {})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


def serve(runtime: Runtime, host: str) -> RuntimeServer:
    """Listen on a free port of an address, in a thread of its own."""
    server = RuntimeServer(runtime, host)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    return server
