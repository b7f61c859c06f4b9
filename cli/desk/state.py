"""Decides what the desk shows of a reading: one pure function, `page_state`.

Times are epoch seconds, which the page turns into ages; so what has not changed reads the same at
the next look, and the page leaves it alone. What was not read is said, and is never good news.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from cli.desk import parts
from cli.desk.reading import EVERY_SECONDS, DeskReading, DeskSource, LedgerSeen
from core.availability.lease import Lease, hinders, valid_leases
from core.health.verdict import Health
from core.incidents.record import Incident, State
from core.rotation.run_record import Phase, Run, RunState
from core.slack.text import subject
from core.words import time_said

# So many turns missed: what is shown may not be true any more.
MISSED_TURNS = 4
OUT = frozenset({State.DRAINING, State.GATING})


class Tone(StrEnum):
    """How much somebody on call has to look."""

    CALM = "calm"
    BUSY = "busy"
    UNKNOWN = "unknown"
    ALARM = "alarm"


@dataclass(frozen=True, slots=True)
class DeskVerdict:
    """The whole in a line, and what asks for a person's eyes."""

    tone: Tone
    title: str
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeskWait:
    """Who waits for whom or what, and why; every reason there is."""

    who: str
    behind: tuple[str, ...]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceState:
    """When a source was read, and what is wrong with that; empty: nothing."""

    name: str
    read_at: float | None
    trouble: str


def page_state(reading: DeskReading, now: float) -> dict[str, Any]:
    """Return all that the page shows, ready for JSON."""
    answer = reading.of(DeskSource.LEDGER)
    seen: LedgerSeen | None = answer.value
    sources = [source_state(reading, source, now) for source in DeskSource]
    ledger = None if seen is None else _ledger(seen, reading, now)
    return {
        "now": now,
        "cluster": asdict(reading.cluster),
        "verdict": asdict(verdict(reading, sources, now)),
        "sources": [asdict(each) for each in sources],
        **(ledger or dict.fromkeys(("incidents", "waits", "leases", "zones", "run", "pause"))),
        "volumes": parts.volumes(reading.of(DeskSource.VOLUMES).value),
        "health": parts.health(reading.of(DeskSource.HEALTH).value),
        "costs": parts.costs(reading, now),
    }


def _ledger(seen: LedgerSeen, reading: DeskReading, now: float) -> dict[str, Any]:
    limit = reading.cluster.hold_limit_seconds
    return {
        "incidents": [
            parts.incident(each, limit)
            # Who is out comes first, then who was announced first.
            for each in sorted(seen.incidents, key=lambda each: each.state not in OUT)
        ],
        "waits": [asdict(each) for each in waits(seen, now)],
        "leases": [
            parts.lease(each, _holder_name(seen, each)) for each in valid_leases(seen.leases, now)
        ],
        "zones": [parts.zone(each) for each in seen.zones if each.open],
        "run": None if seen.run is None else parts.run(seen.run),
        "pause": None if seen.pause is None else seen.pause.sentence,
    }


def source_state(reading: DeskReading, source: DeskSource, now: float) -> SourceState:
    """Say whether a source's answer may still be believed."""
    answer = reading.of(source)
    late = MISSED_TURNS * EVERY_SECONDS[source]
    if answer.failed:
        since = "never" if answer.read_at is None else time_said(answer.read_at)
        trouble = f"{source.capitalize()} cannot be read ({answer.failed}); last read: {since}."
    elif answer.read_at is None:
        trouble = f"{source.capitalize()} was not read yet."
    elif now - answer.read_at > late:
        trouble = f"{source.capitalize()} was last read at {time_said(answer.read_at)}."
    else:
        trouble = ""
    return SourceState(source.value, answer.read_at, trouble)


def verdict(reading: DeskReading, sources: list[SourceState], now: float) -> DeskVerdict:
    """Return the whole in a line: who is out, who waits, and what a person must see."""
    seen: LedgerSeen | None = reading.of(DeskSource.LEDGER).value
    troubles = tuple(each.trouble for each in sources if each.trouble)
    if seen is None:
        return DeskVerdict(Tone.UNKNOWN, "Nobody can tell who is out", troubles)
    out = names_out(seen, now)
    waiting = [each for each in seen.incidents if each.open and each.state not in OUT]
    alarms = tuple(_alarms(seen, reading))
    pause = () if seen.pause is None else (seen.pause.sentence,)
    frozen = tuple(each.freeze().sentence for each in seen.zones if each.holds(now))
    running = seen.run is not None and seen.run.state is RunState.RUNNING
    title = f"{_sentence_start(out)} out" if out else "Nobody is out"
    if waiting:
        title += f", {len(waiting)} more {'waits' if len(waiting) == 1 else 'wait'}"
    if any(each.trouble for each in sources if each.name == DeskSource.LEDGER):
        return DeskVerdict(Tone.UNKNOWN, f"As last read: {title}", (*troubles, *alarms, *pause))
    said = (*alarms, *pause, *frozen, *troubles)
    if alarms:
        return DeskVerdict(Tone.ALARM, title, said)
    if troubles:
        return DeskVerdict(Tone.UNKNOWN, title, said)
    busy = bool(out or waiting or pause or frozen or running)
    return DeskVerdict(Tone.BUSY if busy else Tone.CALM, title, said)


def names_out(seen: LedgerSeen, now: float) -> list[str]:
    """Return who is drained, gated or holds a lease that was used."""
    out = {each.id: _short(each) for each in seen.incidents if each.open and each.state in OUT}
    for each in valid_leases(seen.leases, now):
        if each.out_at is not None:
            out.setdefault(each.holder, _holder_name(seen, each))
    return list(out.values())


def waits(seen: LedgerSeen, now: float) -> list[DeskWait]:
    """Return who waits for what: incidents first, then the nodes of a run."""
    found = [
        _wait_of(incident, seen, now)
        for incident in seen.incidents
        if incident.open and incident.state not in OUT
    ]
    return found + ([] if seen.run is None else _waits_of_run(seen.run))


def _wait_of(incident: Incident, seen: LedgerSeen, now: float) -> DeskWait:
    """Say what an incident waits for; where no record is in its way, it is its state's next."""
    found: list[tuple[str, str]] = []
    if seen.pause is not None:
        found.append(("the pause", seen.pause.sentence))
    if incident.held_until is not None and now < incident.held_until:
        found.append(("a person's hold", f"Held until {time_said(incident.held_until)}."))
    found += [
        (zone.where, zone.freeze().sentence)
        for zone in seen.zones
        if zone.holds(now) and zone.zone is not None and zone.zone == incident.zone
    ]
    found += [
        (_holder_name(seen, lease), "")
        for lease in valid_leases(seen.leases, now)
        if hinders(lease, incident.id, incident.party)
    ]
    found = found or [(parts.AWAITED.get(incident.state, "its next step"), "")]
    why = [said for _, said in found if said]
    return DeskWait(subject(incident), tuple(name for name, _ in found), (*why, incident.reason))


def _waits_of_run(run: Run) -> list[DeskWait]:
    if run.over:
        return []
    away = tuple(f"{turn.role} {turn.node_id}" for turn in run.in_hand)
    behind = away or ("its turn" if run.state is RunState.RUNNING else "a person",)
    return [
        DeskWait(f"{turn.role} {turn.node_id}, {turn.zone}", behind, (turn.reason or run.reason,))
        for turn in run.turns
        if turn.phase is Phase.WAITING
    ]


def _alarms(seen: LedgerSeen, reading: DeskReading) -> Iterator[str]:
    for each in seen.incidents:
        if each.state in {State.RETAINED, State.LOST} or (each.open and each.pages):
            yield f"{subject(each).capitalize()} needs a person: {each.reason}"
    if seen.run is not None and seen.run.state is RunState.STOPPED:
        yield f"The rotation stopped: {seen.run.reason}"
    said: Mapping[str, Any] | None = reading.of(DeskSource.HEALTH).value
    if said is not None and said.get("status") in {Health.UNHEALTHY, Health.UNKNOWN}:
        yield f"λ health: {said['message']}"


def _holder_name(seen: LedgerSeen, lease: Lease) -> str:
    """Name who holds a lease, as its incident does."""
    known = next((each for each in seen.incidents if each.id == lease.holder), None)
    if known is not None:
        return subject(known)
    return lease.holder if lease.node_id is None else f"node {lease.node_id} ({lease.holder})"


def _short(incident: Incident) -> str:
    """Name an incident's node without its place."""
    return subject(incident).partition(", ")[0]


def _sentence_start(names: list[str]) -> str:
    said = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{said[:1].upper()}{said[1:]} {'are' if len(names) > 1 else 'is'}"
