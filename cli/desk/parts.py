"""Renders each part of the desk as plain data: an incident, a lease, a run, a volume, a price."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from cli.desk.reading import DeskReading, DeskSource, VolumesSeen
from core.availability.lease import Lease
from core.cost.pricing import HOURS_PER_MONTH
from core.incidents.record import Incident, State
from core.rotation.run_record import NodeTurn, Phase, Run, RunState
from core.slack.rotation_thread import PHASES
from core.slack.text import outlook, subject, symbol
from core.volumes.sizing import GIB
from core.volumes.views import FillForecast, forecast, free_slots
from core.words import span
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


def incident(of: Incident, hold_limit_seconds: float) -> dict[str, Any]:
    """Return one incident with where it stands, why, and what a person may wish."""
    wishes = ["hold", "release"] if of.open else []
    return {
        "id": of.id,
        "instance": of.instance_id,
        "subject": subject(of),
        "symbol": symbol(of.state),
        "state": of.state.value,
        "open": of.open,
        "announced": of.kind.value,
        "opened_at": of.opened_at,
        "entered_at": of.entered_at,
        "reason": of.reason,
        "outlook": outlook(of, hold_limit_seconds),
        "due_at": of.due_at,
        "held_until": of.held_until,
        "facts": {
            name: value
            for name, value in (
                ("group", of.group),
                ("node", of.node_name),
                ("pod", of.pod_name),
                ("replacement", of.replacement_node),
            )
            if value
        },
        "pages": list(of.pages),
        "way": _way(of),
        "history": _history(of),
        "wishes": ["release"] if of.state is State.RETAINED else wishes,
    }


def _way(of: Incident) -> list[dict[str, Any]]:
    """Return the states it went through and those ahead, each with when it was entered and left."""
    gone = [
        {"state": earlier.state.value, "from": earlier.at, "to": later.at}
        for earlier, later in itertools.pairwise(of.transitions)
        if earlier.state is not later.state
    ]
    here = {"state": of.state.value, "from": of.entered_at, "to": None}
    ahead = WAY[WAY.index(of.state) + 1 :] if of.state in WAY else ()
    return [*gone, here, *({"state": s.value, "from": None, "to": None} for s in ahead)]


def _history(of: Incident) -> list[dict[str, Any]]:
    entries = sorted((*of.transitions, *of.notes), key=lambda entry: entry.at)
    return [
        {"at": e.at, "who": e.actor, "state": e.state.value, "what": e.reason}
        for e in entries[-MOST_ENTRIES:]
    ]


def lease(of: Lease, holder: str) -> dict[str, Any]:
    """Return who may take a node out, or has."""
    return {
        "holder": holder,
        "incident": of.holder,
        "party": of.party,
        "out_at": of.out_at,
        "forwarded_at": of.forwarded_at,
        "expires_at": None if of.out_at is not None else of.expires_at,
    }


def zone(of: ZoneIncident) -> dict[str, Any]:
    return {
        "zone": of.zone or of.zone_id or ", ".join(of.zone_ids) or "none named",
        "state": of.state.value,
        "by": of.owner or of.source,
        "opened_at": of.opened_at,
        "until": of.until,
        "reason": of.reason,
        "said": of.said,
    }


def run(of: Run) -> dict[str, Any]:
    """Return a rotation run with every node's stretch of time."""
    done = sum(turn.phase in {Phase.DONE, Phase.SKIPPED} for turn in of.turns)
    wishes = {RunState.RUNNING: ["rotation-pause"], RunState.PAUSED: ["rotation-resume"]}
    return {
        "id": of.id,
        "state": of.state.value,
        "by": of.started_by,
        "started_at": of.started_at,
        "ended_at": of.ended_at,
        "reason": of.reason,
        "done": done,
        "nodes": len(of.turns),
        "turns": [_turn(each) for each in of.turns],
        "wishes": wishes.get(of.state, []),
    }


def _turn(of: NodeTurn) -> dict[str, Any]:
    return {
        "node": f"{of.role} {of.node_id}",
        "zone": of.zone,
        "instance": of.instance_id,
        "phase": of.phase.value,
        "symbol": PHASES[of.phase],
        "began_at": of.began_at,
        "released_at": of.released_at,
        "done_at": of.done_at,
        "expected_seconds": of.expected_seconds,
        "why": of.reason or of.why,
    }


def volumes(seen: VolumesSeen | None) -> dict[str, Any] | None:
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
        return "Nobody knows when it is full: its fill or its size was not read."
    seconds = ahead.seconds_until(size_gib * GIB)
    if seconds is None:
        return f"By the trend of {span(ahead.span_seconds)} it does not fill up."
    if seconds <= 0:
        return "Full, by its trend and the height of its swings."
    return f"Full in {span(seconds)}, by the trend of {span(ahead.span_seconds)}."


def health(said: Mapping[str, Any] | None) -> dict[str, Any] | None:
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


def costs(reading: DeskReading, now: float) -> list[dict[str, str]]:
    """Return what is known of dollars, at list price; what is unknown is said."""
    monthly = reading.cluster.monthly_usd
    unknown = "unknown: a price of this region is missing"
    found = [
        {
            "what": "This cluster as described, at list price",
            "usd": unknown
            if monthly is None
            else f"${monthly:,.0f} a month, ${monthly / HOURS_PER_MONTH:,.2f} an hour",
        }
    ]
    plan = (reading.of(DeskSource.VOLUMES).value or VolumesSeen()).plan
    if plan.get("above_spec_usd") is not None:
        said = f"${plan['above_spec_usd']} a month, ${plan['planned_usd']} with λ volumes' plan"
        found.append({"what": "Volumes above what is described", "usd": said})
    ledger = reading.of(DeskSource.LEDGER).value
    if ledger is not None and ledger.run is not None:
        found.append(
            {
                "what": "Old instances beside their replacements, in this rotation",
                "usd": _double(reading, now),
            }
        )
    return found


def _double(reading: DeskReading, now: float) -> str:
    """Return what a run's old instances cost beside their replacements, from begin to release."""
    run: Run = reading.of(DeskSource.LEDGER).value.run
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
