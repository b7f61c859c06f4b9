"""Renders a rotation as one page with a bar for each node: as planned, or as it went.

One HTML file without scripts that opens from disk; times count from the beginning of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from core.rotation.estimate import away_seconds, together
from core.rotation.run_record import NodeTurn, Run
from core.words import span

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
