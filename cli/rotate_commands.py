"""The options of `stillwater rotate ...`; cli.rotate does what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import AsJson, Environment
from cli.commands import Commands
from cli.terminal import Terminal

rotate = typer.Typer(
    cls=Commands, help="New instances for Kafka's nodes, one by one.", no_args_is_help=True
)
console = Terminal()

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
        help="Also with a node that recovers its logs: it begins anew on the next one.",
    ),
]
AcceptUnavailable = Annotated[
    bool, typer.Option("--accept-unavailable", help="Also where a topic cannot be kept up.")
]
AcknowledgeErrors = Annotated[
    bool, typer.Option("--acknowledge-errors", help="Metadata errors counted by now are known.")
]


@rotate.command("plan")
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
    sample: Annotated[float, typer.Option(help="Seconds to watch the logs grow; 0: not.")] = 5.0,
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
        at_once=command.at_once_of(at_once),
        in_place=in_place,
        any_time=any_time,
        selection=command.selection(
            everything=everything, node_ids=node or [], pools=pool or [], zones=zone or []
        ),
    )


@rotate.command("start")
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
    from cli import moments
    from cli import rotate as command

    command.start(
        environment,
        console,
        watch=watch,
        selection=command.selection(
            everything=everything, node_ids=node or [], pools=pool or [], zones=zone or []
        ),
        deadline_seconds=moments.seconds_of(deadline, "--deadline"),
        at_once=command.at_once_of(at_once),
        in_place=in_place,
        any_time=any_time,
        even_recovering=even_recovering,
        accept_unavailable=accept_unavailable,
        acknowledge_errors=acknowledge_errors,
    )


@rotate.command("status")
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


@rotate.command("pause")
def rotate_pause(environment: Environment) -> None:
    """Begin with no further node; who is away comes back first."""
    from cli import rotate as command

    command.send_command(environment, "pause", console)


@rotate.command("resume")
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
        at_once=command.at_once_of(at_once),
        any_time=any_time,
        even_recovering=even_recovering,
        accept_unavailable=accept_unavailable,
        acknowledge_errors=acknowledge_errors,
    )


@rotate.command("abort")
def rotate_abort(environment: Environment) -> None:
    """End the run: who has not left stays, who is away comes back."""
    from cli import rotate as command

    command.send_command(environment, "abort", console)
