"""Runs `stillwater fleet ...`: reads every cluster, has core.fleet decide, shows or carries it out.

What is done may be done again: λ rotate starts no second run, and a run that pauses is not asked
twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from cli import rotate, terminal
from cli.answers import answer_or_reason
from cli.fleet.reading import Gateway, ask_all, read_file
from cli.terminal import say
from cli.watching import Pace, watch
from core.cluster.fleet import FleetFile
from core.fleet import (
    PARTS,
    ClusterFacts,
    FleetDecision,
    RotationEstimate,
    Standing,
    decide,
    is_moving,
)
from core.ground.fields import Unknown, mapping_of
from core.ground.words import span, time_said
from core.rotation.run_record import Run

PACE = Pace(seconds=60.0)
FINE, STOPPED, UNREAD = 0, 1, 2
STYLES = dict(zip(Standing, ("red", "cyan", "cyan", "yellow", "green", "green"), strict=True))
HEADINGS = ("cluster", "wave", "region", "state", *PARTS.values(), "nodes", "hours", "USD", "why")
# A command's sentence about one cluster, and whether the cluster did as it was asked.
Told = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class FleetReading:
    """A fleet, every fact of it, and what follows."""

    fleet: FleetFile
    facts: Mapping[str, ClusterFacts]
    decision: FleetDecision
    now: float
    seconds: float  # that the reading took

    @property
    def exit_code(self) -> int:
        """0: nothing is wrong; 1: a cluster is stopped; 2: something could not be read."""
        if any(p.standing is Standing.STOPPED for p in self.decision.clusters.values()):
            return STOPPED
        found = (getattr(f, each.name) for f in self.facts.values() for each in fields(f))
        return UNREAD if any(isinstance(each, Unknown) for each in found) else FINE

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each cluster, the same for JSON, terminal and page."""
        waves = {name: wave.name for wave in self.fleet.waves for name in wave.environments}
        for name, placed in self.decision.clusters.items():
            facts = self.facts[name]
            known = facts.estimate if isinstance(facts.estimate, RotationEstimate) else None
            usd = None if known is None else known.usd
            yield {
                "cluster": name,
                "wave": waves[name],
                "region": self.fleet.environments[name].region,
                "standing": placed.standing.value,
                "versions": {part: mapping_of(facts.versions).get(part) for part in PARTS},
                "behind": list(facts.behind),
                "nodes": None if isinstance(facts.nodes, Unknown) else len(facts.nodes),
                "hours": None if known is None else round(known.seconds / 3600, 2),
                "usd": None if usd is None else round(usd, 2),
                "run": facts.rotation.id if isinstance(facts.rotation, Run) else None,
                "why": placed.sentence,
            }

    def document(self) -> dict[str, Any]:
        """Return the reading as one object."""
        return {
            "exit_code": self.exit_code,
            "fleet": self.fleet.name,
            "at": self.now,
            "seconds": round(self.seconds, 1),
            "sentence": self.decision.sentence,
            "waves": {name: standing.value for name, standing in self.decision.waves.items()},
            "starts": list(self.decision.starts),
            "pauses": list(self.decision.pauses),
            "clusters": list(self.rows()),
        }


def open_fleet(path: Path) -> Gateway:
    """Return the way to the clusters that a fleet's file names."""
    return Gateway(read_file(path), path.absolute().parent)


def look(gateway: Gateway) -> FleetReading:
    """Read every cluster and decide."""
    fleet, began = gateway.file, time.time()
    read = ask_all(fleet.environments, gateway.read)
    facts = {n: ClusterFacts.unread(f) if isinstance(f, Unknown) else f for n, f in read.items()}
    now = time.time()
    return FleetReading(fleet, facts, decide(fleet, facts, now), now, now - began)


def show(path: Path, console: Console, *, watched: bool, as_json: bool, html: Path | None) -> int:
    """Print where every cluster stands; return the exit code."""
    gateway = open_fleet(path)

    def draw() -> FleetReading:
        seen = look(gateway)
        if html is not None:
            terminal.write_page(html, page(seen))
        return seen

    if watched and not as_json:
        return watch(console, lambda _now: (table(draw()), None), PACE)
    seen = draw()
    if as_json:
        terminal.write(seen.document())
    else:
        console.print(table(seen))
    return seen.exit_code


def plan(path: Path, console: Console, *, as_json: bool) -> int:
    """Print what `advance` would do, and what that takes; return the exit code."""
    seen = look(open_fleet(path))
    _tell(seen, plan_lines(seen), console, seen.document() if as_json else None)
    return seen.exit_code


def advance(path: Path, console: Console, *, as_json: bool) -> int:
    """Start what may start, pause what has to, and return at once; return the exit code."""
    gateway = open_fleet(path)
    seen = look(gateway)
    done = dict(carry_out(seen.decision, gateway))
    _tell(seen, done, console, {**seen.document(), "done": [*done]} if as_json else None)
    return seen.exit_code or (FINE if all(done.values()) else STOPPED)


def _tell(
    seen: FleetReading, lines: Iterable[str], console: Console, document: dict[str, Any] | None
) -> None:
    if document is not None:
        terminal.write(document)
        return
    for sentence in (seen.decision.sentence, *lines):
        say(console, sentence)


def plan_lines(seen: FleetReading) -> Iterator[str]:
    """Yield what each cluster that may start takes, then why others wait."""
    for name in seen.decision.starts:
        estimate = seen.facts[name].estimate
        if isinstance(estimate, RotationEstimate):
            usd = "an unknown price" if estimate.usd is None else f"about {estimate.usd:.2f} USD"
            yield f"{name}: {estimate.nodes} nodes, about {span(estimate.seconds)}, {usd}."
    yield from (f"{name}: its rotation would pause." for name in seen.decision.pauses)
    for each in seen.decision.clusters.values():
        if each.standing not in {Standing.DONE, Standing.BEHIND}:
            yield each.sentence


def carry_out(decision: FleetDecision, gateway: Gateway) -> Iterator[Told]:
    """Yield what was asked of each cluster and answered."""
    selection = rotate.selection(everything=False, node_ids=[], pools=[], zones=[])
    for name in decision.pauses:
        yield _ask(gateway, name, "pause")
    for name in decision.starts:
        yield _ask(gateway, name, "start", selection=selection)


def _ask(gateway: Gateway, name: str, command: str, **said: Any) -> Told:
    answer = answer_or_reason(lambda: gateway.ask(name, command, **said))
    if isinstance(answer, Unknown):
        return f"{name}: no {command}. {answer.why.rstrip('.')}.", False
    return f"{name}: {answer}", True


def stop(path: Path, console: Console) -> int:
    """Pause every rotation of the fleet; return the exit code."""
    done = dict(_stop_each(open_fleet(path)))
    for sentence in done:
        say(console, sentence)
    if done:
        return FINE if all(done.values()) else UNREAD
    say(console, f"No rotation goes on that a ledger could hold. Write `hold: WHY` in {path}.")
    return STOPPED


def _stop_each(gateway: Gateway) -> Iterator[Told]:
    for name, run in ask_all(gateway.file.environments, gateway.run).items():
        if isinstance(run, Unknown):
            yield f"{name}: whether it rotates could not be read. {run.why.rstrip('.')}.", False
        elif is_moving(run):
            yield _ask(gateway, name, "pause")
        elif run is not None and not run.over:
            yield f"{name}: {run.reason}", True


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return a row's cells as people read them; what is unknown is a question mark."""
    figures = (row["nodes"], row["hours"], row["usd"])
    return [
        *(row[key] for key in ("cluster", "wave", "region", "standing")),
        *(row["versions"][part] or "?" for part in PARTS),
        *("?" if each is None else f"{each:g}" for each in figures),
        row["why"],
    ]


def table(seen: FleetReading) -> Group:
    """Return the fleet's table for a terminal."""
    found = Table(*HEADINGS)
    for row in seen.rows():
        cluster, *others = cells(row)
        found.add_row(Text(cluster, STYLES[Standing(row["standing"])]), *map(Text, others))
    waves = ", ".join(f"{name} {standing}" for name, standing in seen.decision.waves.items())
    read = f"{len(seen.facts)} clusters read in {seen.seconds:.1f} s. Waves: {waves}."
    return Group(Text(seen.decision.sentence, "bold"), Text(read, "dim"), found)


def page(seen: FleetReading) -> str:
    """Return the fleet's page: self-contained HTML, which a browser loads again each minute."""
    template = Template((files("cli.fleet") / "templates" / "fleet.html").read_text("utf-8"))
    waves = seen.decision.waves
    return template.substitute(
        fleet=escape(seen.fleet.name),
        pause=f"{PACE.seconds:.0f}",
        moment=f"{time_said(seen.now)}, {len(seen.facts)} clusters in {seen.seconds:.1f} s",
        sentence=escape(seen.decision.sentence),
        mark=_mark(next(each for each in Standing if each in waves.values())),
        waves="\n".join(
            f'<li class="{_mark(standing)}"><b>{escape(name)}</b>{standing}</li>'
            for name, standing in waves.items()
        ),
        headings="".join(f"<th>{each}</th>" for each in HEADINGS),
        rows="\n".join(
            f'<tr class="{_mark(row["standing"])}"><td>'
            + "</td><td>".join(map(escape, cells(row)))
            + "</td></tr>"
            for row in seen.rows()
        ),
    )


def _mark(standing: str) -> str:
    return standing.replace(" ", "-")
