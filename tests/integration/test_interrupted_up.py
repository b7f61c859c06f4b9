"""An `up` that is interrupted, again and again, goes on where it stopped; a destroy leaves nothing.

On the first layer, whose resources are every other's ground; the rest is in docs/twin.md.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.engine.layers import Layers
from cli.engine.progress import LayerFailed, Step
from core.naming import FOUNDATION
from local.demo import spec as demo_spec
from local.pulumi.project import twin_project
from local.twin import Twin
from tests.integration import leftovers

pytestmark = pytest.mark.integration
ENVIRONMENT = "halfway"
# Ctrl-C after so many resources that a run has made.
EVERY = 10
# A foundation has some seventy resources; what is under way at Ctrl-C is still made.
MOST_RUNS = 12


class Interrupting:
    """Layers whose engine gets a Ctrl-C in each run after `EVERY` resources it has made."""

    def __init__(self, twin: Twin, project: Path) -> None:
        self._engine, self._left = 0, EVERY
        self.layers = Layers(
            ENVIRONMENT,
            twin.environment(),
            project,
            layers=(FOUNDATION,),
            on_step=self._count,
            started=self._note,
        )

    def up(self) -> Mapping[str, Any] | None:
        """Return the outputs of a run that reached its end, or None for one that was stopped."""
        self._left = EVERY
        try:
            return self.layers.up_one(FOUNDATION).outputs
        except LayerFailed:
            assert self._left <= 0, "it failed by itself"
            return None

    def _note(self, pid: int) -> None:
        self._engine = pid

    def _count(self, step: Step) -> None:
        if (step.operation, step.state) == ("create", "done"):
            self._left -= 1
            if self._left == 0:
                os.kill(self._engine, signal.SIGINT)


@pytest.fixture
def halfway(twin: Twin) -> Iterator[Interrupting]:
    described = demo_spec.spec(twin.place) | {
        "environment": ENVIRONMENT,
        "network": {"vpc_cidr": f"10.{twin.place.number}.160.0/20"},
    }
    path = twin.place.path("halfway.yaml")
    path.write_text(yaml.safe_dump(described))
    made = Interrupting(twin, twin_project(twin.place, ENVIRONMENT, path))
    yield made
    made.layers.destroy()


def test_an_up_interrupted_every_tenth_resource_ends_and_a_destroy_leaves_nothing(
    twin: Twin, halfway: Interrupting
) -> None:
    stored = set(leftovers.in_store(twin))
    runs: list[Mapping[str, Any] | None] = []
    while not runs or runs[-1] is None:
        assert len(runs) < MOST_RUNS, "it gets nowhere"
        runs.append(halfway.up())
    assert len(runs) > 2
    assert leftovers.in_aws(twin, ENVIRONMENT)
    halfway.layers.destroy()
    assert leftovers.in_aws(twin, ENVIRONMENT) == []
    assert set(leftovers.in_store(twin)) == stored
