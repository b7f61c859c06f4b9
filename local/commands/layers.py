"""Provisions a cluster on a running twin: the same layers, the twin's engine and account."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.engine.events import LayerResult, Operation
from cli.engine.layers import Layers
from cli.kafka_layer import Teardown
from core.cluster import Kubernetes
from local.demo import spec as demo_spec
from local.kubernetes.client import administrator
from local.processes import forget, record
from local.pulumi.bin import twin_project
from local.twin import RunningTwin

NAMESPACE = Kubernetes().namespace


@dataclass(frozen=True, slots=True)
class Provisioned:
    """What one `up` of all layers did."""

    results: tuple[LayerResult, ...]

    @property
    def created(self) -> int:
        return sum(result.created for result in self.results)

    @property
    def changed(self) -> int:
        return sum(result.changed for result in self.results)

    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]:
        return {result.layer: result.outputs for result in self.results}


class TwinLayers:
    """All layers of one cluster on one twin."""

    def __init__(self, twin: RunningTwin, spec: Path) -> None:
        self._place = twin.place
        pids = twin.place.path("pids")
        self.layers = Layers(
            demo_spec.ENVIRONMENT,
            twin.environment(),
            twin_project(twin.place, demo_spec.ENVIRONMENT, spec),
            started=lambda pid: record(pids, pid),
            ended=lambda pid: forget(pids, pid),
        )

    @property
    def engine_version(self) -> str:
        return self.layers.engine_version

    def up(self, on_progress: Callable[[str], None]) -> Provisioned:
        """Bring every layer up in order, saying after each what it did."""
        results = []
        for layer in self.layers.layers:
            results.append(self.layers.up_one(layer))
            _tell(results[-1], on_progress)
        return Provisioned(tuple(results))

    def again(self, on_progress: Callable[[str], None]) -> Provisioned:
        """Run `up` on layers that are all there, side by side: none makes what another needs."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(self.layers.up_one, self.layers.layers))
        for result in results:
            _tell(result, on_progress)
        return Provisioned(tuple(results))

    @property
    def teardown(self) -> Teardown:
        """What a destroy does beside the engine: a twin's cluster is ephemeral."""
        return Teardown(lambda: administrator(self._place), NAMESPACE)


def _tell(result: LayerResult, on_progress: Callable[[str], None]) -> None:
    on_progress(
        f"{result.layer}: {result.created} created, {result.changed - result.created} changed, "
        f"{result.same} unchanged in {result.seconds:.1f} s"
    )
    for change in result.changes:
        if change.operation != Operation.CREATE:
            paths = ", ".join(difference.path for difference in change.differences)
            on_progress(f"  {change.operation} {change.kind} {change.name}: {paths}")
