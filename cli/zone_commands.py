"""The options of `stillwater zones ...`; cli.zones does what they say."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.arguments import Environment
from cli.commands import Commands
from cli.terminal import Terminal

LIST = "list"


class Listing(Commands):
    """Lists where no other command is named: `stillwater zones ENV`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = next((word for word in args if not word.startswith("-")), None)
        if named is not None and named not in self.commands:
            args = [LIST, *args]
        return super().parse_args(ctx, args)


zones = typer.Typer(
    cls=Listing, help="Zones in trouble: list them, freeze one, thaw one.", no_args_is_help=True
)
console = Terminal()

Zone = Annotated[str, typer.Argument(help="A zone's name (us-east-1a) or id (use1-az4).")]
Because = Annotated[str, typer.Option(help="Why; it is kept with the incident.")]


@zones.command(LIST)
def zones_list(
    environment: Environment,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List the zones that AWS or our own nodes say are in trouble, and what is frozen."""
    from cli import zones as command

    command.show_zones(environment, console, closed=everything, as_json=as_json)


@zones.command("freeze")
def zones_freeze(
    environment: Environment,
    zone: Zone,
    until: Annotated[str, typer.Option(help="90min, 4h, 1d, or a time such as 2026-11-20T18:00.")],
    because: Because = "",
) -> None:
    """Leave a zone alone until a moment: nothing is planned there, its leaders move away."""
    from cli import zones as command

    command.freeze(environment, zone, until, because, console)


@zones.command("thaw")
def zones_thaw(environment: Environment, zone: Zone, because: Because = "") -> None:
    """End every freeze of a zone, whatever AWS goes on saying about the same events."""
    from cli import zones as command

    command.thaw(environment, zone, because, console)
