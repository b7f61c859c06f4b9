"""`stillwater up|preview|destroy ENV`: what would change, a question, the layers with progress."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.status import Status
from rich.table import Table

from cli import aws, planned, stack_settings
from cli.engine.layers import Around, Layers, Scope
from cli.engine.progress import LayerResult, Step
from cli.farewell import Farewell, FarewellApi
from cli.stack_settings import Described
from cli.volumes import VOLUMES, of_namespace
from core.cluster import changes, parse
from core.errors import InvalidInput, StillwaterError
from core.naming import FOUNDATION, KAFKA, LAYERS, TWIN_ENVIRONMENT

# The output of Kafka's layer that holds what it was made from.
SPEC = "spec"
Operation = Literal["up", "preview", "destroy"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user asks of a run beside the environment."""

    layers: tuple[str, ...] = LAYERS
    scope: Scope = field(default_factory=Scope)
    yes: bool = False  # nobody is asked before something is changed
    diff: bool = False  # values that differ, not names alone


def asked(
    layers: Sequence[str], targets: Sequence[str], *, refresh: bool, yes: bool, diff: bool
) -> Asked:
    """Return what is asked for; raises InvalidInput for a layer that does not exist."""
    problems = [
        f"--layer {name}: there is no such layer; the layers are {', '.join(LAYERS)}."
        for name in layers
        if name not in LAYERS
    ]
    if targets and len(layers) != 1:
        problems.append("--target names resources of one layer: say which by --layer.")
    if problems:
        raise InvalidInput(problems)
    chosen = tuple(layer for layer in LAYERS if layer in layers) if layers else LAYERS
    return Asked(chosen, Scope(tuple(targets), refresh), yes, diff)


def preview(environment: str, console: Console, wanted: Asked) -> None:
    """Show what `up` would change, layer by layer; `local` is the twin."""
    if environment == TWIN_ENVIRONMENT:
        _twin("preview", console)
        return
    stack_settings.require(environment)
    cannot, felt = _changes(environment, console, wanted)
    results = _planned(environment, console, wanted)
    planned.show(results, console, diff=wanted.diff)
    for sentence in (*cannot, *felt):
        _say(console, sentence)


def up(environment: str, console: Console, wanted: Asked) -> None:
    """Show what would change, ask, and bring every layer up; a twin is not asked for.

    Layers that build on one which does not exist yet cannot be planned: they are new as well.
    """
    if environment == TWIN_ENVIRONMENT:
        _twin("up", console)
        return
    stack_settings.require(environment)
    cannot, felt = _changes(environment, console, wanted)
    if cannot:
        raise InvalidInput(cannot)
    if not wanted.yes:
        results = _planned(environment, console, wanted)
        planned.show(results, console, diff=wanted.diff)
        if not any(result.changes or result.skipped for result in results):
            console.print("Nothing is to be done.")
            return
        for sentence in felt:
            _say(console, sentence)
    planned.agreed(f"Bring up {environment}?", "yes", console, yes=wanted.yes)
    with _layers(environment, console, wanted) as layers:
        results = layers.up()
    console.print(summary(results))
    _say(
        console, f"Next: `stillwater doctor {environment}` says whether all of it is as described."
    )


def destroy(environment: str, console: Console, wanted: Asked) -> None:
    """Say what would go, ask for the environment's name, and remove every layer, last first."""
    if environment == TWIN_ENVIRONMENT:
        _twin("destroy", console)
        return
    stack_settings.require(environment)
    described = stack_settings.described(environment)
    with _layers(environment, console, wanted) as layers:
        api = _api(described, layers)
    if not wanted.yes:
        for sentence in _what_goes(environment, wanted, described, api):
            _say(console, sentence)
    planned.agreed(f"Remove {environment}?", environment, console, yes=wanted.yes)
    with _layers(environment, console, wanted) as layers:
        results = layers.destroy(_farewell(described, api))
    console.print(summary(results))


def _say(console: Console, sentence: str) -> None:
    console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _twin(operation: Operation, console: Console) -> None:
    from cli import twin  # noqa: PLC0415 - a real account needs no twin

    twin.run_layers(operation, console)


def _planned(environment: str, console: Console, wanted: Asked) -> list[LayerResult]:
    with _layers(environment, console, wanted) as layers:
        return layers.preview()


def _changes(
    environment: str, console: Console, wanted: Asked
) -> tuple[Sequence[str], Sequence[str]]:
    """Return what the cluster that runs could not follow of its changed spec, and what it feels."""
    with _layers(environment, console, wanted) as layers:
        made_from = layers.outputs(KAFKA).get(SPEC)
    if made_from is None:
        return (), ()
    after = stack_settings.described(environment).spec
    try:
        before = parse(json.loads(made_from))
    except (InvalidInput, ValueError):
        # An older release wrote it, in words that have changed since.
        unread = (
            "What Kafka's layer was last made from cannot be read by this release, so that the "
            "change was not held against it; read the preview."
        )
        return (), (unread,)
    return changes.refused(before, after), changes.felt(before, after)


@contextmanager
def _layers(environment: str, console: Console, wanted: Asked) -> Iterator[Layers]:
    """Yield the layers, with progress; an interruption is said as what it leaves."""
    project = stack_settings.require(environment)
    # Found missing now, not by every provider in words of its own.
    aws.session(stack_settings.described(environment).profile)
    try:
        with _steps(console) as on_step:
            yield Layers(
                environment,
                _for_the_engine(os.environ),
                project.root,
                secrets_provider=stack_settings.secrets_provider(environment, project),
                layers=wanted.layers,
                scope=wanted.scope,
                on_step=on_step,
            )
    except KeyboardInterrupt:
        _say(
            console,
            f"Stopped: the engine ended the steps that were under way and wrote its state. What "
            f"it had made stays; the same command again goes on with {environment}.",
        )
        raise


def _for_the_engine(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Let the engine find this very Python first: an installed command's is on nobody's PATH."""
    ours = str(Path(sys.executable).parent)
    path = environment.get("PATH", os.defpath)
    return {**environment, "PATH": os.pathsep.join([ours, path])}


def run(operation: Operation, layers: Layers, farewell: Around | None) -> list[LayerResult]:
    """Run an operation on all layers; `farewell` is what a destroy does beside the engine."""
    if operation == "up":
        return layers.up()
    return layers.preview() if operation == "preview" else layers.destroy(farewell)


def _api(described: Described, layers: Layers) -> Callable[[], FarewellApi] | None:
    """Return how the environment's cluster is reached, None where there is none any more."""
    foundation = layers.outputs(FOUNDATION)
    if not foundation:
        return None
    return lambda: _cluster_api(described.spec.region, described.profile, foundation)


def _farewell(described: Described, api: Callable[[], FarewellApi] | None) -> Farewell | None:
    """Return what goes with an ephemeral environment; another one keeps what it has."""
    if api is None or not described.spec.ephemeral:
        return None
    return Farewell(api, described.spec.kubernetes.namespace)


def _what_goes(
    environment: str, wanted: Asked, described: Described, api: Callable[[], FarewellApi] | None
) -> Iterator[str]:
    """Yield what a destroy takes away and what it leaves, the volumes by name."""
    yield f"destroy removes {', '.join(reversed(wanted.layers))} of {environment}."
    if not described.spec.ephemeral:
        yield (
            f"{environment} is not `ephemeral`: the engine refuses to delete its volumes' storage, "
            f"tables, keys and balancers, and stops there."
        )
    if api is None:
        return
    fate = "deleted for good" if described.spec.ephemeral else "kept"
    try:
        found = of_namespace(api().get(VOLUMES)["items"], described.spec.kubernetes.namespace)
    except (StillwaterError, OSError) as error:
        yield f"Kafka's volumes are {fate}; which they are could not be read: {error}"
        return
    if found:
        yield f"{len(found)} volumes of Kafka are {fate}:"
    for volume in found:
        yield f"  {volume}"


def _cluster_api(region: str, profile: str | None, foundation: Mapping[str, Any]) -> FarewellApi:
    """Return the API of an environment's cluster, for the AWS identity that its stacks run as."""
    from handlers.adapters.eks import eks_token  # noqa: PLC0415
    from infra.eks.api import Api  # noqa: PLC0415

    session = aws.session(profile)
    return Api(
        str(foundation["eks_endpoint"]),
        lambda: eks_token(str(foundation["eks_cluster_name"]), region, session),
        ca_pem=base64.b64decode(foundation["eks_ca"]).decode(),
    )


@contextmanager
def _steps(console: Console) -> Iterator[Callable[[Step], None]]:
    """Show which resource the engine is at; where nobody watches, a line for each that is done."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    with console.status("starting the engine") as status:
        yield _Steps(status)


class _Lines:
    """Says each resource that is made, changed or gone, in a line of its own."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, step: Step) -> None:
        if step.state != "started" and step.operation not in {"same", "read", "refresh"}:
            _say(self._console, f"{step.layer}: {step.operation} {step.name}: {step.state}")


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
