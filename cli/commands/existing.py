"""The commands for clusters that exist: the survey, and what the next level of adoption adds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.options import AsJson, Commands, complaints, console, examples

REFUSED = 2
app = typer.Typer()
adopt = typer.Typer(cls=Commands, help="Clusters that exist.", no_args_is_help=True)
app.add_typer(adopt, name="adopt")


@app.command(
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
    html: Annotated[Path | None, typer.Option(help="Also a page, for whoever decides.")] = None,
    describe: Annotated[
        Path | None, typer.Option("--adopt", help="Also a description, for `adopt plan`.")
    ] = None,
) -> None:
    """Say of any EKS cluster with Strimzi what would let a broker die or a producer stall.

    Needs no stack and no spec. Reads, and changes nothing. Exit code 0: nothing that hurts was
    found; 1: something was; 2: a part of it, or all, could not be read.
    """
    from cli import answer
    from cli.survey import command
    from core.checks.finding import NOT_READ

    with answer.refusals(NOT_READ, as_json=as_json):
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
        command.show(done, console)
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
    from cli import answer

    with answer.refusals(REFUSED, as_json=as_json):
        described = command.read(descriptions)
    if as_json:
        answer.write(command.as_json(described))
    else:
        command.show_all(described, console)
