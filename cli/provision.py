"""Runs `stillwater up|preview|destroy ENV`: what would change, a question, then the layers.

The JSON leaves outputs of stacks out: some are secrets. Values of properties are there with
`--diff` alone, and hidden where a resource is a secret (cli.engine.events).
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from cli import aws, stack_settings, terminal
from cli.aws import out_of_reach
from cli.engine.events import EngineStep, LayerResult, Operation, ResourceChange
from cli.engine.layers import Layers, RunScope
from cli.kafka_layer import (
    QUIET_SECONDS,
    VOLUMES,
    Teardown,
    namespace_volumes,
    wait_until_settled,
)
from cli.stack_settings import DescribedEnvironment
from cli.terminal import say, somebody_answers
from core.cluster import changes, parse
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.naming import FOUNDATION, KAFKA, LAYERS
from infra.eks.api import Api

_SIGNS = {
    Operation.CREATE: ("+", "green"),
    Operation.UPDATE: ("~", "yellow"),
    Operation.REPLACE: ("!", "red"),
    Operation.DELETE: ("-", "red"),
}
_DONE = {
    Operation.CREATE: "to create",
    Operation.UPDATE: "to change",
    Operation.REPLACE: "to replace",
    Operation.DELETE: "to delete",
}


def show(results: Iterable[LayerResult], console: Console, *, diff: bool = False) -> None:
    """Print every layer's changes by the part they belong to."""
    for result in results:
        for line, style in lines(result, diff=diff):
            say(console, line, style)


def lines(result: LayerResult, *, diff: bool = False) -> list[tuple[str, str | None]]:
    """Return one layer's changes as lines, each with its style."""
    if result.skipped:
        return [(f"{result.layer}: {result.skipped}", None)]
    counts = Counter(change.operation for change in result.changes)
    said = ", ".join(f"{counts[o]} {_DONE[o]}" for o in _SIGNS if counts[o])
    head = f"{result.layer}: {said or 'nothing to change'}"
    found: list[tuple[str, str | None]] = [(head, "bold")]
    for part in sorted({change.part for change in result.changes}):
        found.append((f"  {part}", None))
        of_part = [change for change in result.changes if change.part == part]
        for change in sorted(of_part, key=lambda c: (_order(c), c.kind, c.name)):
            found += _change_lines(change, diff=diff)
    return found


def _order(change: ResourceChange) -> int:
    """Sort what takes something away before what adds."""
    order = (Operation.DELETE, Operation.REPLACE, Operation.UPDATE, Operation.CREATE)
    return order.index(change.operation)


def _change_lines(change: ResourceChange, *, diff: bool) -> list[tuple[str, str | None]]:
    sign, style = _SIGNS[change.operation]
    notes = []
    if change.operation is Operation.REPLACE:
        cause = f" because of {', '.join(change.because)}" if change.because else ""
        notes.append(f"made anew{cause}")
    elif change.operation is Operation.UPDATE and change.differences and not diff:
        notes.append(", ".join(difference.path for difference in change.differences))
    if change.protected and change.operation in {Operation.REPLACE, Operation.DELETE}:
        notes.append("protected: the engine refuses")
    said = f"    {sign} {change.kind} {change.name}" + (f": {'; '.join(notes)}" if notes else "")
    found: list[tuple[str, str | None]] = [(said, style)]
    if diff:
        found += [(f"        {d.path}: {d.before} -> {d.after}", None) for d in change.differences]
    return found


def ask_for_agreement(question: str, answer: str, console: Console, *, yes: bool) -> None:
    """Ask, and raise unless the answer is given; `yes` answers for a program.

    Raises StillwaterError where nobody can be asked, or where the answer is another.
    """
    if yes:
        return
    if not somebody_answers(console):
        raise StillwaterError(
            f"Nothing was changed: {question} No terminal can answer here; say --yes to go on."
        )
    try:
        given = console.input(f"{question} ({answer}) ", markup=False)
    except EOFError:
        raise StillwaterError("Nothing was changed, because no answer came.") from None
    if given.strip() != answer:
        raise StillwaterError(f"Nothing was changed: the answer was not {answer!r}.")


def run_document(
    environment: str, operation: str, results: Iterable[LayerResult], *, diff: bool, **more: object
) -> dict[str, Any]:
    """Return a run as an object; `more` stands before the layers."""
    found = list(results)
    return {
        "environment": environment,
        "operation": operation,
        "changes": sum(len(result.changes) for result in found),
        **more,
        "layers": [_layer_document(result, diff=diff) for result in found],
    }


def _layer_document(result: LayerResult, *, diff: bool) -> dict[str, Any]:
    counts = Counter(change.operation for change in result.changes)
    return {
        "layer": result.layer,
        "skipped": result.skipped,
        "seconds": round(result.seconds, 1),
        "counts": {operation.value: counts[operation] for operation in Operation},
        "unchanged": result.same,
        "resources": [_resource_document(change, diff=diff) for change in result.changes],
    }


def _resource_document(change: ResourceChange, *, diff: bool) -> dict[str, Any]:
    return {
        "operation": change.operation.value,
        "part": change.part,
        "kind": change.kind,
        "name": change.name,
        "urn": change.urn,
        "protected": change.protected,
        "because": list(change.because),
        "differences": [
            {"path": each.path, "before": each.before, "after": each.after}
            if diff
            else {"path": each.path}
            for each in change.differences
        ],
    }


# The output of Kafka's layer that holds what it was made from.
SPEC = "spec"
StackOperation = Literal["up", "preview", "destroy"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user asks of a run beside the environment."""

    layers: tuple[str, ...] = LAYERS
    scope: RunScope = field(default_factory=RunScope)
    yes: bool = False  # nobody is asked before something is changed
    diff: bool = False  # values that differ, not names alone
    as_json: bool = False  # the result is a document on stdout; the console is for people alone


def parse_targets(
    layers: Sequence[str],
    targets: Sequence[str],
    *,
    refresh: bool,
    yes: bool,
    diff: bool,
    as_json: bool = False,
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
    return Asked(chosen, RunScope(tuple(targets), refresh), yes, diff, as_json)


def preview(environment: str, console: Console, wanted: Asked) -> None:
    """Show what `up` would change, layer by layer."""
    cannot, felt = _changes(environment, console, wanted)
    results = _preview_results(environment, console, wanted)
    if wanted.as_json:
        write_results(
            environment, "preview", results, wanted, refusals=list(cannot), felt=list(felt)
        )
        return
    show(results, console, diff=wanted.diff)
    for sentence in (*cannot, *felt, *_warnings(results)):
        say(console, sentence)


def up(environment: str, console: Console, wanted: Asked) -> None:
    """Show what would change, ask, and bring every layer up.

    Layers that build on one which does not exist yet cannot be planned: they are new as well.
    """
    cannot, felt = _changes(environment, console, wanted)
    if cannot:
        raise InvalidInput(cannot)
    if not wanted.yes:
        results = _preview_results(environment, console, wanted)
        show(results, console, diff=wanted.diff)
        if not any(result.changes or result.skipped for result in results):
            if wanted.as_json:
                write_results(environment, "up", results, wanted, felt=list(felt))
            else:
                console.print("Nothing is to be done.")
            return
        for sentence in felt:
            say(console, sentence)
    ask_for_agreement(f"Bring up {environment}?", "yes", console, yes=wanted.yes)
    described = stack_settings.read_described(environment)
    with _layers(environment, console, wanted) as layers:
        results = layers.up(lambda result: _check_kafka(result, described, layers, console))
    if wanted.as_json:
        write_results(environment, "up", results, wanted, felt=list(felt))
        return
    console.print(summary(results))
    for sentence in _warnings(results):
        say(console, sentence)
    say(console, f"Next: `stillwater doctor {environment}` says whether all of it is as described.")


def _check_kafka(
    result: LayerResult, described: DescribedEnvironment, layers: Layers, console: Console
) -> None:
    """Wait until Strimzi's operator has carried Kafka's layer out; an ignored change is raised."""
    api = _api(described, layers) if result.layer == KAFKA else None
    if api is not None:
        wait_until_settled(
            api(),
            described.spec,
            lambda sentence: say(console, sentence),
            quiet_seconds=QUIET_SECONDS if result.changed else 0.0,
            limit_seconds=described.spec.roll_limit_seconds,
        )


def destroy(environment: str, console: Console, wanted: Asked) -> None:
    """Say what would go, ask for the environment's name, and remove every layer, last first."""
    described = stack_settings.read_described(environment)
    with _layers(environment, console, wanted) as layers:
        api = _api(described, layers)
    going = None
    if wanted.as_json or not wanted.yes:
        going = _going(environment, wanted, described, api)
    if going is not None and not wanted.yes:
        for sentence in going.sentences():
            say(console, sentence)
    ask_for_agreement(f"Remove {environment}?", environment, console, yes=wanted.yes)
    with _layers(environment, console, wanted) as layers:
        results = layers.destroy(_teardown(described, api))
    if wanted.as_json and going is not None:
        write_results(environment, "destroy", results, wanted, volumes=going.volumes_as_json())
        return
    console.print(summary(results))


def _warnings(results: Sequence[LayerResult]) -> list[str]:
    return [f"Warning: {sentence}" for result in results for sentence in result.warnings]


def write_results(
    environment: str,
    operation: StackOperation,
    results: Iterable[LayerResult],
    wanted: Asked,
    **more: object,
) -> None:
    """Write what was done as JSON on stdout."""
    terminal.write(run_document(environment, operation, results, diff=wanted.diff, **more))


def _preview_results(environment: str, console: Console, wanted: Asked) -> list[LayerResult]:
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
    after = stack_settings.read_described(environment).spec
    try:
        before = parse(json.loads(made_from))
    except (InvalidInput, ValueError):
        # An older release wrote it, in words that have changed since.
        unread = (
            "This release cannot read the description of the last `up` of Kafka's layer, and did "
            "not compare the change with it; read the preview."
        )
        return (), (unread,)
    return changes.refused_changes(before, after), changes.felt_changes(before, after)


@contextmanager
def _layers(environment: str, console: Console, wanted: Asked) -> Iterator[Layers]:
    """Yield the layers, with progress; an interruption is said as what it leaves."""
    project, path = stack_settings.require(environment), os.environ.get("PATH", os.defpath)
    # Found missing now, not by every provider in words of its own.
    described = stack_settings.read_described(environment)
    aws.session(described.profile)
    try:
        with _steps(console) as on_step:
            yield Layers(
                environment,
                # This very Python first: an installed command's is on nobody's PATH.
                {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}"},
                project.root,
                secrets_provider=described.secrets_provider,
                layers=wanted.layers,
                scope=wanted.scope,
                on_step=on_step,
            )
    except KeyboardInterrupt:
        say(
            console,
            "Stopped: the engine ended the steps that were under way and wrote its state. "
            f"Finished resources stay; the same command again goes on with {environment}.",
        )
        raise


def run(operation: StackOperation, layers: Layers, teardown: Teardown | None) -> list[LayerResult]:
    """Run an operation on all layers; `teardown` is what a destroy does beside the engine."""
    if operation == "up":
        return layers.up()
    return layers.preview() if operation == "preview" else layers.destroy(teardown)


def _api(described: DescribedEnvironment, layers: Layers) -> Callable[[], Api] | None:
    """Return how the environment's cluster is reached, None where there is none any more."""
    foundation = layers.outputs(FOUNDATION)
    if not foundation:
        return None
    return lambda: _cluster_api(described.spec.region, described.profile, foundation)


def _teardown(described: DescribedEnvironment, api: Callable[[], Api] | None) -> Teardown | None:
    """Return what goes with an ephemeral environment; another one keeps what it has."""
    if api is None or not described.spec.ephemeral:
        return None
    return Teardown(api, described.spec.kubernetes.namespace)


@dataclass(frozen=True, slots=True)
class _Going:
    """What a destroy takes away, and what becomes of Kafka's volumes."""

    environment: str
    layers: tuple[str, ...]
    ephemeral: bool
    volumes: tuple[str, ...] = ()
    unread: str | None = None  # why the volumes are not known

    @property
    def fate(self) -> str:
        return "deleted for good" if self.ephemeral else "kept"

    def sentences(self) -> Iterator[str]:
        """Yield it as sentences, the volumes by name."""
        yield f"destroy removes {', '.join(reversed(self.layers))} of {self.environment}."
        if not self.ephemeral:
            yield (
                f"{self.environment} is not `ephemeral`: the engine refuses to delete its volumes' "
                f"storage, tables, keys and balancers, and stops there."
            )
        if self.unread is not None:
            yield (
                f"Kafka's volumes are {self.fate}; which they are could not be read: {self.unread}"
            )
        if self.volumes:
            yield f"{len(self.volumes)} volumes of Kafka are {self.fate}:"
        for volume in self.volumes:
            yield f"  {volume}"

    def volumes_as_json(self) -> Mapping[str, object]:
        """Return what becomes of the volumes; null where they could not be read."""
        named = None if self.unread is not None else list(self.volumes)
        return {"fate": self.fate, "named": named, "unread": self.unread}


def _going(
    environment: str,
    wanted: Asked,
    described: DescribedEnvironment,
    api: Callable[[], Api] | None,
) -> _Going:
    """Return what a destroy takes away; a cluster that is gone already has no volumes."""
    going = _Going(environment, wanted.layers, described.spec.ephemeral)
    if api is None:
        return going
    try:
        found = namespace_volumes(api().get(VOLUMES)["items"], described.spec.kubernetes.namespace)
    except (StillwaterError, OSError) as error:
        return replace(going, unread=out_of_reach("The cluster does not answer.", error))
    return replace(going, volumes=found)


def _cluster_api(region: str, profile: str | None, foundation: Mapping[str, Any]) -> Api:
    """Return the API of an environment's cluster, for the AWS identity that its stacks run as."""
    from handlers.adapters.eks import eks_token  # noqa: PLC0415

    session = aws.session(profile)
    return Api(
        str(foundation["eks_endpoint"]),
        lambda: eks_token(str(foundation["eks_cluster_name"]), region, session),
        ca_pem=base64.b64decode(foundation["eks_ca"]).decode(),
    )


@contextmanager
def _steps(console: Console) -> Iterator[Callable[[EngineStep], None]]:
    """Show which resource the engine is at; where nobody watches, a line for each that is done."""
    done: Counter[str] = Counter()

    def say_line(step: EngineStep) -> None:
        if step.state != "started" and step.operation not in {"same", "read", "refresh"}:
            say(console, f"{step.layer}: {step.operation} {step.name}: {step.state}")

    if not console.is_terminal:
        yield say_line
        return
    with console.status("starting the engine") as status:

        def update(step: EngineStep) -> None:
            done[step.layer] += step.state == "done"
            counted = f"{step.layer}: {done[step.layer]} resources"
            status.update(f"{counted}, {step.operation} {step.name}")

        yield update


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
