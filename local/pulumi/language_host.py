"""`pulumi-language-python` for an engine built from its Go module, which comes without one.

The real language host is not published as a module of its own. This one answers what `pulumi up`
asks and runs the program in a child process with this interpreter, so that plain `pulumi up`
works in the twin as it does with the user's own installation. Where the real host stands beside
the user's CLI, that one is used.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from google.protobuf import empty_pb2
from pulumi._version import version
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from local.pulumi.provider import serve

STOP_SECONDS = 2.0
CHUNK_BYTES = 65536


def start_plugin(request: Any, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a plugin as the engine's own host for Python does: its folder, as a program."""
    program = request.info.program_directory or request.program
    added = dict(pair.split("=", 1) for pair in request.env if "=" in pair)
    return subprocess.Popen(
        [sys.executable, "-u", program, *request.args],
        cwd=request.pwd or None,
        env={**environment, **added},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def plugin_output(child: subprocess.Popen[bytes]) -> Iterator[Any]:
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


def end_plugin(child: subprocess.Popen[Any]) -> None:
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


# The program has told the engine what is wrong; the engine need not add anything.
BAIL = 32
PROGRAM = Path(__file__).with_name("program.py")


def _program_environment() -> dict[str, str]:
    """Return this process's environment without the path by which this package was found.

    That path is put in front by our own script (local.pulumi.bin). One that the user has set too
    is the user's: a checkout's code goes before what is installed.
    """
    own = str(Path(__file__).resolve().parents[2])
    environment = dict(os.environ)
    paths = [path for path in environment.pop("PYTHONPATH", "").split(os.pathsep) if path]
    if own in paths:
        paths.remove(own)
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs Python programs for the engine."""

    def __init__(self, engine_address: str) -> None:
        self.engine_address = engine_address
        self._programs: set[subprocess.Popen[Any]] = set()
        self._lock = threading.Lock()

    def Handshake(self, request: Any, _context: Any) -> Any:  # noqa: N802 - the protocol's names
        self.engine_address = request.engine_address or self.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version=str(version))

    def GetRequiredPackages(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        # Resources name their provider's version themselves when the program registers them.
        return language_pb2.GetRequiredPackagesResponse()

    def InstallDependencies(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        # The twin's interpreter has them; there is nothing to stream back.
        return iter(())

    def Cancel(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        self.stop()
        return empty_pb2.Empty()

    def Run(self, request: Any, _context: Any) -> Any:  # noqa: N802
        info = request.info
        description = {
            "monitor": request.monitor_address,
            "engine": self.engine_address,
            "project": request.project,
            "stack": request.stack,
            "organization": request.organization or "organization",
            "parallel": request.parallel,
            "dry_run": request.dryRun,
            "root_directory": info.root_directory,
            "program": str(Path(info.program_directory or request.pwd, info.entry_point or ".")),
            "arguments": list(request.args),
            "config": dict(request.config),
            "secret_keys": list(request.configSecretKeys),
        }
        code = self._run(json.dumps(description), request.pwd)
        if code == 0:
            return language_pb2.RunResponse()
        if code == BAIL:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"The program ended with exit code {code}.")

    def RunPlugin(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        child = start_plugin(request, _program_environment())
        with self._lock:
            self._programs.add(child)
        # The engine gives up the call when it needs the plugin no longer.
        if not context.add_callback(lambda: end_plugin(child)):
            end_plugin(child)
        try:
            yield from plugin_output(child)
        finally:
            with self._lock:
                self._programs.discard(child)

    def _run(self, description: str, directory: str) -> int:
        """Run the program; its output goes where the engine reads this plugin's output."""
        program = subprocess.Popen(
            [sys.executable, "-P", "-u", str(PROGRAM)],
            cwd=directory,
            env=_program_environment(),
            stdin=subprocess.PIPE,
            text=True,
        )
        with self._lock:
            self._programs.add(program)
        try:
            with contextlib.suppress(BrokenPipeError):
                program.communicate(description)
            return program.wait()
        finally:
            with self._lock:
                self._programs.discard(program)

    def stop(self) -> None:
        """End the programs that still run."""
        with self._lock:
            programs = list(self._programs)
        for program in programs:
            program.terminate()
        for program in programs:
            try:
                program.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                program.kill()


def main() -> None:
    """Serve as the engine's language host; the engine passes its address as an argument."""
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    host = LanguageHost(addresses[0] if addresses else "")
    serve(
        lambda server: language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server),
        host.stop,
    )


if __name__ == "__main__":
    main()
