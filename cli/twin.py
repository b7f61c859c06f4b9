"""Runs the commands of the twin: the rest of the command line reaches `local` through here."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from cli import planned
from cli.provision import Asked, Operation, run, summary, write_results
from cli.setup import prepare_tools
from cli.twin_layers import TwinLayers, provision
from core.errors import InvalidInput
from core.naming import TWIN_ENVIRONMENT
from local import twin
from local.demo import narration, recording
from local.demo import rotation as story
from local.demo import spec as demo_spec
from local.twin import RunningTwin, Twin


def run_layers(operation: Operation, console: Console, wanted: Asked) -> None:
    """Run an operation on the twin that `up` keeps in another terminal, else on one of its own."""
    kept = twin.kept_twins()
    if len(kept) > 1:
        homes = ", ".join(str(reached.place.directory) for reached in kept)
        raise InvalidInput([f"Several twins run; set STILLWATER_TWIN to one of {homes}."])
    if kept:
        _provision(operation, kept[0], console, wanted)
    elif operation == "destroy":
        raise InvalidInput(
            ["No twin runs that could be destroyed; `stillwater up local` starts one."]
        )
    else:
        prepare_tools(console)
        with twin.running(console.print) as running:
            _provision(operation, running, console, wanted)
            if operation == "up":
                _keep(running, console)


def _provision(operation: Operation, reached: RunningTwin, console: Console, wanted: Asked) -> None:
    layers = TwinLayers(reached, demo_spec.write(reached.place))
    with console.status(f"{operation} {TWIN_ENVIRONMENT}"):
        results = run(operation, layers.layers, layers.farewell)
    if wanted.as_json:
        write_results(TWIN_ENVIRONMENT, operation, results, wanted)
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
