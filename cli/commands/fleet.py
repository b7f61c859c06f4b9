"""Defines the commands of a fleet: many clusters that rotate in waves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cli.commands.options import AsJson, Commands, console, examples

app = typer.Typer()
fleet = typer.Typer(
    cls=Commands, help="Many clusters, rotated in waves by one file.", no_args_is_help=True
)
app.add_typer(fleet, name="fleet")

File = Annotated[Path, typer.Argument(metavar="FLEET", help="The fleet's file, YAML.")]


def _end(run: Callable[[], int], *, as_json: bool = False) -> None:
    from cli import terminal
    from core.checks.finding import NOT_READ

    with terminal.refusals(NOT_READ, as_json=as_json):
        code = run()
    raise typer.Exit(code)


@fleet.command(
    epilog=examples("fleet status fleet.yaml --html fleet.html", "fleet status fleet.yaml --watch")
)
def status(
    file: File,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Each minute, until Ctrl-C.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also a page, in this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what runs where in which version, who is behind, and what each cluster waits for.

    Exit code 0: nothing is wrong, 1: a cluster is stopped, 2: something could not be read.
    """
    from cli.fleet import command

    _end(
        lambda: command.show(file, console, watched=watch, as_json=as_json, html=html),
        as_json=as_json,
    )


@fleet.command(epilog=examples("fleet plan fleet.yaml", "fleet plan fleet.yaml --json"))
def plan(file: File, *, as_json: AsJson = False) -> None:
    """Say what `advance` would start now: nodes, hours, dollars. Changes nothing.

    Exit codes as of `status`.
    """
    from cli.fleet import command

    _end(lambda: command.plan(file, console, as_json=as_json), as_json=as_json)


@fleet.command(epilog=examples("fleet advance fleet.yaml", "fleet advance fleet.yaml --json"))
def advance(file: File, *, as_json: AsJson = False) -> None:
    """Start the rotations that may start, and return; a second time it starts nothing twice.

    An unhealthy cluster of the wave pauses the other rotations, as a missed objective does.

    Exit codes as of `status`. 1 also where a cluster refused.
    """
    from cli.fleet import command

    _end(lambda: command.advance(file, console, as_json=as_json), as_json=as_json)


@fleet.command(epilog=examples("fleet stop fleet.yaml", "fleet stop fleets/payments.yaml"))
def stop(file: File) -> None:
    """Pause every rotation of the fleet; it stays so until `rotate resume` on each cluster.

    Exit code 0: all pause, 1: none goes on, 2: a cluster could not be read or refused.
    """
    from cli.fleet import command

    _end(lambda: command.stop(file, console))
