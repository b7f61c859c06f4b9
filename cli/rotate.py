"""`stillwater rotate plan|start|status|pause|resume|abort`: a rotation run, for people.

λ rotate is asked for everything that is decided, so nobody needs a way to the brokers; how far the
run is is read from the ledger.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from cli.incidents import Desk
from cli.invoking import Shape, has, invoke, unreadable
from cli.page_files import write_page
from cli.rotate_page import plan_page, run_page
from cli.rotate_plan import render_plan
from cli.watching import Pace, watch
from core import naming
from core.errors import InvalidInput, StillwaterError
from core.rotation.run_record import Phase, Run, RunState, run_to_document
from core.slack.rotation_thread import PHASES
from core.words import span, time_said
from handlers.store.runs import LedgerRuns

PACE = Pace(seconds=2.0)
_MOVING = frozenset({RunState.RUNNING})


# What is shown of an answer, of a plan in it, and of each node of that.
SHOWN: Shape = {"said": str}
PLAN: Shape = {
    "seconds": int | float,
    **dict.fromkeys(("nodes", "notes", "too_long", "unavailable"), list),
}
NODE: Shape = {
    **dict.fromkeys(("role", "zone", "instance_id", "why"), str),
    **dict.fromkeys(("node_id", "batch"), int),
    "seconds": int | float,
    "resync_bytes": int | float | None,
    "objections": list,
}


def _is_whole(told: Mapping[str, Any], command: str) -> bool:
    """Say whether an answer has what is shown of a command."""
    if command == "held":
        return has(told, {"held": dict})
    plan = told.get("plan")
    if plan is None:
        return command != "plan"
    return has(plan, PLAN) and all(has(each, NODE) for each in plan["nodes"])


@dataclass(frozen=True)
class Rotor:
    """The rotation runs of one environment, as the caller."""

    desk: Desk

    def ask(self, command: str, **said: Any) -> Mapping[str, Any]:
        """Ask λ rotate; raises InvalidInput with what it objects to."""
        event = {"command": command, "actor": self.desk.actor, **said}
        told = invoke(self.desk, "rotate", event)
        if has(told, {"problems": list}) and told["problems"]:
            raise InvalidInput(map(str, told["problems"]))
        if not (has(told, SHOWN) and _is_whole(told, command)):
            raise unreadable(naming.function(self.desk.spec.prefix, "rotate"))
        return told

    def run(self) -> Run | None:
        """Return the run that goes on, or the last one."""
        return LedgerRuns(self.desk.records, self.desk.spec.name).current()

    def known_run(self) -> Run:
        """Return the run that goes on, or the last one; raises StillwaterError without any."""
        run = self.run()
        if run is None:
            raise StillwaterError("There is no rotation here.")
        return run

    def follow(self, look: Callable[[Run], None] | None = None) -> Run:
        """Wait until the run stands still: over, paused or stopped; `look` sees every reading."""
        while True:
            run = self.known_run()
            if look is not None:
                look(run)
            if run.state not in _MOVING:
                return run
            time.sleep(PACE.seconds)


def rotor(environment: str) -> Rotor:
    """Return the rotations of an environment."""
    return Rotor(Desk.of(environment))


def start(environment: str, console: Console, *, watch: bool, **said: Any) -> None:
    """Start a run; watching it shows how far it is until it stands still."""
    rotation = rotor(environment)
    answer = rotation.ask("start", **said)
    console.print(answer["said"], markup=False)
    if watch and "run" in answer:
        watch_run(rotation, console)


def show_plan(
    environment: str,
    console: Console,
    *,
    as_json: bool,
    sample_seconds: float,
    page: Path | None = None,
    **said: Any,
) -> None:
    """Print what a run would do; the growth of the logs is watched for a few seconds."""
    rotation = rotor(environment)
    held = rotation.ask("held")["held"] if sample_seconds > 0 else None
    time.sleep(sample_seconds)
    answer = rotation.ask("plan", held=held, **said)
    if page is not None:
        write_page(page, plan_page(answer["plan"]))
    if as_json:
        plain = json.dumps(answer["plan"], sort_keys=True)
        console.print(plain, markup=False, highlight=False, soft_wrap=True)
        return
    console.print(answer["said"], markup=False)
    console.print(render_plan(answer["plan"]))


def show(
    environment: str, console: Console, *, watch: bool, as_json: bool, page: Path | None = None
) -> None:
    """Print how far the run is."""
    rotation = rotor(environment)
    run = rotation.run()
    if run is None:
        console.print("No rotation was ever started here.")
        return
    if page is not None:
        write_page(page, run_page(run, time.time()))
    if as_json:
        plain = json.dumps(run_to_document(run), sort_keys=True)
        console.print(plain, markup=False, highlight=False, soft_wrap=True)
        return
    if watch:
        watch_run(rotation, console)
        return
    console.print(view(run, time.time()))


def send_command(environment: str, command: str, console: Console, **said: Any) -> None:
    """Pause, resume or abort the run."""
    console.print(rotor(environment).ask(command, **said)["said"], markup=False)


def watch_run(rotation: Rotor, console: Console, pace: Pace = PACE) -> None:
    """Show the run until it stands still; raises StillwaterError where it stopped for a person."""

    def look(now: float) -> tuple[Group, Run | None]:
        run = rotation.known_run()
        return view(run, now), None if run.state in _MOVING else run

    run = watch(console, look, pace)
    if run.state is RunState.STOPPED:
        raise StillwaterError(f"The run stopped: {run.reason}")


def view(run: Run, now: float) -> Group:
    """Return a run as people see it: every node, where it stands, how long it took."""
    done = sum(turn.phase is Phase.DONE for turn in run.turns)
    took = span((run.ended_at or now) - run.started_at)
    head = Text(f"{run.id}: {run.state.value}, {done} of {len(run.turns)} nodes, {took}", "bold")
    nodes = Table("", "node", "zone", "instance", "state", "took", "why or what")
    for turn in run.turns:
        began, ended = turn.began_at, turn.done_at or now
        nodes.add_row(
            PHASES[turn.phase],
            Text(f"{turn.role} {turn.node_id}"),
            Text(turn.zone),
            Text(turn.instance_id),
            turn.phase.value,
            "" if began is None else span(ended - began),
            Text(turn.reason or turn.why),
        )
    begun = Text(f"by {run.started_by}, {time_said(run.started_at)}", "dim")
    return Group(head, begun, nodes, Text(run.reason))


def at_once_of(said: str | None) -> int | str | None:
    """Return how many brokers of a zone go together, as λ rotate reads it; it judges the number.

    >>> at_once_of("2"), at_once_of("zone"), at_once_of(None)
    (2, 'zone', None)
    """
    return int(said) if said is not None and said.lstrip("-").isdecimal() else said


def selection(
    *, everything: bool, node_ids: list[int], pools: list[str], zones: list[str]
) -> Mapping[str, Any]:
    """Return what is to be rotated as λ rotate reads it."""
    return {"everything": everything, "node_ids": node_ids, "pools": pools, "zones": zones}
