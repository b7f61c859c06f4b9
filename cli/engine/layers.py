"""Runs the layers of an environment in order through the Pulumi engine (Automation API).

The environment it is given says which account and which engine are meant. The Automation API's own
command adds to this process's environment, so a user's AWS profile would reach another account's
run; and it leaves the engine behind when interrupted. So the Pulumi CLI is started here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from pulumi.automation import (
    CommandError,
    CommandResult,
    ConcurrentUpdateError,
    ConfigValue,
    LocalWorkspace,
    OutputMap,
    OutputValue,
    PulumiCommand,
    Stack,
    StackNotFoundError,
    UpdateSummary,
)
from pulumi.automation.errors import create_command_error
from semver import VersionInfo

from cli.engine.events import (
    UNTOLD,
    EngineWatch,
    LayerFailed,
    LayerResult,
    OnStep,
    failure_sentence,
)
from cli.kafka_layer import Teardown
from core.ground.errors import MissingPrerequisite, one_line, passed_on
from core.ground.naming import LAYERS

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


# What its CLI says where nobody has logged in.
_NOT_LOGGED_IN = "PULUMI_ACCESS_TOKEN must be set for login"
# What the Automation API puts before each stream of a command that failed.
_LABEL = re.compile(r"^\s*(?:code|stdout|stderr):")


class _Stack(Stack):
    """A stack whose `up` asks the CLI afterwards only for what a LayerResult holds.

    Each question is a process of its own: the API's asks for outputs twice and for the history.
    """

    def outputs(self) -> OutputMap:
        text = self.workspace.pulumi_command.run(
            ["stack", "output", "--json", "--show-secrets", "--stack", self.name],
            self.workspace.work_dir,
            {},
        ).stdout
        return {key: OutputValue(value, secret=False) for key, value in json.loads(text).items()}

    def info(self, *_arguments: object, **_named: object) -> UpdateSummary:
        return UpdateSummary(
            kind="update",
            start_time=datetime.now(UTC),
            message="",
            config={},
            environment={},
            result="succeeded",
        )


@dataclass(frozen=True, slots=True)
class RunScope:
    """How much of a layer a run looks at."""

    targets: tuple[str, ...] = ()  # names or URNs of resources; none: all
    refresh: bool = False  # ask the providers first what is really there

    @property
    def options(self) -> Mapping[str, Any]:
        """Return what the engine is given; a name is any resource of that name."""
        patterns = [t if t.startswith("urn:") else f"**::{t}" for t in self.targets]
        return {"target": patterns or None, "refresh": self.refresh or None}


class Layers:
    """The stacks `<name>-<layer>` of one environment.

    `environment` is all that the engine's processes see; `started` and `ended` hear the process
    id of each, every one the leader of its own session.
    """

    def __init__(  # noqa: PLR0913 - all but the first three are optional and named
        self,
        name: str,
        environment: Mapping[str, str],
        project_directory: Path,
        *,
        layers: Sequence[str] = LAYERS,
        config: Mapping[str, str] | None = None,
        scope: RunScope = RunScope(),
        secrets_provider: str | None = None,
        on_step: OnStep | None = None,
        started: OnProcess | None = None,
        ended: OnProcess | None = None,
    ) -> None:
        self.name = name
        self.layers = tuple(layers)
        self.config = dict(config or {})
        self.scope = scope
        self.on_step = on_step
        self._command = EngineCommand(environment, started, ended)
        self._workspace = LocalWorkspace(
            work_dir=str(project_directory),
            pulumi_command=self._command,
            # Of stacks that this run makes; one that is there keeps its own.
            secrets_provider=secrets_provider,
        )

    @property
    def engine_version(self) -> str:
        return str(self._command.version)

    def stack_name(self, layer: str) -> str:
        return f"{self.name}-{layer}"

    def _stack(self, layer: str) -> Stack:
        """Select a layer's stack, made when it is new, with our configuration set."""
        stack = _Stack.create_or_select(self.stack_name(layer), self._workspace)
        if self.config:
            stack.set_all_config({k: ConfigValue(value) for k, value in self.config.items()})
        return stack

    @contextmanager
    def _asking(self, layer: str) -> Iterator[None]:
        """Turn what Pulumi refuses before it runs anything into a sentence."""
        try:
            yield
        except StackNotFoundError:
            raise
        except CommandError as error:
            raise LayerFailed(self.stack_name(layer), [_last_words(error)]) from None

    def _run(
        self, layer: str, operation: Callable[[EngineWatch], Mapping[str, Any]], started: float
    ) -> LayerResult:
        watch = EngineWatch(layer, self.on_step)
        stack = self.stack_name(layer)
        try:
            outputs = operation(watch)
        except ConcurrentUpdateError:
            problem = (
                "another run holds its lock; wait for it, or, if that run is dead, "
                f"`pulumi cancel -s {stack}`."
            )
            raise LayerFailed(stack, [problem]) from None
        except CommandError as error:
            raise LayerFailed(stack, watch.problems or [_last_words(error)]) from None
        except RuntimeError as error:
            if "summary" not in str(error):
                raise
            # What an engine of another release says may end the reader of its events.
            raise LayerFailed(stack, watch.problems or [passed_on(UNTOLD, error)]) from None
        return watch.result(time.monotonic() - started, outputs)

    def up_one(self, layer: str) -> LayerResult:
        """Bring one layer to what the program says."""
        started = time.monotonic()

        def update(watch: EngineWatch) -> Mapping[str, Any]:
            result = self._stack(layer).up(
                on_event=watch, color="never", suppress_outputs=True, **self.scope.options
            )
            return {key: output.value for key, output in result.outputs.items()}

        return self._run(layer, update, started)

    def up(self, check: Callable[[LayerResult], None] = lambda _: None) -> list[LayerResult]:
        """Bring every layer up in order, and check each; the first failure stops the rest."""
        results = []
        for layer in self.layers:
            results.append(self.up_one(layer))
            check(results[-1])
        return results

    def preview(self) -> list[LayerResult]:
        """Say what `up` would do; a layer that builds on one never brought up cannot be planned."""
        results: list[LayerResult] = []
        missing: str | None = None
        for layer in self.layers:
            if missing is not None:
                reason = f"all of it is new; it can be planned once {missing} is up."
                results.append(LayerResult(layer=layer, seconds=0.0, skipped=reason))
                continue
            results.append(self.preview_one(layer))
            with self._asking(layer):
                if not _resources(self._stack(layer)):
                    missing = layer
        return results

    def preview_one(self, layer: str) -> LayerResult:
        """Say what `up_one` would do."""

        def plan(watch: EngineWatch) -> Mapping[str, Any]:
            self._stack(layer).preview(on_event=watch, color="never", **self.scope.options)
            return {}

        return self._run(layer, plan, time.monotonic())

    def destroy(self, teardown: Teardown | None = None) -> list[LayerResult]:
        """Delete every layer's resources, last layer first, and what goes beside the engine."""
        results = []
        for layer in reversed(self.layers):
            if teardown is not None:
                teardown.prepare(layer)
            results.append(self.destroy_one(layer))
            if teardown is not None:
                teardown.clean_up(layer)
        return results

    def outputs(self, layer: str) -> Mapping[str, Any]:
        """Return what a layer exports, nothing where it was never brought up."""
        try:
            with self._asking(layer):
                stack = _Stack.select(self.stack_name(layer), self._workspace)
                return {key: output.value for key, output in stack.outputs().items()}
        except StackNotFoundError:
            return {}

    def destroy_one(self, layer: str) -> LayerResult:
        started = time.monotonic()
        try:
            with self._asking(layer):
                stack = _Stack.select(self.stack_name(layer), self._workspace)
        except StackNotFoundError:
            reason = f"Stack {self.stack_name(layer)} does not exist."
            return LayerResult(layer=layer, seconds=0.0, skipped=reason)

        def delete(watch: EngineWatch) -> Mapping[str, Any]:
            stack.destroy(on_event=watch, color="never")
            # The engine calls a destroy that it was told to cancel a success.
            if left := _resources(stack):
                problem = (
                    f"it was stopped while {left} of its resources were still there; "
                    "`destroy` again goes on where it ended."
                )
                raise LayerFailed(self.stack_name(layer), [problem])
            return {}

        return self._run(layer, delete, started)


def _resources(stack: Stack) -> int:
    """Return how many resources the engine's state of a stack holds."""
    deployment = stack.export_stack().deployment or {}
    return len(deployment.get("resources") or ())


def _last_words(error: CommandError) -> str:
    """Return the line of the CLI's output that says what is wrong."""
    if _NOT_LOGGED_IN in str(error):
        return (
            "Pulumi does not know where the state lives: `pulumi login s3://BUCKET`, or of another "
            "backend, says it, and so does PULUMI_BACKEND_URL."
        )
    lines = [_LABEL.sub("", line).strip() for line in str(error).splitlines()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error:")]
    said = [line for line in lines if line]
    return failure_sentence("The engine ended", " ".join(errors) or (said[-1] if said else ""))
