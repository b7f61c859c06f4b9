"""Takes what a person types about incidents; cli.incidents, pauses and desk do it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.arguments import AsJson, Environment
from cli.commands import Commands
from cli.terminal import Terminal

incident = typer.Typer(cls=Commands, help="One incident.", no_args_is_help=True)
console = Terminal()

Instance = Annotated[str, typer.Argument(help="An EC2 instance id, or an incident's id.")]


def incidents(
    environment: Annotated[str, typer.Argument(help="The environment; or the word verify.")],
    histories: Annotated[
        str | None,
        typer.Argument(help="With verify: an environment, or a file or folder of the archive."),
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List what is going on with this cluster's instances.

    `incidents verify ENV` (or a file or folder of archived incidents) holds what was recorded to
    the rules of docs/guarantees.md, and names the first step that breaks one.
    """
    from cli import incidents as command

    if environment == "verify" and histories is not None:
        from cli.incident_verify import verify

        verify(histories, console, as_json=as_json)
        return
    if histories is not None:
        raise typer.BadParameter(f"{histories!r} is one too many; only `verify` takes it.")
    command.show_all(environment, console, closed=everything, watch=watch, as_json=as_json)


@incident.command("show")
def incident_show(
    environment: Environment, incident_id: Instance, *, as_json: AsJson = False
) -> None:
    """Show one incident: everything that happened, who did it and why."""
    from cli import incidents as command

    command.show_one(environment, incident_id, console, as_json=as_json)


def hold(
    environment: Environment,
    instance: Instance,
    until: Annotated[str, typer.Option(help="90min, 2h, 1d, or a time such as 2026-11-20T18:00.")],
) -> None:
    """Keep an instance until a moment: nothing of it is drained before."""
    from cli import incidents as command

    console.print(command.hold_instance(command.Desk.of(environment), instance, until))


def pause(
    environment: Environment,
    because: Annotated[str, typer.Option(help="Why; whoever finds it paused reads it.")],
    until: Annotated[
        str | None, typer.Option(help="90min, 4h, 1d, or a time; left out: until `resume`.")
    ] = None,
) -> None:
    """Stop on purpose: nothing new is drained or terminated, hooks keep beating."""
    from cli import pauses as command
    from cli.incidents import Desk

    console.print(command.pause(Desk.of(environment), because, until))


def resume(environment: Environment) -> None:
    """Go on after a pause."""
    from cli import pauses as command
    from cli.incidents import Desk

    console.print(command.resume(Desk.of(environment)))


def release(environment: Environment, instance: Instance) -> None:
    """Let an instance go without a replacement and without Kafka's consent; drained first."""
    from cli import incidents as command

    console.print(command.release_instance(command.Desk.of(environment), instance))


def ignore(
    environment: Environment,
    incident_id: Instance,
    because: Annotated[str, typer.Option(help="Why; it is kept with the incident.")],
) -> None:
    """End an incident without doing anything about it."""
    from cli import incidents as command

    console.print(command.ignore_incident(command.Desk.of(environment), incident_id, because))


def desk(
    environment: Environment,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On loopback; 0: any that is free.")
    ] = 0,
) -> None:
    """Open a page on this machine that shows it all and takes hold, release, pause."""
    from cli.desk import command

    command.serve_desk(environment, port, console)


def register(app: typer.Typer) -> None:
    """Add the commands that stand by themselves."""
    for command in (desk, incidents, hold, pause, resume, release, ignore):
        app.command()(command)
