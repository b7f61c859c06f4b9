"""One execution environment of a Lambda function: the Runtime API and the child that polls it.

The child is AWS's own runtime client (awslambdaric) on the deployed zip's extracted files. It asks
`next` for work and posts its answer, over HTTP on an address of the twin; that is all it knows of
Lambda. An environment serves one invocation at a time and keeps its state between them. Beside its
zip a function finds boto3 and the runtime client alone: the twin's virtual environment holds far
more, and what a zip lacks must fail here as it would on Lambda.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from local.processes import forget, give_way, kill_group, record

# What AWS's Python runtimes carry, and what their client needs.
DISTRIBUTIONS = (
    "awslambdaric",
    "boto3",
    "botocore",
    "jmespath",
    "python-dateutil",
    "s3transfer",
    "simplejson",
    "six",
    "snapshot-restore-py",
    "urllib3",
)


def install_packages(directory: Path) -> Path:
    """Fill a fresh directory with links to those distributions' modules; return it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in DISTRIBUTIONS:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for top in tops:
            (directory / top).symlink_to(Path(str(distribution.locate_file(top))))
    return directory


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


class RuntimeServer(ThreadingHTTPServer):
    """The Runtime API of one environment."""

    daemon_threads = True

    def __init__(self, runtime: Environment, host: str) -> None:
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


def serve(runtime: Environment, host: str) -> RuntimeServer:
    """Listen on a free port of an address, in a thread of its own."""
    server = RuntimeServer(runtime, host)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    return server


# Lambda gives an init 10 s. The twin shares two cores with a Kafka cluster that starts.
INIT_LIMIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionVersion:
    """What decides about an execution environment; another value means other environments."""

    name: str
    arn: str
    handler: str
    role_arn: str
    code_sha256: str
    timeout_seconds: float
    memory_mib: int
    region: str
    runtime: str
    variables: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one invocation; `payload` is the answer or the error as Lambda returns it."""

    request_id: str
    payload: bytes
    error_type: str | None = None
    cold: bool = False
    seconds: float = 0.0


def error_payload(error_type: str, message: str) -> bytes:
    return json.dumps({"errorType": error_type, "errorMessage": message}).encode()


def error_type_of(payload: bytes) -> str:
    with contextlib.suppress(ValueError, AttributeError):
        return str(json.loads(payload).get("errorType") or "Unhandled")
    return "Unhandled"


class Environment:
    """An execution environment; `invoke` from one thread at a time."""

    def __init__(
        self,
        function: FunctionVersion,
        *,
        host: str,
        code: Path,
        packages: Path,
        variables: Mapping[str, str],
        log: Path,
        pids: Path,
    ) -> None:
        self.function = function
        self.alive = True
        self._host = host
        self._changed = threading.Condition()
        self._work: Work | None = None
        self._ready = False
        self._init_error: bytes | None = None
        self._exit_code: int | None = None
        self._pids = pids
        self._server = serve(self, host)
        self._child = self._start(code, packages, variables, log)
        record(pids, self._child.pid)
        threading.Thread(target=self._watch, daemon=True).start()

    def _start(
        self, code: Path, packages: Path, variables: Mapping[str, str], log: Path
    ) -> subprocess.Popen[bytes]:
        function = self.function
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(code),
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            **variables,
            "AWS_LAMBDA_RUNTIME_API": f"{self._host}:{self._server.server_port}",
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mib),
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": uuid.uuid4().hex,
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
            "AWS_REGION": function.region,
            "AWS_DEFAULT_REGION": function.region,
            "_HANDLER": function.handler,
            "LAMBDA_TASK_ROOT": str(code),
            # The zip before everything. -S leaves out the virtual environment with all it holds,
            # -P the current directory.
            "PYTHONPATH": f"{code}:{packages}",
        }
        with log.open("ab") as sink:
            child = subprocess.Popen(
                [sys.executable, "-S", "-P", "-m", "awslambdaric", function.handler],
                cwd=code,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        give_way(child.pid)
        return child

    def _watch(self) -> None:
        code = self._child.wait()
        forget(self._pids, self._child.pid)
        with self._changed:
            self._exit_code = code
            self.alive = False
            self._changed.notify_all()

    # The invoker's side

    def invoke(self, payload: bytes) -> Outcome:
        """Run the function once; an environment that fails to start, exits or times out is dead."""
        request_id = str(uuid.uuid4())
        cold = not self._ready
        problem = self._wait_for_init()
        if problem is not None:
            self.close()
            return Outcome(
                request_id=request_id,
                payload=problem,
                error_type=error_type_of(problem),
                cold=cold,
            )
        started = time.time()
        work = Work(request_id, payload, started + self.function.timeout_seconds, self.function.arn)
        with self._changed:
            self._work = work
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: work.answer is not None or not self.alive,
                timeout=self.function.timeout_seconds,
            )
            self._work = None
        answer, failed = self._conclude(work)
        return Outcome(
            request_id=request_id,
            payload=answer,
            error_type=error_type_of(answer) if failed else None,
            cold=cold,
            seconds=time.time() - started,
        )

    def _wait_for_init(self) -> bytes | None:
        """Wait until the child asks for work; return an error when it never will."""
        with self._changed:
            settled = self._changed.wait_for(
                lambda: self._ready or self._init_error is not None or not self.alive,
                timeout=INIT_LIMIT_SECONDS,
            )
            if self._init_error is not None:
                return self._init_error
            if not settled:
                return error_payload(
                    "Sandbox.Timedout", f"Init did not finish within {INIT_LIMIT_SECONDS:.0f} s"
                )
            return None if self.alive else self._exit_error()

    def _exit_error(self) -> bytes:
        return error_payload(
            "Runtime.ExitError", f"Runtime exited with error: exit status {self._exit_code}"
        )

    def _conclude(self, work: Work) -> tuple[bytes, bool]:
        if work.answer is not None:
            return work.answer, work.failed
        if not self.alive:
            return self._exit_error(), True
        self.close()
        message = (
            f"{work.request_id} Task timed out after {self.function.timeout_seconds:.2f} seconds"
        )
        return error_payload("Sandbox.Timedout", message), True

    def close(self) -> None:
        """Kill the child's whole group and close the Runtime API."""
        with self._changed:
            self.alive = False
            self._changed.notify_all()
        if self._child.poll() is None:
            kill_group(self._child.pid)
        threading.Thread(target=self._close_server, daemon=True).start()

    def _close_server(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # The child's side

    def next_work(self) -> Work | None:
        """Block until there is work; None when the environment is closed."""
        with self._changed:
            self._ready = True
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: not self.alive or (self._work is not None and not self._work.taken)
            )
            if not self.alive or self._work is None:
                return None
            self._work.taken = True
            return self._work

    def answer(self, request_id: str, payload: bytes, *, failed: bool) -> bool:
        """Take an answer; one to an invocation that was given up is dropped."""
        with self._changed:
            if self._work is None or self._work.request_id != request_id:
                return False
            self._work.answer, self._work.failed = payload, failed
            self._changed.notify_all()
            return True

    def init_failed(self, payload: bytes) -> None:
        with self._changed:
            self._init_error = payload
            self._changed.notify_all()
