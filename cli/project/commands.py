"""`stillwater init` and `stillwater upgrade`: what they are told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import AsJson
from cli.terminal import Terminal


def register(app: typer.Typer) -> None:
    """Add the commands, each under its own name."""
    app.command()(init)
    app.command()(upgrade)


def init(
    directory: Annotated[Path, typer.Argument(help="Where it goes; new, or one you have.")],
    *,
    name: Annotated[str | None, typer.Option(help="Kafka's name.")] = None,
    environment: Annotated[str | None, typer.Option(help="Such as prod, the default.")] = None,
    region: Annotated[str | None, typer.Option(help="An AWS region.")] = None,
    zones: Annotated[str | None, typer.Option(help="us-east-1a,us-east-1b,us-east-1c")] = None,
    brokers: Annotated[int | None, typer.Option(help="In all; as many per zone.")] = None,
    produce_mib_per_s: Annotated[
        float | None, typer.Option(help="What clients produce at the peak, all together.")
    ] = None,
    readers: Annotated[
        float | None, typer.Option(help="Consumer groups that read each byte.")
    ] = None,
    retention_hours: Annotated[int | None, typer.Option(help="How long records stay.")] = None,
    vpc_cidr: Annotated[str, typer.Option(help="The VPC's block.")] = "10.40.0.0/16",
    secrets_provider: Annotated[
        str | None, typer.Option(help="Of the stacks, such as awskms://alias/NAME?region=REGION.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Write a directory of your own: the description of a cluster, its stacks, a README, CI.

    Sizes follow from what is produced. People on a terminal are asked what is not given.
    """
    from cli.project import command, origin

    given = command.Given(
        name=name,
        environment=environment,
        region=region,
        zones=zones,
        brokers=brokers,
        produce_mib_per_s=produce_mib_per_s,
        readers=readers,
        retention_hours=retention_hours,
        vpc_cidr=vpc_cidr,
        secrets_provider=secrets_provider,
    )
    command.init(directory, given, Terminal(), came=origin.read(), force=force)


def upgrade(
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Name the installed release in requirements.txt.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what changes here between the release that requirements.txt names and the installed."""
    from cli import answer
    from cli.project import release

    done = release.upgrade(write=write)
    if as_json:
        answer.write(done.as_json())
        return
    people = Terminal()
    for sentence in done.sentences():
        people.print(sentence)
