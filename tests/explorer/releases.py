"""Rolls functions back to an earlier release in an explored world, and forward again.

An earlier release reads the documents of the one after it: a field that it does not know is as if
it were not there, and is written back as it was (core.incidents.record). One function may be older
than another for a while. A newer release may also have left a state that this one cannot read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, replace
from typing import Any

from core.incidents.record import Incident, State
from tests.explorer import agenda
from tests.explorer.limits import LEASE
from tests.explorer.world import Key, World

Choice = tuple[str, ...]
# What the last releases have added, each unknown to the one before.
ADDED = ("ahead", "kept_at", "scheduled", "launches_said_at", "hooks_said")
FUNCTIONS = ("ticks", "events", "sweep")
NEWER = "parked"  # a state that no release has yet
AWAY = LEASE + 150


def choices(world: World) -> Iterator[Choice]:
    """Yield which function may be rolled back, and which incident a newer release has written."""
    if world.older:
        yield ("rolled forward",)
    else:
        yield from (("rolled back", each, name) for each in FUNCTIONS for name in ADDED)
        yield from (("rolled back", "all", name) for name in ADDED)
    for incident in world.incidents.values():
        if incident.open and not incident.unread:
            yield ("newer state", incident.id)


def rolled_back(world: World, function: str, name: str) -> None:
    """Have one of our functions, or all, not know a field."""
    whose = FUNCTIONS if function == "all" else (function,)
    world.older = dict.fromkeys(whose, name)


def rolled_forward(world: World) -> None:
    """Have every function know everything again."""
    world.older = {}


def newer_state(world: World, id_: str) -> None:
    """Have a newer release move an incident, and be deployed again later."""
    incident = world.incidents.get(id_)
    if incident is None or not incident.open or incident.unread:
        return
    world.incidents[id_] = replace(
        incident, state=State.HOLDING, unread={"state": NEWER}, version=incident.version + 1
    )
    agenda.plan(world, ("understood", id_, incident.state.value), AWAY)


def understood(world: World, key: Key) -> None:
    """Have the newer release take an incident up where it was."""
    _, id_, state = key
    incident = world.incidents[id_]
    back = replace(incident, state=State(state), unread={}, version=incident.version + 1)
    world.incidents[id_] = back
    body = f'{{"incident_id": "{id_}", "version": {back.version}}}'
    agenda.send(world, "ticks", body)


def as_read(world: World, incident: Incident) -> Incident:
    """Return an incident as the function that runs now reads it."""
    name = world.older.get(world.function)
    return incident if name is None else replace(incident, **{name: _ABSENT[name]})


def as_written(world: World, incident: Incident, held: Incident | None) -> Incident:
    """Return an incident as the ledger keeps it: what its writer does not know stays as it was."""
    name = world.older.get(world.function)
    if name is None:
        return incident
    kept = _ABSENT[name] if held is None else getattr(held, name)
    return replace(incident, **{name: kept})


def _absent(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


_ABSENT = {name: _absent(Incident.__dataclass_fields__[name]) for name in ADDED}
