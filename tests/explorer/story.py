"""Tells a walk as a story: who did what and when, and which line of ours decided it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from core.incidents.actions import Decision
from tests.explorer import nature
from tests.explorer.choices import Choice, take_step
from tests.explorer.search import Found, quiet, rest
from tests.explorer.stage import Stage
from tests.explorer.world import START, Key, World

WHO = {
    "ticks": "λ tick",
    "events": "λ interruption",
    "sweep": "λ sweep",
    "webhook": "λ webhook",
    "nth": "termination handler",
    "drain": "termination handler",
    "launch": "group",
    "scale_in": "group",
    "hook": "group",
    "leave": "AWS",
    "end": "AWS",
    "die": "AWS",
}
# Where decisions are built, and not taken.
_BUILDERS = "core/incidents/actions.py"


class _Lines:
    """Remembers the line that built the last decision."""

    def __init__(self) -> None:
        self.last = ""

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        if event != "return" or not isinstance(value, Decision) or self.last:
            return
        at: FrameType | None = frame
        while at is not None and at.f_code.co_filename.endswith(_BUILDERS):
            at = at.f_back
        if at is not None:
            path = at.f_code.co_filename
            place = path[path.rfind("/core/") + 1 :]
            self.last = f"{place}:{at.f_lineno} {at.f_code.co_name}"


def told(stage: Stage, found: Found) -> str:
    """Return the story of a walk, one line per thing that mattered."""
    lines = [f"{found.scenario.name}: {'; '.join(found.broken)}"]
    if found.seed is not None:
        lines[0] += f" (seed {found.seed})"
    lines.extend(_steps(stage, found))
    return "\n".join(lines)


def _steps(stage: Stage, found: Found) -> Iterator[str]:
    world, last = found.scenario.world(), max(found.walk, default=-1)
    said: list[str] = []
    stage.decided = said.append
    try:
        for number in range(4000):
            chosen = found.walk.get(number, ())
            with stage.traced() as calls:
                take_step(stage, world, [c for c in chosen if c[0] != "call"])
            for choice in chosen:
                yield f"{_when(world)} *** {_choice(choice, calls)} ***"
            before, lines = _states(world), _Lines()
            said.clear()
            sys.setprofile(lines)
            try:
                world, key = take_step(stage, world, chosen)
            finally:
                sys.setprofile(None)
            if key is None:
                break
            if told_ := _told(world, key, said, before, lines.last):
                yield told_
            if world.broken or (number > last and quiet(world)):
                break
            if world.now - START > 10 * 3600:
                break
    finally:
        stage.decided = None
    if not world.broken:
        world = rest(stage, world)
    for broken in world.broken:
        yield f"{_when(world)} BROKEN {broken}"


def _told(world: World, key: Key, said: list[str], before: dict[str, str], line: str) -> str:
    """Tell one step, or nothing where only time went by."""
    who = key[2] if key[0] == "asks" else WHO.get(key[0], "cluster")
    changed = [
        f"{id_} {state}" for id_, state in _states(world).items() if before.get(id_) != state
    ]
    if key[0] in nature.OURS:
        if not changed and not world.broken:
            return ""
        decided = f" [{line}]" if line else ""
        return f"{_when(world)} {who}: {', '.join(changed)}: {' '.join(said[:2])}{decided}"
    if key[0] in {"detached", "schedule"} or (key[0] == "drain" and not world.broken):
        return ""
    return f"{_when(world)} {who}: {' '.join(str(part) for part in key)}"


def _states(world: World) -> dict[str, str]:
    return {id_: incident.state.value for id_, incident in world.incidents.items()}


def _choice(choice: Choice, calls: Sequence[tuple[str, bool]]) -> str:
    if choice[0] == "call":
        number = int(choice[1])
        name = calls[number][0] if number < len(calls) else "no call"
        return f"{choice[2]} at {name} (call {number})"
    return " ".join(choice)


def _when(world: World) -> str:
    return f"{world.now - START:8.0f} s"
