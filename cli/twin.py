"""Runs the commands of the twin: the rest of the command line reaches `local` through here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import boto3
from rich.console import Console

from cli import planned
from cli.doctor.target import Target
from cli.engine.progress import LayerResult
from cli.provision import Operation, run, summary
from cli.setup import prepare_tools
from cli.twin_layers import TwinLayers, provision
from core.cluster import parse
from core.errors import InvalidInput, StillwaterError
from core.naming import TWIN_ENVIRONMENT
from infra import spec as specs
from local import environment, twin
from local.demo import narration, recording
from local.demo import rotation as story
from local.demo import spec as demo_spec
from local.place import PLACE_VARIABLE, Place, taken_places
from local.twin import Reached, Twin

Answer = Callable[[list[LayerResult]], None]


def run_layers(operation: Operation, console: Console, answer: Answer | None = None) -> None:
    """Run an operation on the twin that `up` keeps in another terminal, else on one of its own.

    `answer` is given the results in place of the console.
    """
    kept = twin.kept_twins()
    if len(kept) > 1:
        homes = ", ".join(str(reached.place.directory) for reached in kept)
        raise InvalidInput([f"Several twins run; set STILLWATER_TWIN to one of {homes}."])
    if kept:
        _provision(operation, kept[0], console, answer)
    elif operation == "destroy":
        raise InvalidInput(
            ["No twin runs that could be destroyed; `stillwater up local` starts one."]
        )
    else:
        prepare_tools(console)
        with twin.running(console.print) as running:
            _provision(operation, running, console, answer)
            if operation == "up":
                _keep(running, console)


def _provision(
    operation: Operation, reached: Reached, console: Console, answer: Answer | None
) -> None:
    layers = TwinLayers(reached, demo_spec.write(reached.place))
    with console.status(f"{operation} {TWIN_ENVIRONMENT}"):
        results = run(operation, layers.layers, layers.farewell)
    if answer is not None:
        answer(results)
        return
    if operation == "preview":
        planned.show(results, console)
    console.print(summary(results))


def _keep(running: Twin, console: Console) -> None:
    running.keep()
    console.print(f"kubectl --kubeconfig {running.place.path('kubeconfig')} get nodes")
    console.print(f"aws --endpoint-url {running.place.url('moto')} ec2 describe-instances")
    console.print(f"stillwater doctor {TWIN_ENVIRONMENT}")
    console.print("The twin lives until Ctrl-C; preview, up and destroy find it meanwhile.")
    while True:
        running.check_alive()
        time.sleep(1)


def demo(output: Path, console: Console, *, brief: bool = False) -> list[str]:
    """Let a broker's node die under a live producer; return what went wrong, a sentence each."""
    prepare_tools(console)
    started = time.time()
    narrator = narration.Narrator(console, started)
    narrator.chapter("The twin: AWS, Kubernetes, nodes, on this machine's loopback addresses")
    try:
        with twin.running(narrator.say, keep_logs=output / "logs") as running:
            tell = story.tell_briefly if brief else story.run
            return tell(running, provision, output, narrator, started)
    finally:
        # Of a run that was ended early, too: it shows how far it came.
        recording.write(output / "recording.svg", narrator.printed, "stillwater demo, as it ran")


def target() -> Target:
    """Return the twin that `up` keeps, or that STILLWATER_TWIN names, as its administrator."""
    place = _twins_place()
    variables = environment.with_credentials(place)
    session = boto3.Session(
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        region_name=environment.REGION,
    )
    spec = parse(specs.content(demo_spec.path(place)))
    return Target(spec, session, variables["AWS_ENDPOINT_URL"])


def _twins_place() -> Place:
    named = os.environ.get(PLACE_VARIABLE)
    found = taken_places() if named else [reached.place for reached in twin.kept_twins()]
    if named:
        found = [each for each in found if each.directory == Path(named).resolve()]
    if not found:
        where = f" in {named}, which {PLACE_VARIABLE} names" if named else ""
        raise StillwaterError(
            f"No twin with a cluster on it runs{where}; `stillwater up local` starts one in another"
            f" terminal."
        )
    if len(found) > 1:
        homes = ", ".join(str(each.directory) for each in found)
        raise StillwaterError(
            f"Several twins run ({homes}); set {PLACE_VARIABLE} to the one you mean."
        )
    return found[0]
