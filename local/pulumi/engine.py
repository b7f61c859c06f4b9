"""Runs the layers of an environment in order through the Pulumi engine (Automation API).

Knows nothing of the twin: which account and which engine are meant is the environment it is given.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pulumi.automation import (
    CommandError,
    ConfigValue,
    EngineEvent,
    LocalWorkspace,
    OpType,
    OutputMap,
    OutputValue,
    Stack,
    StackNotFoundError,
    UpdateSummary,
)

from core.errors import StillwaterError
from local.pulumi.engine_command import EngineCommand, OnProcess

LAYERS = ("foundation", "platform", "kafka", "operations", "analytics")
_CREATED = (OpType.CREATE, OpType.IMPORT)
_REPLACED = (OpType.CREATE_REPLACEMENT, OpType.REPLACE, OpType.IMPORT_REPLACEMENT)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing the engine does to one resource."""

    layer: str
    resource_type: str
    name: str
    operation: str  # same, create, update, delete, replace, read ...
    state: str  # started, done, failed


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """What one layer's run did; providers and components count as resources, as in `pulumi up`."""

    layer: str
    seconds: float
    created: int = 0
    updated: int = 0
    replaced: int = 0
    deleted: int = 0
    same: int = 0
    outputs: Mapping[str, Any] = field(default_factory=dict)
    # Why a layer was not run, as a sentence.
    skipped: str | None = None

    @property
    def changed(self) -> int:
        return self.created + self.updated + self.replaced + self.deleted


OnStep = Callable[[Step], object]


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

    def info(self, show_secrets: bool = True) -> UpdateSummary:  # noqa: ARG002, FBT001, FBT002
        return UpdateSummary(
            kind="update",
            start_time=datetime.now(UTC),
            message="",
            config={},
            environment={},
            result="succeeded",
        )


class LayerFailed(StillwaterError):
    """A layer's run ended with errors; each is a sentence that names its resource."""

    def __init__(self, stack: str, problems: Sequence[str]) -> None:
        self.stack = stack
        self.problems = tuple(problems)
        super().__init__(f"Stack {stack} failed:\n" + "\n".join(f"- {p}" for p in problems))


class _Watch:
    """Follows one run's events: progress for the user, counts and errors for the result."""

    def __init__(self, layer: str, on_step: OnStep | None) -> None:
        self.layer = layer
        self.on_step = on_step
        self.problems: list[str] = []
        self.counts: dict[str, int] = {}

    def __call__(self, event: EngineEvent) -> None:
        if event.resource_pre_event is not None:
            self._step(event.resource_pre_event.metadata, "started")
        elif event.res_outputs_event is not None:
            self._step(event.res_outputs_event.metadata, "done")
        elif event.res_op_failed_event is not None:
            self._step(event.res_op_failed_event.metadata, "failed")
        elif event.summary_event is not None:
            changes = event.summary_event.resource_changes or {}
            self.counts = {str(getattr(k, "value", k)): int(v) for k, v in changes.items()}
        elif event.diagnostic_event is not None and event.diagnostic_event.severity == "error":
            self._problem(event.diagnostic_event.urn, event.diagnostic_event.message)

    def _step(self, metadata: Any, state: str) -> None:
        if self.on_step is not None:
            operation = str(getattr(metadata.op, "value", metadata.op))
            name = metadata.urn.rsplit("::", 1)[-1]
            self.on_step(Step(self.layer, metadata.type, name, operation, state))

    def _problem(self, urn: str | None, message: str) -> None:
        text = message.replace("<{%reset%}>", "").strip()
        # The engine's summary of the errors that are already in the list.
        if text in {"update failed", "preview failed", "update canceled", "destroy failed"}:
            return
        name = urn.rsplit("::", 1)[-1] if urn and "pulumi:pulumi:Stack" not in urn else None
        sentence = f"{name}: {text}" if name else text
        if sentence not in self.problems:
            self.problems.append(sentence)

    def result(self, seconds: float, outputs: Mapping[str, Any]) -> LayerResult:
        def count(*operations: OpType) -> int:
            return sum(self.counts.get(operation.value, 0) for operation in operations)

        return LayerResult(
            layer=self.layer,
            seconds=seconds,
            created=count(*_CREATED),
            updated=count(OpType.UPDATE),
            replaced=count(*_REPLACED),
            deleted=count(OpType.DELETE),
            same=count(OpType.SAME),
            outputs=outputs,
        )


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
        on_step: OnStep | None = None,
        started: OnProcess | None = None,
        ended: OnProcess | None = None,
    ) -> None:
        self.name = name
        self.layers = tuple(layers)
        self.config = dict(config or {})
        self.on_step = on_step
        self._command = EngineCommand(environment, started, ended)
        self._workspace = LocalWorkspace(
            work_dir=str(project_directory), pulumi_command=self._command
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

    def _run(
        self, layer: str, operation: Callable[[_Watch], Mapping[str, Any]], started: float
    ) -> LayerResult:
        watch = _Watch(layer, self.on_step)
        try:
            outputs = operation(watch)
        except CommandError as error:
            stack = self.stack_name(layer)
            raise LayerFailed(stack, watch.problems or [_last_words(error)]) from None
        return watch.result(time.monotonic() - started, outputs)

    def up_one(self, layer: str) -> LayerResult:
        """Bring one layer to what the program says."""
        started = time.monotonic()

        def update(watch: _Watch) -> Mapping[str, Any]:
            result = self._stack(layer).up(on_event=watch, color="never", suppress_outputs=True)
            return {key: output.value for key, output in result.outputs.items()}

        return self._run(layer, update, started)

    def up(self) -> list[LayerResult]:
        """Bring every layer up in order; the first failure stops the rest."""
        return [self.up_one(layer) for layer in self.layers]

    def preview(self) -> list[LayerResult]:
        """Say what `up` would do; a layer that builds on one never brought up cannot be planned."""
        results: list[LayerResult] = []
        missing: str | None = None
        for layer in self.layers:
            started = time.monotonic()
            if missing is not None:
                reason = f"Layer {layer} needs what layer {missing} exports; bring that up first."
                results.append(LayerResult(layer=layer, seconds=0.0, skipped=reason))
                continue
            results.append(self._run(layer, self._preview(layer), started))
            deployment = self._stack(layer).export_stack().deployment or {}
            if not deployment.get("resources"):
                missing = layer
        return results

    def _preview(self, layer: str) -> Callable[[_Watch], Mapping[str, Any]]:
        def plan(watch: _Watch) -> Mapping[str, Any]:
            self._stack(layer).preview(on_event=watch, color="never")
            return {}

        return plan

    def destroy(self) -> list[LayerResult]:
        """Delete every layer's resources, last layer first."""
        return [self.destroy_one(layer) for layer in reversed(self.layers)]

    def destroy_one(self, layer: str) -> LayerResult:
        started = time.monotonic()
        try:
            stack = _Stack.select(self.stack_name(layer), self._workspace)
        except StackNotFoundError:
            reason = f"Stack {self.stack_name(layer)} does not exist."
            return LayerResult(layer=layer, seconds=0.0, skipped=reason)

        def delete(watch: _Watch) -> Mapping[str, Any]:
            stack.destroy(on_event=watch, color="never")
            return {}

        return self._run(layer, delete, started)


def _last_words(error: CommandError) -> str:
    """Return the line of the CLI's output that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error:")]
    return " ".join(errors) or (lines[-1] if lines else "The engine gave no reason.")
