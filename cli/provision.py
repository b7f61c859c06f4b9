"""`stillwater up|preview|destroy ENV`: the layers of an environment in order, with progress."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.status import Status
from rich.table import Table

from cli import stack_settings
from cli.engine.layers import Around, Layers
from cli.engine.progress import LayerResult, Step
from cli.farewell import Farewell, FarewellApi
from core.naming import FOUNDATION, TWIN_ENVIRONMENT

Operation = Literal["up", "preview", "destroy"]
REPOSITORY = Path(__file__).resolve().parents[1]


def run_layers(operation: Operation, environment: str, console: Console) -> None:
    """Run an operation on every layer; `local` is a twin that lives until Ctrl-C."""
    if environment == TWIN_ENVIRONMENT:
        from cli import twin  # noqa: PLC0415 - a real account needs no twin

        twin.run_layers(operation, console)
        return
    stack_settings.require(environment)
    with console.status(f"{operation} {environment}") as status:
        layers = Layers(environment, os.environ, REPOSITORY, on_step=_Steps(status))
        farewell = _farewell(environment, layers) if operation == "destroy" else None
        results = run(operation, layers, farewell)
    console.print(summary(results))


def run(operation: Operation, layers: Layers, farewell: Around | None) -> list[LayerResult]:
    """Run an operation on all layers; `farewell` is what a destroy does beside the engine."""
    if operation == "up":
        return layers.up()
    return layers.preview() if operation == "preview" else layers.destroy(farewell)


def _farewell(environment: str, layers: Layers) -> Farewell | None:
    """Return what goes with an ephemeral environment; another one keeps what it has."""
    described = stack_settings.described(environment)
    spec = described.spec
    foundation = layers.outputs(FOUNDATION) if spec.ephemeral else {}
    if not foundation:
        return None
    return Farewell(
        lambda: _cluster_api(spec.region, described.profile, foundation),
        spec.kubernetes.namespace,
    )


def _cluster_api(region: str, profile: str | None, foundation: Mapping[str, Any]) -> FarewellApi:
    """Return the API of an environment's cluster, for the AWS identity that its stacks run as."""
    import boto3  # noqa: PLC0415 - most commands need none

    from handlers.adapters.eks import eks_token  # noqa: PLC0415
    from infra.eks.api import Api  # noqa: PLC0415

    session = boto3.Session(profile_name=profile)
    return Api(
        str(foundation["eks_endpoint"]),
        lambda: eks_token(str(foundation["eks_cluster_name"]), region, session),
        ca_pem=base64.b64decode(foundation["eks_ca"]).decode(),
    )


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
