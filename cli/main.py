"""The `stillwater` command: the composition root, where every part is put together."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from cli import incident_commands, price_commands, reporting
from cli.adopt_commands import adopt, survey
from cli.arguments import AsJson, Environment
from cli.commands import Commands
from cli.project import commands as project_commands
from cli.rotate_commands import rotate
from cli.terminal import Terminal
from cli.volume_commands import volumes
from cli.zone_commands import zones

app = typer.Typer(
    cls=Commands,
    help="Keeps Kafka on EKS available while its nodes come and go.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help: boxes cut words in a narrow window, and mean nothing to a screen reader or a log.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
project_commands.register(app)
app.command("report")(reporting.report_on)
app.add_typer(reporting.prices, name="prices")
app.add_typer(incident_commands.incident, name="incident")
price_commands.register(reporting.prices)
app.add_typer(volumes, name="volumes")
app.add_typer(rotate, name="rotate")
app.add_typer(zones, name="zones")
app.add_typer(adopt, name="adopt")
app.command()(survey)
console = Terminal()
complaints = Terminal(stderr=True)


def _version(*, asked: bool) -> None:
    if asked:
        from cli.project import origin

        typer.echo(f"stillwater {origin.read().version}")
        raise typer.Exit


@app.callback()
def everywhere(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say which and stop."),
    ] = False,
) -> None:
    """Keeps Kafka on EKS available while its nodes come and go."""


Layer = Annotated[
    list[str] | None, typer.Option("--layer", help="This layer alone; may be said again.")
]
Target = Annotated[
    list[str] | None, typer.Option("--target", help="A resource of that layer, by name or URN.")
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="First ask AWS and Kubernetes what is really there.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; for machines.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show the values that differ.")]


@app.command()
def up(  # noqa: PLR0913 - an option is an argument
    environment: Environment,
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

    First the account is asked what it would refuse, as by `preflight`.
    """
    from cli import provision

    wanted = provision.parse_targets(
        layer or (), target or (), refresh=refresh, yes=yes, diff=diff, as_json=as_json
    )
    people = complaints if as_json else console
    _ask_first(environment, people, skip=skip_preflight)
    provision.up(environment, people, wanted)


def _ask_first(environment: str, people: Terminal, *, skip: bool) -> None:
    from cli import target
    from cli.preflight import command

    if skip:
        complaints.print("The account was not asked first: --skip-preflight.", style="yellow")
        return
    command.before_up(target.of_environment(environment), people)


@app.command()
def preflight(
    environment: Environment,
    *,
    as_json: AsJson = False,
) -> None:
    """Ask an account what it would refuse of an environment. Reads, and changes nothing.

    Exit code 0: nothing stands in the way; 1: something does; 2: a part could not be asked.
    """
    from cli import answer, target
    from cli.preflight import command
    from core.preflight.judge import NOT_ASKED

    with answer.refusals(NOT_ASKED, as_json=as_json):
        done = command.examine(target.of(environment), complaints)
    if as_json:
        typer.echo(command.as_json(done))
    else:
        command.show(done, console)
    raise typer.Exit(done.exit_code)


@app.command()
def preview(
    environment: Environment,
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
    people = complaints if as_json else console
    provision.preview(environment, people, wanted)


@app.command()
def destroy(
    environment: Environment, *, layer: Layer = None, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Say what would go, ask for the environment's name, and remove every layer, last first.

    An ephemeral environment's volumes go with it.
    """
    from cli import provision

    wanted = provision.parse_targets(
        layer or (), (), refresh=False, yes=yes, diff=False, as_json=as_json
    )
    people = complaints if as_json else console
    provision.destroy(environment, people, wanted)


Spec = Annotated[
    Path, typer.Argument(help="A ClusterSpec, YAML or JSON; or an environment that names one.")
]


@app.command()
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

    Of a cluster that exists, name its description: FILE.yaml.

    Exit code 0: it is consistent; 1: it is not, or --strict and something is doubtful.
    """
    from cli import check as command

    checked = command.examine(spec, against)
    if not as_json:
        command.show(checked, console, complaints, strict=strict)
        return
    typer.echo(command.as_json(checked))
    if checked.wrong(strict=strict):
        raise typer.Exit(1)


@app.command()
def doctor(
    environment: Environment,
    *,
    as_json: AsJson = False,
) -> None:
    """Say where the live account and cluster differ from their spec. Reads, and changes nothing.

    Of a cluster that exists, name its description: FILE.yaml.

    Exit code 0: nothing differs; 1: something does; 2: a part of it, or all, could not be read.
    """
    from cli import answer, described, target
    from cli.doctor import adopted, examine, report

    # Not the usual 1, which says that something was read and differs.
    with answer.refusals(examine.NOT_READ, as_json=as_json):
        if described.is_meant(environment):
            diagnosis = adopted.examine(Path(environment))
        else:
            diagnosis = examine.examine(target.of(environment))
    if as_json:
        typer.echo(report.as_json(diagnosis))
    else:
        report.show(diagnosis, console)
    raise typer.Exit(diagnosis.exit_code)


@app.command()
def health(
    environment: Environment,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Again and again, until Ctrl-C.")] = False,
) -> None:
    """Say how the whole cluster does, and why: quorum, partitions, nodes, pods, Connect, incidents.

    Exit code 0: healthy; 1: starting or degraded; 2: unhealthy, or nobody can tell.
    """
    from cli import answer
    from cli import health as command

    with answer.refusals(command.UNHEALTHY, as_json=as_json):
        code = command.show(environment, console, watch=watch, as_json=as_json)
    raise typer.Exit(code)


@app.command()
def estimate(
    spec: Spec,
    prices: Annotated[
        Path | None, typer.Option(help="A price file shaped like core/prices.json.")
    ] = None,
    produce_mib_per_s: Annotated[
        float, typer.Option(help="What clients produce, all together.")
    ] = 0,
    readers: Annotated[float, typer.Option(help="Consumer groups that read each byte.")] = 1,
    filled: Annotated[float, typer.Option(help="Share of the volumes that holds data.")] = 0.5,
    log_gib_per_day: Annotated[float, typer.Option(help="Control plane logs.")] = 0.5,
    *,
    as_json: AsJson = False,
) -> None:
    """Say what a cluster costs a month at list price, and what that assumes."""
    from cli import estimate as rendered
    from cli.project import found
    from cli.stack_settings import spec_file
    from core.cluster import estimate as counted
    from infra.spec import read

    parsed = read(spec_file(spec))
    given = (produce_mib_per_s, readers, filled, log_gib_per_day)
    usage = counted.Usage(*(Decimal(repr(number)) for number in given))
    result = counted.monthly(parsed, found.prices(parsed.region, prices), usage)
    if as_json:
        typer.echo(rendered.as_json(result, usage))
        return
    console.print(rendered.table(result))
    for note in rendered.notes(result, usage):
        console.print(note)


incident_commands.register(app)
