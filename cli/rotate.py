"""Runs `stillwater rotate ...`: what a rotation would do, does and did, for people.

λ rotate is asked for everything that is decided, so nobody needs a way to the brokers; how far the
run is is read from the ledger. A page is one HTML file without scripts that opens from disk; its
times count from the beginning of the run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.target import Cluster, Shape, has_shape
from cli.terminal import say, write_page
from cli.watching import Pace, watch
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.words import span, time_said
from core.rotation.estimate import away_seconds, together
from core.rotation.run_record import NodeTurn, Phase, Run, RunState, run_to_document
from core.slack import PHASES
from handlers.store.documents import Runs

PACE = Pace(seconds=2.0)
MOVING = frozenset({RunState.RUNNING})


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
MIB = 1024 * 1024
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
ol { list-style: none; padding: 0 }
li { display: grid; grid-template-columns: 14rem 1fr 6rem; gap: 1rem; align-items: center }
.track { position: relative; height: 1.1rem; background: #8882; border-radius: 3px }
.track i { position: absolute; height: 100%; min-width: 2px; border-radius: 3px }
.takes, .leaving { background: #2f6db5 } .returning { background: #c77d11 }
.machine { background: #8a6fb0 } .holding { background: #3a8f5c }
.key i { display: inline-block; width: 1rem; height: .8rem; margin: 0 .3rem 0 1rem }
small { text-align: right } .note { color: color-mix(in srgb, currentColor 68%, transparent) }
@media (max-width: 40rem) { li { grid-template-columns: 8rem 1fr 4rem; gap: .4rem } }
"""
WORDS = {
    "takes": "expected",
    "machine": "waits for its machine",
    "leaving": "consent, drain and stop",
    "returning": "start, register and catch up",
    "holding": "in every ISR, watched",
}


def _is_whole(told: Mapping[str, Any], command: str) -> bool:
    """Say whether an answer has what is shown of a command."""
    if command == "held":
        return has_shape(told, {"held": dict})
    plan = told.get("plan")
    if plan is None:
        return command != "plan"
    return has_shape(plan, PLAN) and all(has_shape(each, NODE) for each in plan["nodes"])


@dataclass(frozen=True)
class Rotations:
    """The rotation runs of one environment, as the caller."""

    cluster: Cluster

    @classmethod
    def named(cls, environment: str) -> Rotations:
        return cls(Cluster.named(environment))

    def ask(self, command: str, **said: Any) -> Mapping[str, Any]:
        """Ask λ rotate; raises InvalidInput with what it objects to."""
        event = {"command": command, "actor": self.cluster.actor, **said}
        told = self.cluster.invoke("rotate", event)
        if has_shape(told, {"problems": list}) and told["problems"]:
            raise InvalidInput(map(str, told["problems"]))
        if not (has_shape(told, SHOWN) and _is_whole(told, command)):
            raise self.cluster.unreadable("rotate")
        return told

    def run(self) -> Run | None:
        """Return the run that goes on, or the last one."""
        return Runs(self.cluster.records, self.cluster.spec.name).current()

    def known_run(self) -> Run:
        """Return the run that goes on, or the last one; raises StillwaterError without any."""
        run = self.run()
        if run is None:
            raise StillwaterError("This cluster has no rotation.")
        return run

    def follow(self, look: Callable[[Run], None] | None = None) -> Run:
        """Wait until the run stands still: over, paused or stopped; `look` sees every reading."""
        while True:
            run = self.known_run()
            if look is not None:
                look(run)
            if run.state not in MOVING:
                return run
            time.sleep(PACE.seconds)


def start(environment: str, console: Console, *, watch: bool, **said: Any) -> None:
    """Start a run; watching it shows how far it is until it stands still."""
    rotation = Rotations.named(environment)
    answer = rotation.ask("start", **said)
    say(console, answer["said"])
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
    rotation = Rotations.named(environment)
    held = None
    if sample_seconds > 0:
        held = rotation.ask("held")["held"]
        time.sleep(sample_seconds)
    answer = rotation.ask("plan", held=held, **said)
    if page is not None:
        write_page(page, plan_page(answer["plan"]))
    if as_json:
        plain = json.dumps(answer["plan"], sort_keys=True)
        say(console, plain)
        return
    say(console, answer["said"])
    console.print(render_plan(answer["plan"]))


def show(
    environment: str, console: Console, *, watch: bool, as_json: bool, page: Path | None = None
) -> None:
    """Print how far the run is."""
    rotation = Rotations.named(environment)
    run = rotation.run()
    if run is None:
        say(console, "null" if as_json else "No rotation was ever started here.")
        return
    if page is not None:
        write_page(page, run_page(run, time.time()))
    if as_json:
        plain = json.dumps(run_to_document(run), sort_keys=True)
        say(console, plain)
        return
    if watch:
        watch_run(rotation, console)
        return
    console.print(view(run, time.time()))


def send_command(environment: str, command: str, console: Console, **said: Any) -> None:
    """Pause, resume or abort the run."""
    say(console, Rotations.named(environment).ask(command, **said)["said"])


def watch_run(rotation: Rotations, console: Console, pace: Pace = PACE) -> None:
    """Show the run until it stands still; raises StillwaterError where it stopped for a person."""

    def look(now: float) -> tuple[Group, Run | None]:
        run = rotation.known_run()
        return view(run, now), None if run.state in MOVING else run

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


def parse_at_once(said: str | None) -> int | str | None:
    """Return how many brokers of a zone go together, as λ rotate reads it; it judges the number.

    >>> parse_at_once("2"), parse_at_once("zone"), parse_at_once(None)
    (2, 'zone', None)
    """
    return int(said) if said is not None and said.lstrip("-").isdecimal() else said


def selection(
    *, everything: bool, node_ids: list[int], pools: list[str], zones: list[str]
) -> Mapping[str, Any]:
    """Return what is to be rotated as λ rotate reads it."""
    return {"everything": everything, "node_ids": node_ids, "pools": pools, "zones": zones}


def render_plan(plan: Mapping[str, Any]) -> Group:
    """Return a plan; each objection once, with the nodes it holds up."""
    return Group(*_parts(plan))


def _parts(plan: Mapping[str, Any]) -> Iterator[RenderableType]:
    nodes = Table("", "node", "zone", "instance", "takes", "copies", "why")
    batches = [node["batch"] for node in plan["nodes"]]
    for place, node in enumerate(plan["nodes"]):
        copied = node["resync_bytes"]
        nodes.add_row(
            # Who goes together shares a number.
            "" if place and batches[place - 1] == batches[place] else str(batches[place]),
            Text(f"{node['role']} {node['node_id']}"),
            Text(node["zone"]),
            Text(f"{node['instance_id']}, stays" if node.get("image_id") else node["instance_id"]),
            span(node["seconds"]),
            "" if copied is None else f"{copied / MIB:.1f} MiB",
            Text(node["why"]),
        )
    if plan["nodes"]:
        yield nodes
        yield Text(_altogether(plan))
    for note in plan["notes"]:
        yield Text(note, "dim")
    if plan["too_long"]:
        yield Text("What fits into no maintenance window, and needs --any-time:", "bold")
    for sentence in plan["too_long"]:
        yield Text(f"  {sentence}", "yellow")
    blocked = objections(plan)
    if blocked:
        yield Text("What blocks it now:", "bold")
    for sentence, node_ids in blocked.items():
        yield Text(f"  {sentence} [{', '.join(map(str, node_ids))}]", "yellow")
    if plan["unavailable"]:
        yield Text("What will be unavailable, and needs --accept-unavailable:", "bold")
    for sentence in plan["unavailable"]:
        yield Text(f"  {sentence}", "yellow")


def _altogether(plan: Mapping[str, Any]) -> str:
    about = f"About {span(plan['seconds'])} altogether"
    if plan.get("interval_seconds"):
        least, most = map(span, plan["interval_seconds"])
        about += f", between {least} and {most} by what nodes took in the last run"
    copied = sum(node["resync_bytes"] or 0 for node in plan["nodes"])
    return f"{about}, {copied / MIB:.1f} MiB to copy."


def objections(plan: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return every objection with the nodes it is about, but for what a person may accept."""
    found: dict[str, list[int]] = {}
    for node in plan["nodes"]:
        for sentence in node["objections"]:
            if not any(sentence.startswith(said) for said in plan["unavailable"]):
                found.setdefault(sentence, []).append(node["node_id"])
    return found


@dataclass(frozen=True, slots=True)
class BarPart:
    """A stretch of a node's bar, in seconds since the beginning of the run."""

    kind: str  # one of WORDS
    begins: float
    ends: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One node of a rotation."""

    label: str
    parts: tuple[BarPart, ...]


def plan_page(plan: Mapping[str, Any]) -> str:
    """Return the page of a plan, as λ rotate answers it: parties one after another."""
    said = f"{len(plan['nodes'])} nodes, about {span(plan['seconds'])}."
    if plan.get("interval_seconds"):
        least, most = map(span, plan["interval_seconds"])
        said += f" Between {least} and {most} by what nodes took in the last run."
    return _page("A rotation as planned", said, [*_planned_bars(plan)], plan["notes"])


def run_page(run: Run, now: float) -> str:
    """Return the page of a run, as far as it is."""
    bars = [
        Bar(f"{turn.role} {turn.node_id}, {turn.zone}", tuple(_went(turn, run.started_at, now)))
        for turn in sorted(run.turns, key=lambda turn: turn.began_at or float("inf"))
    ]
    took = span((run.ended_at or now) - run.started_at)
    return _page(run.id, f"{run.state.value.capitalize()}, {took}. {run.reason}", bars, ())


def _planned_bars(plan: Mapping[str, Any]) -> Iterator[Bar]:
    nodes, at_once = plan["nodes"], bool(plan.get("stops_together"))
    begins, batches = 0.0, dict.fromkeys(node["batch"] for node in nodes)
    for batch in batches:
        members = [node for node in nodes if node["batch"] == batch]
        takes = [node["seconds"] for node in members]
        apart = away_seconds(members[0].get("image_id"))
        for place, node in enumerate(members, start=1):
            # Replacements come at once, and who stops later is back later.
            part = BarPart(
                "takes",
                begins,
                begins + together(takes[:place], at_once=at_once, apart_seconds=apart),
            )
            yield Bar(f"{node['role']} {node['node_id']}, {node['zone']}", (part,))
        begins += together(takes, at_once=at_once, apart_seconds=apart)


def _went(turn: NodeTurn, started_at: float, now: float) -> Iterator[BarPart]:
    if turn.began_at is None:
        return
    done = turn.done_at or now
    released = min(turn.released_at or done, done)
    back = min(turn.back_since or done, done) if turn.released_at else done
    # In an ISR again before its old instance was seen to be let go.
    back = max(back, released)
    # Made ready ahead of its turn, it keeps nobody waiting.
    machine = min(max(turn.machine_at or turn.began_at, turn.began_at), released)
    moments = (turn.began_at, machine, released, back, done)
    for kind, begins, ends in zip(
        ("machine", "leaving", "returning", "holding"), moments, moments[1:], strict=False
    ):
        if ends > begins:
            yield BarPart(kind, begins - started_at, ends - started_at)


def _page(title: str, said: str, bars: Sequence[Bar], notes: Iterable[str]) -> str:
    whole = max((part.ends for bar in bars for part in bar.parts), default=0.0) or 1.0
    kinds = dict.fromkeys(part.kind for bar in bars for part in bar.parts)
    key = "".join(f'<i class="{kind}"></i>{escape(WORDS[kind])}' for kind in kinds)
    rows = "\n".join(_row(bar, whole) for bar in bars)
    told = "\n".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n<h1>{escape(title)}</h1>\n<p>{escape(said)}</p>\n"
        f'<p class="key">{key}</p>\n<ol>\n{rows}\n</ol>\n{told}\n</html>\n'
    )


def _row(bar: Bar, whole: float) -> str:
    stretches = "".join(
        f'<i class="{part.kind}" style="left:{100 * part.begins / whole:.3f}%;'
        f'width:{100 * (part.ends - part.begins) / whole:.3f}%" title="{escape(WORDS[part.kind])}: '
        f'{span(part.ends - part.begins)}, {span(part.begins)} after the beginning"></i>'
        for part in bar.parts
    )
    took = span(bar.parts[-1].ends - bar.parts[0].begins) if bar.parts else "waits"
    return (
        f'<li>{escape(bar.label)}<span class="track">{stretches}</span><small>{took}</small></li>'
    )
