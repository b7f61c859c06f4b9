"""Defines the commands that look and change nothing, the desk, and those of adoption."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.options import (
    AsJson,
    AsJsonLines,
    Commands,
    Environment,
    complaints,
    console,
    examples,
)

app = typer.Typer()
incident = typer.Typer(cls=Commands, help="One incident.", no_args_is_help=True)
app.add_typer(incident, name="incident")

Instance = Annotated[str, typer.Argument(help="An EC2 instance id, or an incident's id.")]


@app.command(epilog=examples("health prod", "health prod --watch"))
def health(
    environment: Environment,
    *,
    as_json: AsJsonLines = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again, until Ctrl-C.")] = False,
) -> None:
    """Say how the whole cluster does, and why: quorum, partitions, nodes, pods, Connect, incidents.

    Exit code 0: healthy, 1: starting or degraded, 2: unhealthy or unknown.
    """
    from cli import health as command
    from cli import terminal

    with terminal.refusals(command.UNHEALTHY, as_json=as_json):
        code = command.show(environment, console, watch=watch, as_json=as_json)
    raise typer.Exit(code)


@app.command(epilog=examples("doctor prod", "doctor shop.yaml --json"))
def doctor(environment: Environment, *, as_json: AsJson = False) -> None:
    """Say where a live cluster differs from its description, and what may hurt. Changes nothing.

    For a cluster that exists, name its description: FILE.yaml.

    Exit code 0: no problem, 1: a problem, 2: something could not be read.
    """
    from cli import target, terminal
    from cli.doctor import adopted, examine
    from core.checks.finding import NOT_READ

    # Not the usual 1, which says that something was read and differs.
    with terminal.refusals(NOT_READ, as_json=as_json):
        if target.is_description(environment):
            diagnosis = adopted.examine(Path(environment.partition("#")[0]))
        else:
            diagnosis = examine.examine(target.find(environment))
    if as_json:
        typer.echo(examine.as_json(diagnosis))
    else:
        terminal.show_findings(diagnosis.findings, console, examine.verdict(diagnosis))
    raise typer.Exit(diagnosis.exit_code)


@app.command(epilog=examples("incidents prod --all", "incidents verify prod"))
def incidents(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="An environment, or verify.")],
    histories: Annotated[
        str | None,
        typer.Argument(help="With verify: an environment, or a file or folder of the archive."),
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again, until Ctrl-C.")] = False,
    as_json: AsJsonLines = False,
) -> None:
    """List what is going on with this cluster's instances.

    `incidents verify ENV`, or with a file or folder of archived incidents, judges the record by
    eight rules. It names the first step that breaks one.
    """
    from cli import incidents as command

    if environment == "verify" and histories is not None:
        command.verify(histories, console, as_json=as_json)
        return
    if histories is not None:
        raise typer.BadParameter(f"{histories!r} is one too many; only `verify` takes it.")
    command.show_all(environment, console, closed=everything, watch=watch, as_json=as_json)


@incident.command(
    "show",
    epilog=examples(
        "incident show prod i-0123456789abcdef0", "incident show prod i-0123456789abcdef0 --json"
    ),
)
def incident_show(
    environment: Environment, incident_id: Instance, *, as_json: AsJson = False
) -> None:
    """Show one incident: everything that happened, who did it and why."""
    from cli import incidents as command

    command.show_one(environment, incident_id, console, as_json=as_json)


@app.command(epilog=examples("desk prod", "desk prod --port 8080"))
def desk(
    environment: Environment,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On loopback; 0: any that is free.")
    ] = 0,
) -> None:
    """Open a page on this machine that shows it all and takes hold, release, pause."""
    from cli.desk import server

    server.serve_desk(environment, port, console)


REFUSED = 2
existing_app = typer.Typer()
adopt = typer.Typer(cls=Commands, help="Clusters that exist.", no_args_is_help=True)
existing_app.add_typer(adopt, name="adopt")


@existing_app.command(
    epilog=examples("survey --html survey.html", "survey --context prod --adopt shop.yaml")
)
def survey(
    *,
    context: Annotated[str | None, typer.Option(help="A context of the kubeconfig.")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Else KUBECONFIG's files.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Kafkas of this one alone.")] = None,
    region: Annotated[str | None, typer.Option(help="Else the one the nodes name.")] = None,
    profile: Annotated[str | None, typer.Option(help="An AWS profile.")] = None,
    as_json: AsJson = False,
    html: Annotated[Path | None, typer.Option(help="Also a page, for decision makers.")] = None,
    describe: Annotated[
        Path | None, typer.Option("--adopt", help="Also a description, for `adopt plan`.")
    ] = None,
) -> None:
    """Find dangers for brokers and producers on any EKS cluster with Strimzi.

    Needs no stack and no spec. Reads, and changes nothing.

    Exit code 0: no problem, 1: a problem, 2: a part of it, or all, could not be read.
    """
    from cli import terminal
    from cli.survey import command
    from core.checks.finding import NOT_READ

    with terminal.refusals(NOT_READ, as_json=as_json):
        done = command.examine(
            context=context,
            kubeconfig=kubeconfig,
            namespace=namespace,
            region=region,
            profile=profile,
        )
        command.write_files(done, html, describe)
        for sentence in done.refusals if describe is not None else ():
            said = f"{describe} cannot be used as it is: {sentence}"
            complaints.print(said, style="yellow")
    if as_json:
        typer.echo(command.as_json(done))
    else:
        terminal.show_findings(done.findings, console, command.verdict(done))
    raise typer.Exit(done.exit_code)


@adopt.callback()
def _adopt() -> None:
    """Keep `adopt plan` two words."""


@adopt.command(epilog=examples("adopt plan shop.yaml", "adopt plan shop.yaml lab.yaml --json"))
def plan(
    descriptions: Annotated[list[Path], typer.Argument(help="Written by `survey --adopt`.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Say in words and as a diff what the next level adds, and how to leave it again.

    Reads no account and changes nothing. Exit code 2: a description cannot be used.
    """
    from cli import adopt as command
    from cli import terminal

    with terminal.refusals(REFUSED, as_json=as_json):
        described = command.read(descriptions)
    if as_json:
        terminal.write(command.as_json(described))
    else:
        command.show_all(described, console)
