"""The commands that act: on one instance, on everything, on nodes, volumes and zones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.commands.options import AsJson, AsJsonLines, Commands, Environment, console, examples

if TYPE_CHECKING:
    from core.rotation.rebalance import Mode

app = typer.Typer()

Instance = Annotated[str, typer.Argument(help="An EC2 instance id, or an incident's id.")]


@app.command(
    epilog=examples(
        "hold prod i-0123456789abcdef0 --until 2h",
        "hold prod i-0123456789abcdef0 --until 2026-11-20T18:00",
    )
)
def hold(
    environment: Environment,
    instance: Instance,
    until: Annotated[str, typer.Option(help="90min, 2h, 1d, or a time such as 2026-11-20T18:00.")],
) -> None:
    """Keep an instance until a moment: nothing of it is drained before."""
    from cli import incidents as command
    from cli.target import Cluster

    console.print(command.hold_instance(Cluster.named(environment), instance, until))


@app.command(
    epilog=examples("release prod i-0123456789abcdef0", "release shop.yaml i-0123456789abcdef0")
)
def release(environment: Environment, instance: Instance) -> None:
    """Let an instance go without a replacement and without Kafka's consent; drained first."""
    from cli import incidents as command
    from cli.target import Cluster

    console.print(command.release_instance(Cluster.named(environment), instance))


@app.command(
    epilog=examples(
        "ignore prod i-0123456789abcdef0 --because 'tested by hand'",
        "ignore local i-0123456789abcdef0 --because practice",
    )
)
def ignore(
    environment: Environment,
    incident_id: Instance,
    because: Annotated[str, typer.Option(help="Why; it is kept with the incident.")],
) -> None:
    """End an incident without doing anything about it."""
    from cli import incidents as command
    from cli.target import Cluster

    console.print(command.ignore_incident(Cluster.named(environment), incident_id, because))


@app.command(
    epilog=examples(
        "pause prod --because 'the network is rebuilt'",
        "pause prod --because maintenance --until 4h",
    )
)
def pause(
    environment: Environment,
    because: Annotated[str, typer.Option(help="Why; people who find it paused read it.")],
    until: Annotated[
        str | None, typer.Option(help="90min, 4h, 1d, or a time; left out: until `resume`.")
    ] = None,
) -> None:
    """Stop on purpose: nothing new is drained or terminated, hooks keep beating."""
    from cli import incidents as command
    from cli.target import Cluster

    console.print(command.pause(Cluster.named(environment), because, until))


@app.command(epilog=examples("resume prod", "resume shop.yaml"))
def resume(environment: Environment) -> None:
    """Go on after a pause."""
    from cli import incidents as command
    from cli.target import Cluster

    console.print(command.resume(Cluster.named(environment)))


Brokers = Annotated[
    list[int] | None,
    typer.Option("--broker", help="Its id; repeatable. Without: those the description changes."),
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Show the plan, and move nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Agree to the plan beforehand.")]


@app.command(epilog=examples("grow prod --plan", "grow prod --broker 11 --broker 21"))
def grow(
    environment: Environment, broker: Brokers = None, *, plan: PlanOnly = False, yes: Yes = False
) -> None:
    """Add the brokers of the description, with their share; a second run goes on."""
    _move(environment, "add-brokers", broker or (), plan_only=plan, yes=yes)


@app.command(epilog=examples("shrink prod --plan", "shrink prod --broker 31 --yes"))
def shrink(
    environment: Environment, broker: Brokers = None, *, plan: PlanOnly = False, yes: Yes = False
) -> None:
    """Empty brokers that the description leaves out, and remove them; a second run goes on."""
    _move(environment, "remove-brokers", broker or (), plan_only=plan, yes=yes)


def _move(
    environment: str, mode: Mode, brokers: Sequence[int], *, plan_only: bool, yes: bool
) -> None:
    from cli import grow as command
    from cli.provision import up

    growth = command.Growth.named(environment, mode, brokers)
    command.run(growth, console, partial(up, environment, console), plan_only=plan_only, yes=yes)


rotate = typer.Typer(
    cls=Commands, help="New instances for Kafka's nodes, one by one.", no_args_is_help=True
)
app.add_typer(rotate, name="rotate")

Everything = Annotated[bool, typer.Option("--all", help="Every Kafka node, outdated or not.")]
Nodes = Annotated[list[int] | None, typer.Option("--node", help="A Kafka node id; repeatable.")]
Pools = Annotated[list[str] | None, typer.Option("--pool", help="A pool's nodes; repeatable.")]
Zones = Annotated[list[str] | None, typer.Option("--zone", help="A zone's nodes; repeatable.")]
AtOnce = Annotated[
    str,
    typer.Option(
        "--at-once", metavar="N|zone", help="Brokers of one zone that go together, or all that may."
    ),
]
InPlace = Annotated[
    bool,
    typer.Option("--in-place", help="Instances stay and get a new root volume, where they can."),
]
Page = Annotated[
    Path | None, typer.Option("--page", help="Also as a page: a bar for each node, in this file.")
]
AnyTime = Annotated[bool, typer.Option("--any-time", help="Also outside the maintenance window.")]
EvenRecovering = Annotated[
    bool,
    typer.Option(
        "--even-recovering",
        help="Also with a node that recovers its logs: the recovery begins again on the next one.",
    ),
]
AcceptUnavailable = Annotated[
    bool, typer.Option("--accept-unavailable", help="Also where a topic cannot be kept up.")
]
AcknowledgeErrors = Annotated[
    bool, typer.Option("--acknowledge-errors", help="Metadata errors counted by now are known.")
]


@rotate.command(
    "plan", epilog=examples("rotate plan prod", "rotate plan prod --pool broker --page plan.html")
)
def rotate_plan(
    environment: Environment,
    *,
    everything: Everything = False,
    node: Nodes = None,
    pool: Pools = None,
    zone: Zones = None,
    at_once: AtOnce = "1",
    in_place: InPlace = False,
    any_time: AnyTime = False,
    sample: Annotated[
        float, typer.Option(min=0, max=600, help="Seconds to watch the logs grow; 0: not.")
    ] = 5.0,
    as_json: AsJson = False,
    page: Page = None,
) -> None:
    """Say what a rotation would do: order, time, bytes, what blocks it. Changes nothing."""
    from cli import rotate as command

    command.show_plan(
        environment,
        console,
        as_json=as_json,
        sample_seconds=sample,
        page=page,
        at_once=command.parse_at_once(at_once),
        in_place=in_place,
        any_time=any_time,
        selection=command.selection(
            everything=everything, node_ids=node or [], pools=pool or [], zones=zone or []
        ),
    )


@rotate.command(
    "start",
    epilog=examples(
        "rotate start prod --watch", "rotate start prod --node 10 --node 11 --any-time"
    ),
)
def rotate_start(
    environment: Environment,
    *,
    everything: Everything = False,
    node: Nodes = None,
    pool: Pools = None,
    zone: Zones = None,
    at_once: AtOnce = "1",
    in_place: InPlace = False,
    any_time: AnyTime = False,
    deadline: Annotated[str, typer.Option(help="For one node: 45min, 2h.")] = "60min",
    even_recovering: EvenRecovering = False,
    accept_unavailable: AcceptUnavailable = False,
    acknowledge_errors: AcknowledgeErrors = False,
    watch: Annotated[bool, typer.Option("--watch", help="Until the run stands still.")] = False,
) -> None:
    """Replace the instances of outdated nodes, or of those named, in a safe order.

    With --in-place only their root volumes, where nothing speaks against it.
    """
    from cli import rotate as command
    from cli import terminal

    command.start(
        environment,
        console,
        watch=watch,
        selection=command.selection(
            everything=everything, node_ids=node or [], pools=pool or [], zones=zone or []
        ),
        deadline_seconds=terminal.seconds_of(deadline, "--deadline"),
        at_once=command.parse_at_once(at_once),
        in_place=in_place,
        any_time=any_time,
        even_recovering=even_recovering,
        accept_unavailable=accept_unavailable,
        acknowledge_errors=acknowledge_errors,
    )


@rotate.command("status", epilog=examples("rotate status prod", "rotate status prod --watch"))
def rotate_status(
    environment: Environment,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Until the run stands still.")] = False,
    as_json: AsJson = False,
    page: Page = None,
) -> None:
    """Say how far the run is, or how the last one ended."""
    from cli import rotate as command

    command.show(environment, console, watch=watch, as_json=as_json, page=page)


@rotate.command("pause", epilog=examples("rotate pause prod", "rotate pause shop.yaml"))
def rotate_pause(environment: Environment) -> None:
    """Begin with no further node; who is away comes back first."""
    from cli import rotate as command

    command.send_command(environment, "pause", console)


@rotate.command("resume", epilog=examples("rotate resume prod", "rotate resume prod --skip"))
def rotate_resume(
    environment: Environment,
    *,
    skip: Annotated[bool, typer.Option("--skip", help="Leave the node it stopped at.")] = False,
    at_once: Annotated[
        str | None,
        typer.Option("--at-once", metavar="N|zone", help="As for start; without it, as it was."),
    ] = None,
    any_time: AnyTime = False,
    even_recovering: EvenRecovering = False,
    accept_unavailable: AcceptUnavailable = False,
    acknowledge_errors: AcknowledgeErrors = False,
) -> None:
    """Go on after a pause or a stop; every node has its whole deadline again."""
    from cli import rotate as command

    command.send_command(
        environment,
        "resume",
        console,
        skip=skip,
        at_once=command.parse_at_once(at_once),
        any_time=any_time,
        even_recovering=even_recovering,
        accept_unavailable=accept_unavailable,
        acknowledge_errors=acknowledge_errors,
    )


@rotate.command("abort", epilog=examples("rotate abort prod", "rotate abort shop.yaml"))
def rotate_abort(environment: Environment) -> None:
    """End the run: who has not left stays, who is away comes back."""
    from cli import rotate as command

    command.send_command(environment, "abort", console)


volumes = typer.Typer(cls=Commands, help="Kafka's volumes: what they need.", no_args_is_help=True)
app.add_typer(volumes, name="volumes")


@volumes.command("plan", epilog=examples("volumes plan prod", "volumes plan prod --json"))
def volumes_plan(environment: Environment, *, as_json: AsJson = False) -> None:
    """Say what the volumes need and what it costs; nothing is changed."""
    from cli import volumes as command
    from cli.target import Cluster

    command.plan(Cluster.named(environment), console, as_json=as_json)


@volumes.command("apply", epilog=examples("volumes apply prod", "volumes apply prod --json"))
def volumes_apply(environment: Environment, *, as_json: AsJson = False) -> None:
    """Do now what the plan says, where volumes.mode is apply."""
    from cli import volumes as command
    from cli.target import Cluster

    command.apply(Cluster.named(environment), console, as_json=as_json)


@volumes.command(
    "history",
    epilog=examples("volumes history prod", "volumes history prod data-0-orders-broker-a-10"),
)
def volumes_history(
    environment: Environment,
    claim: Annotated[str | None, typer.Argument(help="One claim; none: all.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List the modifications of the volumes, and how many are left of today's four."""
    from cli import volumes as command
    from cli.target import Cluster

    command.history(Cluster.named(environment), console, time.time(), claim, as_json=as_json)


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
app.add_typer(zones, name="zones")

Zone = Annotated[str, typer.Argument(help="A zone's name (us-east-1a) or id (use1-az4).")]
Because = Annotated[str, typer.Option(help="Why; it is kept with the incident.")]


@zones.command(LIST, epilog=examples("zones list prod", "zones list prod --all"))
def zones_list(
    environment: Environment,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    as_json: AsJsonLines = False,
) -> None:
    """List the zones that AWS or our own nodes say are in trouble, and what is frozen."""
    from cli import zones as command

    command.show_zones(environment, console, closed=everything, as_json=as_json)


@zones.command(
    "freeze",
    epilog=examples(
        "zones freeze prod us-east-1a --until 4h",
        "zones freeze prod use1-az4 --until 1d --because 'packets are lost'",
    ),
)
def zones_freeze(
    environment: Environment,
    zone: Zone,
    until: Annotated[str, typer.Option(help="90min, 4h, 1d, or a time such as 2026-11-20T18:00.")],
    because: Because = "",
) -> None:
    """Leave a zone alone until a moment: nothing is planned there, its leaders move away."""
    from cli import zones as command

    command.freeze(environment, zone, until, because, console)


@zones.command(
    "thaw",
    epilog=examples(
        "zones thaw prod us-east-1a", "zones thaw prod use1-az4 --because 'it is well again'"
    ),
)
def zones_thaw(environment: Environment, zone: Zone, because: Because = "") -> None:
    """End every freeze of a zone, whatever AWS goes on saying about the same events."""
    from cli import zones as command

    command.thaw(environment, zone, because, console)
