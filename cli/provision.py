"""`stillwater up|preview|destroy ENV`: the layers of an environment in order, with progress."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.status import Status
from rich.table import Table

from cli.engine.layers import Layers
from cli.engine.progress import LayerResult, Step
from core.errors import InvalidInput
from core.naming import LAYERS, TWIN_ENVIRONMENT

Operation = Literal["up", "preview", "destroy"]
REPOSITORY = Path(__file__).resolve().parents[1]
SETTINGS = REPOSITORY / "stacks" / "config"


def run_layers(operation: Operation, environment: str, console: Console) -> None:
    """Run an operation on every layer; `local` is a twin that lives until Ctrl-C."""
    if environment == TWIN_ENVIRONMENT:
        _on_a_twin(operation, console)
        return
    _require_settings(environment)
    with console.status(f"{operation} {environment}") as status:
        layers = Layers(environment, os.environ, REPOSITORY, on_step=_Steps(status))
        results = run(operation, layers)
    console.print(summary(results))


def run(operation: Operation, layers: Layers) -> list[LayerResult]:
    if operation == "up":
        return layers.up()
    return layers.preview() if operation == "preview" else layers.destroy()


def _require_settings(environment: str) -> None:
    """Refuse an environment nobody described, before any stack is made for it."""
    missing = [
        layer for layer in LAYERS if not (SETTINGS / f"Pulumi.{environment}-{layer}.yaml").is_file()
    ]
    if missing:
        known = sorted({p.name.split(".")[1].rpartition("-")[0] for p in SETTINGS.glob("*.yaml")})
        problem = (
            f"Environment {environment} has no settings for {', '.join(missing)}: add "
            f"stacks/config/Pulumi.{environment}-<layer>.yaml with stillwater:spec, as those "
            f"of {', '.join(known)} have, or use `{TWIN_ENVIRONMENT}` for the twin."
        )
        raise InvalidInput([problem])


class _Steps:
    """Shows which resource the engine is at."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._done: dict[str, int] = {}

    def __call__(self, step: Step) -> None:
        if step.state == "done":
            self._done[step.layer] = self._done.get(step.layer, 0) + 1
        done = self._done.get(step.layer, 0)
        self._status.update(f"{step.layer}: {done} resources, {step.operation} {step.name}")


def summary(results: Iterable[LayerResult]) -> Table:
    """Return what was done, a row per layer."""
    table = Table("layer", "created", "updated", "replaced", "deleted", "unchanged", "seconds")
    for r in results:
        if r.skipped:
            table.add_row(r.layer, r.skipped)
            continue
        counts = (r.created, r.updated, r.replaced, r.deleted, r.same)
        table.add_row(r.layer, *(str(count) for count in counts), f"{r.seconds:.1f}")
    return table


def _on_a_twin(operation: Operation, console: Console) -> None:
    """Start a twin, run the operation on it, and for `up` keep it for whoever looks around."""
    from cli.setup import prepare_tools  # noqa: PLC0415 - a real account needs no twin
    from cli.twin_layers import TwinLayers  # noqa: PLC0415
    from local import twin  # noqa: PLC0415
    from local.demo import spec as demo_spec  # noqa: PLC0415

    if operation == "destroy":
        raise InvalidInput(["The twin is destroyed by ending it: press Ctrl-C where it runs."])
    prepare_tools(console)
    with twin.running(console.print) as running:
        layers = TwinLayers(running, demo_spec.write(running.place))
        with console.status(f"{operation} {TWIN_ENVIRONMENT}"):
            console.print(summary(run(operation, layers.layers)))
        if operation == "preview":
            return
        console.print(f"kubectl --kubeconfig {running.place.path('kubeconfig')} get nodes")
        console.print(f"aws --endpoint-url {running.place.url('moto')} ec2 describe-instances")
        console.print(f"stillwater doctor {TWIN_ENVIRONMENT}")
        console.print("The twin lives until Ctrl-C.")
        while True:
            running.check_alive()
            time.sleep(1)
