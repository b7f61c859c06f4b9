"""Takes what a person types about the twin: its tools, the demo, a cluster to work with."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cli.commands.options import AsJson, Commands, complaints, console
from cli.provision import Asked, StackOperation, parse_targets, run, show, summary, write_results
from core.ground.errors import InvalidInput
from core.ground.naming import TWIN_ENVIRONMENT
from local import twin
from local.commands.layers import TwinLayers
from local.commands.setup import prepare_tools
from local.demo import narration
from local.demo import rotation as story
from local.demo import spec as demo_spec
from local.twin import RunningTwin, Twin

app = typer.Typer(
    cls=Commands,
    help="A twin of AWS and EKS on this machine: no account, no container.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def setup() -> None:
    """Build the twin's tools into the per-user cache; quick when they are there."""
    prepare_tools(console)


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where the page and the figures go.")] = Path("out")
    / "demo",
) -> None:
    """Let a broker's node die under a live producer, on real parts, and show what happened."""
    failures = show_demo(output, console)
    for failure in failures:
        complaints.print(failure, style="red")
    console.print(f"\nThe timeline: {output / 'index.html'}")
    console.print(f"The cost report: {output / 'report' / 'index.html'}")
    console.print(f"The figures: {output / 'result.json'}")
    if failures:
        raise typer.Exit(1)


@app.command()
def up(*, as_json: AsJson = False) -> None:
    """Start a twin with every layer on it, which lives until Ctrl-C; or bring up the one that runs.

    `stillwater doctor local`, `health local` and the others find it from another terminal.
    """
    _run_command("up", as_json=as_json)


@app.command()
def preview(
    *,
    diff: Annotated[bool, typer.Option("--diff", help="Show the values that differ.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what `up` would change on the twin that runs, else on a new one."""
    _run_command("preview", diff=diff, as_json=as_json)


@app.command()
def destroy(*, as_json: AsJson = False) -> None:
    """Remove every layer of the twin that runs, last first, its volumes with them."""
    _run_command("destroy", as_json=as_json)


def _run_command(operation: StackOperation, *, as_json: bool, **given: Any) -> None:
    wanted = parse_targets(
        (), (), **{"refresh": False, "yes": True, "diff": False, **given}, as_json=as_json
    )
    run_layers(operation, complaints if as_json else console, wanted)


def run_layers(operation: StackOperation, console: Console, wanted: Asked) -> None:
    """Run an operation on the twin that `up` keeps in another terminal, else on one of its own."""
    kept = twin.kept_twins()
    if len(kept) > 1:
        homes = ", ".join(str(reached.place.directory) for reached in kept)
        raise InvalidInput([f"Several twins run; set STILLWATER_TWIN to one of {homes}."])
    if kept:
        _provision(operation, kept[0], console, wanted)
    elif operation == "destroy":
        raise InvalidInput(
            ["No twin runs that could be destroyed; `python -m local up` starts one."]
        )
    else:
        prepare_tools(console)
        with twin.running(console.print) as running:
            _provision(operation, running, console, wanted)
            if operation == "up":
                _keep(running, console)


def _provision(
    operation: StackOperation, reached: RunningTwin, console: Console, wanted: Asked
) -> None:
    layers = TwinLayers(reached, demo_spec.write(reached.place))
    with console.status(f"{operation} {TWIN_ENVIRONMENT}"):
        results = run(operation, layers.layers, layers.teardown)
    if wanted.as_json:
        write_results(TWIN_ENVIRONMENT, operation, results, wanted)
        return
    if operation == "preview":
        show(results, console, diff=wanted.diff)
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


def show_demo(output: Path, console: Console) -> list[str]:
    """Let a broker's node die under a live producer; return what went wrong, a sentence each."""
    prepare_tools(console)
    started = time.time()
    narrator = narration.Narrator(console, started)
    narrator.chapter("The twin: AWS, Kubernetes, nodes, on this machine's loopback addresses")
    try:
        with twin.running(narrator.say, keep_logs=output / "logs") as running:
            return story.run(running, TwinLayers, output, narrator, started)
    finally:
        # Of a run that was ended early, too: it shows how far it came.
        narrator.draw(output / "narration.svg", "make demo, as it ran")
