"""`stillwater volumes ...` as it is typed; cli.volume_plans does what it says."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from cli.arguments import AsJson, Environment
from cli.commands import Commands
from cli.terminal import Terminal

volumes = typer.Typer(cls=Commands, help="Kafka's volumes: what they need.", no_args_is_help=True)
console = Terminal()


@volumes.command("plan")
def volumes_plan(environment: Environment, *, as_json: AsJson = False) -> None:
    """Say what the volumes need and what it costs; nothing is changed."""
    from cli import volume_plans as command

    command.plan(environment, console, as_json=as_json)


@volumes.command("apply")
def volumes_apply(environment: Environment, *, as_json: AsJson = False) -> None:
    """Do now what the plan says, where volumes.mode is apply."""
    from cli import volume_plans as command

    command.apply(environment, console, as_json=as_json)


@volumes.command("history")
def volumes_history(
    environment: Environment,
    claim: Annotated[str | None, typer.Argument(help="One claim; none: all.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List the modifications of the volumes, and how many are left of today's four."""
    from cli import volume_plans as command

    command.history(environment, console, time.time(), claim, as_json=as_json)
