"""Plays a history that is one line, `leave a, 140 s, nth away, 20 min, nth back`, to its end.

A step is a time that goes by, or a word of tests.explorer.choices or of tests.explorer.words with
what it is about. A letter names a zone, its group, its first broker or that one's machine, as the
word wants it; whatever else stands there is handed on as it is.
"""

from __future__ import annotations

import re

from tests.explorer import agenda
from tests.explorer.choices import CHOICES, take_step
from tests.explorer.rules import run_of
from tests.explorer.scenarios import Scenario
from tests.explorer.search import rest
from tests.explorer.stage import Stage, remember
from tests.explorer.words import WORDS
from tests.explorer.world import World, group_of

CALM = Scenario("", lambda _: None)
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
BROKERS = {"a": "10", "b": "20", "c": "30", "1a": "11", "1b": "21", "1c": "31"}
# What a letter names; of every other word it is the machine.
OF_GROUPS = frozenset(
    {
        *("refreshed", "balanced", "launch fails", "maximum lowered", "capacity elsewhere"),
        *("refuse", "scaled in", "group gone"),
    }
)
OF_ZONES = frozenset({"shift", "shift over", "zone silent", "no capacity", "capacity"})
OF_BROKERS = frozenset(
    {
        *(
            "restart",
            "claim deleted",
            "disk fails",
            "disk mended",
            "falls behind",
            "alone in sync",
            "unclean",
        ),
        *("single replica", "two replicas", "topics deleted", "moved off"),
        *("moved back", "pod gone", "pod made", "another id", "empty log dir", "operator rolls"),
    }
)
OF_INCIDENTS = frozenset({"hold", "ignore", "release", "newer state"})


def played(stage: Stage, line: str, scenario: Scenario = CALM) -> World:
    """Return the world at the end of a line, once all is over or nothing comes any more."""
    world = scenario.world()
    for step in filter(None, line.split(", ")):
        world = _after(stage, world, step)
        if world.broken:
            return world
    return rest(stage, world)


def ending(world: World) -> str:
    """Return how a world has ended: `a a.2 released, b lost; not_back`, and what people heard.

    What a run came to is said among the incidents; each rule that has been broken, before them.
    """
    states: dict[str, list[str]] = {}
    for id_, state in sorted((_short(i.id), i.state.value) for i in world.incidents.values()):
        states.setdefault(state, []).append(id_)
    run = run_of(world)
    if run is not None:
        states[run["state"]] = [*states.get(run["state"], []), "run"]
    said = ", ".join(f"{' '.join(ids)} {state}" for state, ids in states.items())
    called = " ".join(sorted({key for _, key in world.paged}))
    return "; ".join([*world.broken, said, *filter(None, [called])])


def _short(id_: str) -> str:
    return id_.removeprefix("i-").removeprefix("0")


def _after(stage: Stage, world: World, step: str) -> World:
    first, _, unit = step.partition(" ")
    if unit in SECONDS:
        return _later(stage, world, float(first) * SECONDS[unit])
    word, names = _read(step)
    if word in WORDS:
        world = remember(world)
        WORDS[word](world, *(_named(world, word, name) for name in names))
        return world
    choice = (word, *(_named(world, word, name) for name in names))
    world, _ = take_step(stage, world, (choice,))
    return world


def _later(stage: Stage, world: World, seconds: float) -> World:
    until = world.now + seconds
    while (due := agenda.due(world)) is not None and due[0] < until and not world.broken:
        world, _ = take_step(stage, world, ())
    world.now = max(world.now, until)
    return world


def _read(step: str) -> tuple[str, list[str]]:
    """Return the longest word that a step begins with, and what else it says."""
    said = step.split()
    for length in range(len(said), 0, -1):
        word = " ".join(said[:length])
        if word in WORDS or word in CHOICES or word == "every write":
            return word, said[length:]
    raise LookupError(f"{step!r} begins with no word that there is.")


def _named(world: World, word: str, name: str) -> str:
    if not re.fullmatch("[0-9]?[abc]", name):
        return name
    if word in OF_BROKERS:
        return BROKERS[name]
    if word in OF_GROUPS:
        return group_of(f"us-east-1{name}")
    if word in OF_ZONES:
        return f"us-east-1{name}"
    instance_id = f"i-{name}" if name[:-1] else f"i-0{name}"
    if word in OF_INCIDENTS:
        return [i.id for i in world.incidents.values() if i.instance_id == instance_id][-1]
    return instance_id
