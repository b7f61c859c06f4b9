"""Decides what the desk shows of a reading: `page_state` and the parts it is made of, all pure.

Times are epoch seconds, which the page turns into ages; so what has not changed reads the same at
the next look, and the page leaves it alone. What was not read is said, and is never good news.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from cli.desk.reading import EVERY_SECONDS, DeskReading, DeskSource, LedgerSeen, VolumesSeen
from cli.incidents import entries
from core.availability.lease import Lease, hinders, valid_leases
from core.cost.pricing import HOURS_PER_MONTH
from core.ground.words import span, time_said
from core.health.verdict import Health
from core.incidents.record import Incident, State
from core.rotation.run_record import NodeTurn, Phase, Run, RunState
from core.slack import PHASES, outlook, subject, symbol
from core.volumes.sizing import GIB
from core.volumes.views import FillForecast, forecast, free_slots
from core.zones.incident import ZoneIncident
from handlers.store.volume_records import Memory

MOST_ENTRIES = 14
# The way of an incident that ends well.
WAY = (State.OPENED, State.REPLACING, State.HOLDING, State.DRAINING, State.GATING, State.RELEASED)
AWAITED = {
    State.OPENED: "its replacement",
    State.REPLACING: "its replacement",
    State.HOLDING: "Kafka's consent",
}
# So many turns missed: what is shown may not be true any more.
MISSED_TURNS = 4
OUT = frozenset({State.DRAINING, State.GATING})


def _incident_part(incident: Incident, hold_limit_seconds: float) -> dict[str, Any]:
    """Return one incident with where it stands, why, and what a person may wish."""
    wishes = ["hold", "release"] if incident.open else []
    return {
        "id": incident.id,
        "instance": incident.instance_id,
        "subject": subject(incident),
        "symbol": symbol(incident.state),
        "state": incident.state.value,
        "open": incident.open,
        "announced": incident.kind.value,
        "opened_at": incident.opened_at,
        "entered_at": incident.entered_at,
        "reason": incident.reason,
        "outlook": outlook(incident, hold_limit_seconds),
        "due_at": incident.due_at,
        "held_until": incident.held_until,
        "facts": {
            name: value
            for name, value in (
                ("group", incident.group),
                ("node", incident.node_name),
                ("pod", incident.pod_name),
                ("replacement", incident.replacement_node),
            )
            if value
        },
        "pages": list(incident.pages),
        "way": _way(incident),
        "history": _history(incident),
        "wishes": ["release"] if incident.state is State.RETAINED else wishes,
    }


def _way(incident: Incident) -> list[dict[str, Any]]:
    """Return the states it went through and those ahead, each with when it was entered and left."""
    gone = [
        {"state": earlier.state.value, "from": earlier.at, "to": later.at}
        for earlier, later in itertools.pairwise(incident.transitions)
        if earlier.state is not later.state
    ]
    here = {"state": incident.state.value, "from": incident.entered_at, "to": None}
    ahead = WAY[WAY.index(incident.state) + 1 :] if incident.state in WAY else ()
    return [*gone, here, *({"state": s.value, "from": None, "to": None} for s in ahead)]


def _history(incident: Incident) -> list[dict[str, Any]]:
    return [
        {"at": e.at, "who": e.actor, "state": e.state.value, "what": e.reason}
        for e in entries(incident)[-MOST_ENTRIES:]
    ]


def _lease_part(lease: Lease, holder: str) -> dict[str, Any]:
    """Return who may take a node out, or has."""
    return {
        "holder": holder,
        "incident": lease.holder,
        "party": lease.party,
        "out_at": lease.out_at,
        "forwarded_at": lease.forwarded_at,
        "expires_at": None if lease.out_at is not None else lease.expires_at,
    }


def _zone_part(zone: ZoneIncident) -> dict[str, Any]:
    return {
        "zone": zone.zone or zone.zone_id or ", ".join(zone.zone_ids) or "none named",
        "state": zone.state.value,
        "by": zone.owner or zone.source,
        "opened_at": zone.opened_at,
        "until": zone.until,
        "reason": zone.reason,
        "said": zone.said,
    }


def _run_part(run: Run) -> dict[str, Any]:
    """Return a rotation run with every node's stretch of time."""
    done = sum(turn.phase in {Phase.DONE, Phase.SKIPPED} for turn in run.turns)
    wishes = {RunState.RUNNING: ["rotation-pause"], RunState.PAUSED: ["rotation-resume"]}
    return {
        "id": run.id,
        "state": run.state.value,
        "by": run.started_by,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "reason": run.reason,
        "done": done,
        "nodes": len(run.turns),
        "turns": [_turn_part(each) for each in run.turns],
        "wishes": wishes.get(run.state, []),
    }


def _turn_part(turn: NodeTurn) -> dict[str, Any]:
    return {
        "node": f"{turn.role} {turn.node_id}",
        "zone": turn.zone,
        "instance": turn.instance_id,
        "phase": turn.phase.value,
        "symbol": PHASES[turn.phase],
        "began_at": turn.began_at,
        "released_at": turn.released_at,
        "done_at": turn.done_at,
        "expected_seconds": turn.expected_seconds,
        "why": turn.reason or turn.why,
    }


def _volumes_part(seen: VolumesSeen | None) -> dict[str, Any] | None:
    """Return every claim's fill and forecast, and what λ volumes decided."""
    if seen is None:
        return None
    sizes = seen.plan.get("sizes_gib", {})
    return {
        "planned_at": seen.plan.get("at"),
        "mode": seen.plan.get("mode"),
        "claims": [
            _claim(claim, memory, sizes.get(claim)) for claim, memory in seen.memories.items()
        ],
        "decisions": [
            {
                "volume": f"{each['pool']} {each['volume']}",
                "kind": each["kind"],
                "reason": each["reason"],
                "applied": each["applied"],
                "emergency": each["emergency"],
            }
            for each in seen.plan.get("decisions", ())
        ],
        "unknown": list(seen.plan.get("unknown", ())),
    }


def _claim(claim: str, memory: Memory, size_gib: int | None) -> dict[str, Any]:
    last = memory.samples[-1] if memory.samples else None
    ahead = None if last is None else forecast(memory.samples, last.used_bytes, last.at)
    share = None if last is None or not size_gib else last.used_bytes / (size_gib * GIB)
    looked_at = memory.history.looked_at
    return {
        "claim": claim,
        "size_gib": size_gib,
        "used_gib": None if last is None else last.used_bytes / GIB,
        "used_share": share,
        "read_at": None if last is None else last.at,
        "forecast": _forecast_said(ahead, size_gib),
        "slots": None if looked_at is None else free_slots(memory.history, looked_at),
    }


def _forecast_said(ahead: FillForecast | None, size_gib: int | None) -> str:
    if ahead is None or not size_gib:
        return "The time until it is full is unknown: its use or its size was not read."
    seconds = ahead.seconds_until(size_gib * GIB)
    if seconds is None:
        return f"By the trend of {span(ahead.span_seconds)} it does not fill up."
    if seconds <= 0:
        return "Full, by its trend and the height of its swings."
    return f"Full in {span(seconds)}, by the trend of {span(ahead.span_seconds)}."


def _health_part(said: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return λ health's answer as it is shown: each kind of part, the unwell ones with reasons."""
    if said is None:
        return None
    return {
        "status": said["status"],
        "message": said["message"],
        "at": said["at"],
        "parts": [
            {key: part[key] for key in ("kind", "name", "status", "reason", "notes")}
            for part in said["parts"]
        ],
    }


def _cost_parts(reading: DeskReading, now: float) -> list[dict[str, str]]:
    """Return what is known of dollars, at list price; what is unknown is said."""
    monthly = reading.cluster.monthly_usd
    unknown = "unknown: a price of this region is missing"
    found = [
        {
            "what": "This cluster as described, at list price, as far as known",
            "usd": unknown
            if monthly is None
            else f"${monthly:,.0f} a month, ${monthly / HOURS_PER_MONTH:,.2f} an hour",
        }
    ]
    plan = (reading.answer(DeskSource.VOLUMES).value or VolumesSeen()).plan
    if plan.get("above_spec_usd") is not None:
        said = f"${plan['above_spec_usd']} a month, ${plan['planned_usd']} with λ volumes' plan"
        found.append({"what": "Volumes above what is described", "usd": said})
    ledger = reading.answer(DeskSource.LEDGER).value
    if ledger is not None and ledger.run is not None:
        found.append(
            {
                "what": "Old instances and their replacements, in this rotation",
                "usd": _double(reading, now),
            }
        )
    return found


def _double(reading: DeskReading, now: float) -> str:
    """Return what a run's old instances cost beside their replacements, from begin to release."""
    run: Run = reading.answer(DeskSource.LEDGER).value.run
    seconds, usd, unpriced = 0.0, 0.0, False
    for turn in run.turns:
        if turn.began_at is None:
            continue
        beside = (turn.released_at or run.ended_at or now) - turn.began_at
        hourly = reading.cluster.hourly_usd_by_pool.get(turn.pool)
        seconds += beside
        unpriced = unpriced or hourly is None
        usd += (hourly or 0.0) * beside / 3600
    price = "at an unknown price" if unpriced else f"${usd:,.2f}"
    return f"{price} for {span(seconds)}"


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
    answer = reading.answer(DeskSource.LEDGER)
    seen: LedgerSeen | None = answer.value
    sources = [source_state(reading, source, now) for source in DeskSource]
    ledger = None if seen is None else _ledger(seen, reading, now)
    return {
        "now": now,
        "cluster": asdict(reading.cluster),
        "verdict": asdict(verdict(reading, sources, now)),
        "sources": [asdict(each) for each in sources],
        **(ledger or dict.fromkeys(("incidents", "waits", "leases", "zones", "run", "pause"))),
        "volumes": _volumes_part(reading.answer(DeskSource.VOLUMES).value),
        "health": _health_part(reading.answer(DeskSource.HEALTH).value),
        "costs": _cost_parts(reading, now),
    }


def _ledger(seen: LedgerSeen, reading: DeskReading, now: float) -> dict[str, Any]:
    limit = reading.cluster.hold_limit_seconds
    return {
        "incidents": [
            _incident_part(each, limit)
            # Who is out comes first, then who was announced first.
            for each in sorted(seen.incidents, key=lambda each: each.state not in OUT)
        ],
        "waits": [asdict(each) for each in waits(seen, now)],
        "leases": [
            _lease_part(each, _holder_name(seen, each)) for each in valid_leases(seen.leases, now)
        ],
        "zones": [_zone_part(each) for each in seen.zones if each.open],
        "run": None if seen.run is None else _run_part(seen.run),
        "pause": None if seen.pause is None else seen.pause.sentence,
    }


def source_state(reading: DeskReading, source: DeskSource, now: float) -> SourceState:
    """Say whether a source's answer may still be believed."""
    answer = reading.answer(source)
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
    seen: LedgerSeen | None = reading.answer(DeskSource.LEDGER).value
    troubles = tuple(each.trouble for each in sources if each.trouble)
    if seen is None:
        return DeskVerdict(Tone.UNKNOWN, "The brokers that are out are unknown", troubles)
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
    if (until := incident.held_to(now)) is not None:
        found.append(("a person's hold", f"Held until {time_said(until)}."))
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
    found = found or [(AWAITED.get(incident.state, "its next step"), "")]
    why = [said for _, said in found if said]
    return DeskWait(subject(incident), tuple(name for name, _ in found), (*why, incident.reason))


def _waits_of_run(run: Run) -> list[DeskWait]:
    if run.over:
        return []
    away = tuple(f"{turn.role} {turn.node_id}" for turn in run.open_turns)
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
    said: Mapping[str, Any] | None = reading.answer(DeskSource.HEALTH).value
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
