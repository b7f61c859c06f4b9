"""Runs of the engine that get a Ctrl-C in the middle, as a person's or a build's would."""

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from cli.engine.events import EngineStep, LayerFailed, LayerResult
from cli.engine.layers import Layers
from core.ground.naming import LAYERS
from local.processes import forget, record
from local.pulumi.bin import twin_project
from local.twin import Twin


class Interrupting:
    """Layers whose engine gets a Ctrl-C in each run, after so many resources that it has done."""

    def __init__(
        self, twin: Twin, environment: str, spec: Path, layers: Sequence[str] = LAYERS
    ) -> None:
        self._engine, self._operation, self._left = 0, "", 0
        self._pids = twin.place.path("pids")
        self.layers = Layers(
            environment,
            twin.environment(),
            twin_project(twin.place, environment, spec),
            layers=layers,
            on_step=self._count,
            started=self._note,
            ended=lambda pid: forget(self._pids, pid),
        )

    def up(self, layer: str, after: int) -> LayerResult | None:
        """Return what a run did that reached its end, or None for one that was stopped."""
        return self._stopped("create", after, lambda: self.layers.up_one(layer))

    def destroy(self, layer: str, after: int) -> LayerResult | None:
        """Return what a run did that reached its end, or None for one that was stopped."""
        return self._stopped("delete", after, lambda: self.layers.destroy_one(layer))

    def _stopped(
        self, operation: str, after: int, run: Callable[[], LayerResult]
    ) -> LayerResult | None:
        self._operation, self._left = operation, after
        try:
            return run()
        except LayerFailed:
            assert self._left <= 0, "it failed by itself"
            return None

    def _note(self, pid: int) -> None:
        self._engine = pid
        record(self._pids, pid)

    def _count(self, step: EngineStep) -> None:
        if (step.operation, step.state) == (self._operation, "done"):
            self._left -= 1
            if self._left == 0:
                os.kill(self._engine, signal.SIGINT)
