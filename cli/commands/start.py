"""The commands that start a cluster and change it: a directory, a check, the layers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.options import AsJson, Environment, OwnEnvironment, complaints, console, examples
from cli.terminal import Terminal

app = typer.Typer()

Spec = Annotated[
    Path, typer.Argument(help="A ClusterSpec, YAML or JSON; or an environment that names one.")
]
Layer = Annotated[
    list[str] | None, typer.Option("--layer", help="This layer alone; may be repeated.")
]
Target = Annotated[
    list[str] | None, typer.Option("--target", help="A resource of that layer, by name or URN.")
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="First ask AWS and Kubernetes what is really there.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; for machines.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show the values that differ.")]


@app.command(
    epilog=examples(
        "init kafka --region us-east-1",
        "init . --environment staging --region eu-west-1",
        "init . --fleet",
    )
)
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
        str | None,
        typer.Option(help="The stacks' provider, such as awskms://alias/NAME?region=REGION."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    fleet: Annotated[
        bool, typer.Option("--fleet", help="Write fleet.yaml of what is there, and a workflow.")
    ] = False,
) -> None:
    """Write a directory of your own: the description of a cluster, its stacks, a README, CI.

    Sizes follow from the produced bytes. On a terminal it asks for missing options.
    """
    from cli.project import fleet as fleets
    from cli.project import init as command
    from cli.project import release

    if fleet:
        fleets.init_fleet(directory, Terminal(), force=force)
        return

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
    command.init(directory, given, Terminal(), came=release.installed_release(), force=force)


@app.command(epilog=examples("check prod", "check clusters/prod.yaml --against clusters/old.yaml"))
def check(
    spec: Spec,
    *,
    against: Annotated[
        Path | None,
        typer.Option(
            help="The ClusterSpec a cluster runs by: what it could not follow is refused."
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a ClusterSpec: shape, names, timeouts against each other, AWS's limits. No account.

    For a cluster that exists, name its description: FILE.yaml.

    Exit code 0: no problem, 1: a problem, or --strict and a warning.
    """
    from cli import check as command

    checked = command.examine(spec, against)
    if not as_json:
        command.show(checked, console, complaints, strict=strict)
    else:
        typer.echo(command.as_json(checked))
    raise typer.Exit(checked.exit_code(strict=strict))


@app.command(epilog=examples("preflight prod", "preflight prod --json"))
def preflight(environment: Environment, *, as_json: AsJson = False) -> None:
    """Ask an account what it would refuse of an environment. Reads, and changes nothing.

    Exit code 0: no refusal, 1: a refusal, 2: a part could not be read.
    """
    from cli import target, terminal
    from cli.preflight import command
    from core.checks.finding import NOT_READ

    with terminal.refusals(NOT_READ, as_json=as_json):
        done = command.examine(target.find(environment), complaints)
    if as_json:
        typer.echo(command.as_json(done))
    else:
        terminal.show_findings(done.findings, console, command.verdict(done))
    raise typer.Exit(done.exit_code)


@app.command(epilog=examples("preview prod", "preview prod --layer kafka --diff"))
def preview(
    environment: OwnEnvironment,
    *,
    layer: Layer = None,
    target: Target = None,
    refresh: Refresh = False,
    diff: Diff = False,
    as_json: AsJson = False,
) -> None:
    """Show what `up` would change, resource by resource, and change nothing."""
    from cli import provision

    wanted = provision.parse_targets(
        layer or (), target or (), refresh=refresh, yes=False, diff=diff, as_json=as_json
    )
    provision.preview(environment, complaints if as_json else console, wanted)


@app.command(epilog=examples("up prod", "up prod --layer kafka --target 'nodes-*'"))
def up(
    environment: OwnEnvironment,
    *,
    layer: Layer = None,
    target: Target = None,
    refresh: Refresh = False,
    yes: Yes = False,
    diff: Diff = False,
    skip_preflight: Annotated[
        bool, typer.Option("--skip-preflight", help="Do not ask the account first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what would change, ask, and bring every layer up in order.

    First it asks the account what it would refuse, as `preflight` does.
    """
    from cli import provision
    from cli import target as targets
    from cli.preflight import command

    wanted = provision.parse_targets(
        layer or (), target or (), refresh=refresh, yes=yes, diff=diff, as_json=as_json
    )
    people = complaints if as_json else console
    if skip_preflight:
        complaints.print("The account was not asked first: --skip-preflight.", style="yellow")
    else:
        command.stop_refused_up(targets.find_described(environment), people)
    provision.up(environment, people, wanted)


@app.command(epilog=examples("destroy try", "destroy try --layer analytics"))
def destroy(
    environment: OwnEnvironment, *, layer: Layer = None, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Say what would go, ask for the environment's name, and remove every layer, last first.

    An ephemeral environment's volumes go with it.
    """
    from cli import provision

    wanted = provision.parse_targets(
        layer or (), (), refresh=False, yes=yes, diff=False, as_json=as_json
    )
    provision.destroy(environment, complaints if as_json else console, wanted)


@app.command(epilog=examples("upgrade", "upgrade --write"))
def upgrade(
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Name the installed release in requirements.txt.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what changes here between the release that requirements.txt names and the installed."""
    from cli import terminal
    from cli.project import release

    done = release.upgrade(write=write)
    if as_json:
        terminal.write(done.as_json())
        return
    for sentence in done.sentences():
        console.print(sentence)
