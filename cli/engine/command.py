"""Runs the Pulumi CLI for the Automation API in an environment of our choosing.

The Automation API's own command adds to this process's environment, where a user's AWS profile
would reach a run that is meant for another account; and it leaves the engine behind when this
process is interrupted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import IO

from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error
from semver import VersionInfo

from core.ground.errors import MissingPrerequisite, one_line

OnOutput = Callable[[str], object]
OnProcess = Callable[[int], object]

MINIMUM = VersionInfo(3, 220, 0)
CANCEL_SECONDS = 8.0
KILL_SECONDS = 5.0


def _version(executable: str, environment: Mapping[str, str]) -> VersionInfo:
    answer = subprocess.run(
        [executable, "version"], env=dict(environment), capture_output=True, text=True, check=False
    )
    text = answer.stdout.strip().removeprefix("v")
    try:
        version = VersionInfo.parse(text)
    except ValueError:
        raise MissingPrerequisite(
            f"{executable} does not say its version "
            f"(it answered {one_line(text or answer.stderr)!r}); install Pulumi {MINIMUM} or newer: https://www.pulumi.com/docs/install/."
        ) from None
    if version < MINIMUM:
        raise MissingPrerequisite(
            f"Pulumi {version} is too old; install {MINIMUM} or newer: "
            "https://www.pulumi.com/docs/install/."
        )
    return version


class EngineCommand(PulumiCommand):
    """The `pulumi` on an environment's PATH, run with exactly that environment."""

    def __init__(  # the base class would look on this process's PATH
        self,
        environment: Mapping[str, str],
        started: OnProcess | None = None,
        ended: OnProcess | None = None,
    ) -> None:
        executable = shutil.which("pulumi", path=environment.get("PATH", os.defpath))
        if executable is None:
            raise MissingPrerequisite(
                f"There is no pulumi on the PATH; install {MINIMUM} or newer: "
                "https://www.pulumi.com/docs/install/."
            )
        self.environment = dict(environment)
        self.command = executable
        self.version = _version(executable, environment)
        self._started = started or (lambda _pid: None)
        self._ended = ended or (lambda _pid: None)

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,
        on_error: OnOutput | None = None,
    ) -> CommandResult:
        """Run one command; an interruption lets the engine cancel and write its state first."""
        environment = {**self.environment, **additional_env, "PULUMI_AUTOMATION_API": "true"}
        process = subprocess.Popen(
            [self.command, "--non-interactive", *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            text=True,
            # A session of its own: Ctrl-C reaches the engine once, from here, not twice.
            start_new_session=True,
        )
        self._started(process.pid)
        try:
            output, errors = _follow(process, on_output, on_error)
        except BaseException:
            _cancel(process)
            raise
        finally:
            self._ended(process.pid)
        result = CommandResult(stdout=output, stderr=errors, code=process.returncode)
        if process.returncode != 0:
            raise create_command_error(result)
        return result


def _follow(
    process: subprocess.Popen[str], on_output: OnOutput | None, on_error: OnOutput | None
) -> tuple[str, str]:
    """Read both streams to their ends; return what they held."""
    chunks: tuple[list[str], list[str]] = ([], [])

    def read(stream: IO[str], callback: OnOutput | None, into: list[str]) -> None:
        for line in stream:
            into.append(line.rstrip())
            if callback is not None:
                callback(into[-1])

    assert process.stdout is not None  # noqa: S101 - pipes were asked for
    assert process.stderr is not None  # noqa: S101
    readers = [
        threading.Thread(target=read, args=(process.stdout, on_output, chunks[0]), daemon=True),
        threading.Thread(target=read, args=(process.stderr, on_error, chunks[1]), daemon=True),
    ]
    for reader in readers:
        reader.start()
    process.wait()
    for reader in readers:
        # A plugin that outlives the engine for a moment may hold the other end open.
        reader.join(KILL_SECONDS)
    return "\n".join(chunks[0]), "\n".join(chunks[1])


def _cancel(process: subprocess.Popen[str]) -> None:
    """Ask the engine to stop after the steps under way, then insist."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        process.wait(CANCEL_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(KILL_SECONDS)
