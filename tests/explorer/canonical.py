"""Tells states of an explored world apart: what decisions can depend on, and no more.

A moment is kept as its place among the deadlines there are, relative to now: two worlds that differ
only by seconds in which nothing falls due are one state. Sentences, versions and message numbers
are left out; a tick is stale or it is not. New fields of an incident count from the day they are
added, unless they are named here.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from itertools import repeat
from operator import attrgetter
from typing import Any

from core.incidents.record import SECTIONS, Incident
from tests.explorer.handler import drain_of
from tests.explorer.rules import run_of
from tests.explorer.world import Message, World

# Deadlines of tests.explorer.limits, and the steps nature takes between them, in seconds.
_EDGES = (-3600, -900, -300, -100, -30, -1, 1, 30, 60, 120, 180, 300, 530, 600, 900, 1800, 3600)
_IGNORED = {
    *("id", "reason", "transitions", "notes", "version", "announcements", "drain_event"),
    *("opened_at", "launch_failure", "hooks", "replacement_ready_at", "forwarded_at"),
    *("event_type", "group", "zone", "pool", "node_name", "pod_name", "role", "lifecycle"),
}
# Where each value stands: the record's section, if in one, and its attribute there.
_PLACES: Mapping[str, tuple[str | None, str]] = {
    **{f.name: (None, f.name) for f in fields(Incident) if f.name not in SECTIONS},
    **{key: (of, name) for of, each in SECTIONS.items() for name, key in each.keys.items()},
}
# Of the record itself (None) and of each section: names, and what reads them all.
_Reading = Mapping[str | None, tuple[tuple[str, ...], Callable[[Any], Iterable[Any]]]]
_PLAIN = frozenset({str, int, float, bool, type(None)})


def _reading(*, times: bool) -> _Reading:
    """Return what reads the moments of a record, or everything else of it that counts."""
    found: dict[str | None, dict[str, str]] = {}
    for name, (of, attribute) in _PLACES.items():
        if name not in _IGNORED and name.endswith(("_at", "_until")) is times:
            found.setdefault(of, {})[name] = attribute
    return {
        # Of a single attribute attrgetter returns no tuple: it is read twice, and once not used.
        of: ((*names,), attrgetter(*names.values(), *list(names.values())[:1]))
        for of, names in found.items()
    }


_TIMES, _FACTS = _reading(times=True), _reading(times=False)


def state_of(world: World) -> int:
    """Return a number for the state of a world; equal states have equal numbers."""
    now = world.now
    incidents = tuple(
        (id_, *_incident(world.incidents[id_], now)) for id_ in sorted(world.incidents)
    )
    agenda = sorted(
        (_happening(key, world), bisect(_EDGES, at - now)) for key, at in world.agenda.items()
    )
    return hash(
        (
            incidents,
            tuple((i.holder, i.party, bisect(_EDGES, i.expires_at - now)) for i in world.leases),
            tuple(
                (g.desired, g.maximum, tuple(sorted(g.instances.items())), g.protected)
                for g in world.groups.values()
            ),
            frozenset((i, v.state) for i, v in world.instances.items()),
            frozenset(
                (i, n.schedulable, n.ready, n.spare_for, n.out_of_service)
                for i, n in world.nodes.items()
            ),
            tuple(
                (p.node_name, p.ready, p.stopping, bisect(_EDGES, now - (p.out_since or now)))
                for p in world.pods.values()
            ),
            frozenset(n for n, held in world.attached.items() if held),
            tuple((b.status, b.blame) for b in world.brokers.values()),
            frozenset((d.instance_id, d.evicted) for d in world.drains.values()),
            frozenset((s, bisect(_EDGES, t - now)) for s, t in world.down.items() if t > now),
            frozenset(world.paged),
            frozenset(world.hooks),
            world.refusing,
            frozenset((id_, task.state) for id_, task in world.roots.items()),
            world.unreplaced,
            frozenset((i, c.leaves, c.serves) for i, c in world.claims.items()),
            (world.roll, world.stalled_since is None, world.operator_paused),
            (world.elsewhere, world.claimless, world.scheduled, world.abandoned),
            (world.emptied, world.throttle is None, world.other_throttle is None),
            (frozenset(world.impaired), tuple(bool(n.sick) for n in world.nodes.values())),
            (*map(tuple, (world.older.items(), world.clocks.items(), world.armed.items())),),
            tuple(world.orders.values()),
            tuple(world.leaders.values()),
            tuple(pod.may_leave for pod in world.pods.values()),
            _run(world),
            tuple(agenda),
        )
    )


def _run(world: World) -> tuple[Any, ...]:
    """Return how far the rotation run is, and what people want of it."""
    run = run_of(world)
    if run is None:
        return ()
    turns = tuple((t["phase"], t["attempt"], t["ahead"], tuple(t["party"])) for t in run["turns"])
    return (run["state"], run["pause_asked_by"], run["abort_asked_by"], turns)


def _incident(incident: Incident, now: float) -> tuple[Any, ...]:
    facts, since = _facts(incident)
    times = tuple([bisect(_EDGES, now - at) for at in since])
    entered = bisect(_EDGES, now - incident.entered_at)
    told = (len(incident.hooks), incident.drain_event is None)
    return (facts, times, entered, told)


# Of a record: what does not depend on the time, and the moments that do.
_Read = tuple[tuple[Any, ...], tuple[float, ...]]
_KNOWN: dict[int, tuple[Incident, _Read]] = {}


def _facts(incident: Incident) -> _Read:
    """Return a record's facts, which moments it knows among them; what stays is read once."""
    known = _KNOWN.get(id(incident))
    if known is not None and known[0] is incident:
        return known[1]
    if len(_KNOWN) > 20_000:
        _KNOWN.clear()
    moments = {name: at for name, at in _values(incident, _TIMES) if at is not None}
    facts = tuple(
        value if type(value) in _PLAIN else _hashable(value)
        for _, value in _values(incident, _FACTS)
    )
    read = ((*facts, *moments), tuple(moments.values()))
    _KNOWN[id(incident)] = (incident, read)
    return read


def _values(incident: Incident, read: _Reading) -> Iterator[tuple[str, Any]]:
    """Yield the values of a record by their names, None for those of a section it has not."""
    for of, (names, values_of) in read.items():
        holder = incident if of is None else getattr(incident, of)
        yield from zip(names, repeat(None) if holder is None else values_of(holder), strict=False)


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((str(k), str(v)) for k, v in value.items()))
    return tuple(value) if isinstance(value, list | set) else value


def _happening(key: tuple[Any, ...], world: World) -> tuple[str, ...]:
    """Name what is about to happen without the number of its message."""
    if key[0] == "asks":
        return key[:3]
    message = world.messages.get(key[1]) if len(key) > 1 and isinstance(key[1], int) else None
    if message is None:
        return tuple(str(part) for part in key)
    if message.queue == "webhook":
        return ("webhook", message.body)
    if message.queue == "nth":
        return ("nth", _about(message.body), str(message.receives > 0))
    if message.queue == "events":
        return ("events", _about(message.body), str(message.receives))
    return ("ticks", *_tick(message, world))


def _tick(message: Message, world: World) -> tuple[str, ...]:
    named = _read(message.body)
    if "page" in named:
        return ("page", str(named.get("incident_id")), str(named["page"]), str(message.receives))
    incident = world.incidents.get(str(named.get("incident_id")))
    if incident is None:
        return (message.body,)
    current = incident.version == named["version"]
    return (incident.id, str(current), str(message.receives))


@lru_cache(maxsize=65536)
def _read(body: str) -> dict[str, Any]:
    return dict(json.loads(body))


@lru_cache(maxsize=65536)
def _about(body: str) -> str:
    told = _read(body)
    hook = told.get("detail", told).get("LifecycleHookName", "")
    return f"{drain_of(body)[1]} {hook}"
