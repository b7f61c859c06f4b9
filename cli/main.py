"""The `stillwater` command: every group of commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands import act, fleet, look, money, start
from cli.commands.options import Commands

# As `--help` lists them.
GROUPS = {
    "Start": start.app,
    "Look": look.app,
    "Act": act.app,
    "Clusters that exist": look.existing_app,
    "Money": money.app,
    "Fleets": fleet.app,
}

app = typer.Typer(
    cls=Commands,
    help="Keeps Kafka on EKS available while its nodes come and go.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Plain help: boxes cut words in a narrow window, and mean nothing to a screen reader or a log.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for heading, group in GROUPS.items():
    for command in group.registered_commands:
        command.rich_help_panel = heading
    for below in group.registered_groups:
        below.rich_help_panel = heading
    app.registered_commands += group.registered_commands
    app.registered_groups += group.registered_groups


def _version(*, asked: bool) -> None:
    if asked:
        from cli.project import release  # noqa: PLC0415 - the other commands need no release

        typer.echo(f"stillwater {release.installed_release().version}")
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
