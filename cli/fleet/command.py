"""Runs `stillwater fleet ...`: reads every cluster, has core.fleet decide, shows or carries it out.

What is done may be done again: λ rotate starts no second run, and a run that pauses is not asked
twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
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
from cli.fleet.reading import AwsGateway, Gateway, read_all, read_file
from cli.terminal import say
from cli.watching import Pace, watch
from core.fleet import (
    PARTS,
    ClusterFacts,
    Fleet,
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
SYMBOLS = {
    Standing.DONE: ("●", "green"),
    Standing.BAKES: ("◔", "green"),
    Standing.BEHIND: ("▸", "cyan"),
    Standing.IN_PROGRESS: ("◑", "cyan"),
    Standing.WAITS: ("…", "yellow"),
    Standing.STOPPED: ("○", "red"),
}


@dataclass(frozen=True, slots=True)
class FleetReading:
    """A fleet, every fact of it, and what follows."""

    fleet: Fleet
    facts: Mapping[str, ClusterFacts]
    decision: FleetDecision
    now: float
    seconds: float  # that the reading took

    @property
    def exit_code(self) -> int:
        """0: nothing is wrong; 1: a cluster is stopped; 2: something could not be read."""
        if any(each.standing is Standing.STOPPED for each in self.decision.clusters):
            return STOPPED
        return UNREAD if any(map(_is_unread, self.facts.values())) else FINE


def _is_unread(facts: ClusterFacts) -> bool:
    return any(isinstance(getattr(facts, each.name), Unknown) for each in fields(facts))


def open_fleet(path: Path) -> tuple[Fleet, AwsGateway]:
    """Return a fleet by its file, and the way to its clusters."""
    file = read_file(path)
    return file.fleet, AwsGateway(file, path.absolute().parent)


def look(fleet: Fleet, gateway: Gateway) -> FleetReading:
    """Read every cluster and decide."""
    began = time.time()
    facts = read_all(fleet.members, gateway.read)
    now = time.time()
    return FleetReading(fleet, facts, decide(fleet, facts, now), now, now - began)


def show(
    path: Path, console: Console, *, watched: bool, as_json: bool, html: Path | None = None
) -> int:
    """Print where every cluster stands; return the exit code."""
    fleet, gateway = open_fleet(path)

    def draw() -> FleetReading:
        seen = look(fleet, gateway)
        if html is not None:
            terminal.write_page(html, page(seen))
        return seen

    if watched:
        return watch(console, lambda _now: (table(draw()), None), PACE)
    seen = draw()
    if as_json:
        terminal.write(document(seen))
    else:
        console.print(table(seen))
    return seen.exit_code


def plan(path: Path, console: Console, *, as_json: bool) -> int:
    """Print what the next step starts, and what that takes; return the exit code."""
    seen = look(*open_fleet(path))
    if as_json:
        terminal.write(document(seen))
        return seen.exit_code
    say(console, seen.decision.sentence)
    for sentence in plan_lines(seen):
        say(console, sentence)
    return seen.exit_code


def plan_lines(seen: FleetReading) -> Iterator[str]:
    """Yield what each cluster that may start takes, then why others wait."""
    for name in seen.decision.starts:
        estimate = seen.facts[name].estimate
        if isinstance(estimate, RotationEstimate):
            usd = "an unknown price" if estimate.usd is None else f"about {estimate.usd:.2f} USD"
            yield f"{name}: {estimate.nodes} nodes, about {span(estimate.seconds)}, {usd}."
    for name in seen.decision.pauses:
        yield f"{name}: its rotation would pause."
    for each in seen.decision.clusters:
        if each.standing not in {Standing.DONE, Standing.BEHIND}:
            yield each.sentence


def advance(path: Path, console: Console, *, as_json: bool) -> int:
    """Start what may start, pause what has to, and return at once; return the exit code."""
    fleet, gateway = open_fleet(path)
    seen = look(fleet, gateway)
    done = list(carry_out(seen.decision, gateway))
    if as_json:
        terminal.write({**document(seen), "done": [said for said, _ in done]})
    else:
        for sentence in (seen.decision.sentence, *(said for said, _ in done)):
            say(console, sentence)
    return seen.exit_code or (FINE if all(fine for _, fine in done) else STOPPED)


def carry_out(decision: FleetDecision, gateway: Gateway) -> Iterator[tuple[str, bool]]:
    """Yield what was asked of each cluster and answered, and whether it was not refused."""
    selection = rotate.selection(everything=False, node_ids=[], pools=[], zones=[])
    for name in decision.pauses:
        yield _asked(gateway, name, "pause")
    for name in decision.starts:
        yield _asked(gateway, name, "start", selection=selection)


def _asked(gateway: Gateway, name: str, command: str, **said: Any) -> tuple[str, bool]:
    answer = answer_or_reason(lambda: gateway.ask(name, command, **said))
    if isinstance(answer, Unknown):
        return f"{name}: no {command}. {answer.why.rstrip('.')}.", False
    return f"{name}: {answer}", True


def stop(path: Path, console: Console) -> int:
    """Pause every rotation of the fleet; return the exit code."""
    fleet, gateway = open_fleet(path)
    done = list(stop_all(fleet, gateway))
    for sentence, _ in done:
        say(console, sentence)
    if done:
        return FINE if all(fine for _, fine in done) else UNREAD
    said = f"No rotation goes on, so no ledger can hold this fleet: write `hold: WHY` in {path}."
    say(console, f"{said} Then `advance` starts nothing.")
    return STOPPED


def stop_all(fleet: Fleet, gateway: Gateway) -> Iterator[tuple[str, bool]]:
    """Yield each run that goes on with what its pause was answered, and what was not read."""
    facts = read_all(fleet.members, gateway.read)
    for name, each in facts.items():
        if isinstance(each.run, Unknown):
            yield f"{name}: whether it rotates could not be read. {each.run.why}.", False
        elif is_moving(each.run):
            yield _asked(gateway, name, "pause")
        elif isinstance(each.run, Run) and not each.run.over:
            yield f"{name}: {each.run.reason}", True


def rows(seen: FleetReading) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each cluster, the same for JSON, terminal and page."""
    for each in seen.decision.clusters:
        facts = seen.facts[each.name]
        known = facts.estimate if isinstance(facts.estimate, RotationEstimate) else None
        present = mapping_of(facts.present)
        yield {
            "cluster": each.name,
            "wave": each.wave,
            "region": seen.fleet.members[each.name].region,
            "standing": each.standing.value,
            "versions": {part: present.get(part) for part in PARTS},
            "behind": list(facts.behind),
            "outdated": None if isinstance(facts.outdated, Unknown) else len(facts.outdated),
            "hours": None if known is None else round(known.seconds / 3600, 2),
            "usd": None if known is None or known.usd is None else round(known.usd, 2),
            "run": facts.run.id if isinstance(facts.run, Run) else None,
            "why": each.sentence,
        }


def document(seen: FleetReading) -> dict[str, Any]:
    """Return a reading as one object."""
    return {
        "exit_code": seen.exit_code,
        "fleet": seen.fleet.name,
        "at": seen.now,
        "seconds": round(seen.seconds, 1),
        "sentence": seen.decision.sentence,
        "waves": [{"name": name, "standing": s.value} for name, s in seen.decision.waves],
        "starts": list(seen.decision.starts),
        "pauses": list(seen.decision.pauses),
        "clusters": list(rows(seen)),
    }


HEADINGS = ("cluster", "wave", "region", "state", *PARTS.values(), "nodes", "hours", "USD", "why")


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return a row's cells as people read them; what is unknown is a question mark."""
    figures = (row["outdated"], row["hours"], row["usd"])
    return [
        *(row[key] for key in ("cluster", "wave", "region", "standing")),
        *("?" if row["versions"][part] is None else row["versions"][part] for part in PARTS),
        *("?" if each is None else f"{each:g}" for each in figures),
        row["why"],
    ]


def table(seen: FleetReading) -> Group:
    """Return the fleet's table for a terminal."""
    found = Table("", *HEADINGS)
    for row in rows(seen):
        symbol, style = SYMBOLS[Standing(row["standing"])]
        found.add_row(Text(symbol, style), *map(Text, cells(row)))
    waves = ", ".join(f"{name} {standing.value}" for name, standing in seen.decision.waves)
    read = f"{len(seen.facts)} clusters read in {seen.seconds:.1f} s. Waves: {waves}."
    return Group(Text(seen.decision.sentence, "bold"), Text(read, "dim"), found)


def page(seen: FleetReading) -> str:
    """Return the fleet's page: self-contained HTML, which a browser loads again each minute."""
    template = Template((files("cli.fleet") / "templates" / "fleet.html").read_text("utf-8"))
    body = "\n".join(
        f'<tr class="{_class(row["standing"])}">'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells(row))
        + "</tr>"
        for row in rows(seen)
    )
    return template.substitute(
        fleet=escape(seen.fleet.name),
        seconds=f"{PACE.seconds:.0f}",
        moment=f"{time_said(seen.now)}, {len(seen.facts)} clusters in {seen.seconds:.1f} s",
        sentence=escape(seen.decision.sentence),
        mark=next((m for m in MARKS if m in {_class(s.value) for _, s in seen.decision.waves}), ""),
        waves="\n".join(
            f'<li class="{_class(standing.value)}"><b>{escape(name)}</b>{standing.value}</li>'
            for name, standing in seen.decision.waves
        ),
        headings="".join(f"<th>{each}</th>" for each in HEADINGS),
        rows=body,
    )


# Of the waves, the one that matters most comes first.
MARKS = ("stopped", "in-progress", "behind", "bakes", "waits", "done")


def _class(standing: str) -> str:
    return standing.replace(" ", "-")
