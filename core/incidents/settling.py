"""How a decision that was carried out is kept: the state it led to, and what was done for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.incidents.actions import (
    Action,
    CompleteHook,
    ForwardDrain,
    FreeSpare,
    Heartbeat,
    KeepSpare,
    MoveLeaders,
    Page,
    RestoreLeaders,
    SetDesired,
    TaintOutOfService,
    TerminateInGroup,
    Untaint,
)
from core.incidents.record import ALLOWED, Decision, Incident, Transition

# Reasons name partitions, so they vary; the item must stay far below DynamoDB's 400 KB.
MOST_NOTES = 200
# Actions that are remembered by when they were done last, and those that undo one.
_TIMES: Mapping[type[object], str] = {
    Heartbeat: "heartbeat_at",
    TaintOutOfService: "tainted_at",
    MoveLeaders: "leaders_moved_at",
    SetDesired: "raised_at",
}
_UNDONE: Mapping[type[object], str] = {Untaint: "tainted_at", RestoreLeaders: "leaders_moved_at"}


def settle(incident: Incident, decision: Decision, now: float, *, actor: str = "tick") -> Incident:
    """Record that a decision was carried out.

    Raises ValueError for a transition DESIGN does not allow.
    """
    if decision.state is not incident.state and decision.state not in ALLOWED[incident.state]:
        raise ValueError(f"Incident {incident.id} may not go {incident.state} -> {decision.state}.")
    entry = Transition(now, decision.state, actor, decision.reason)
    moved = decision.state is not incident.state
    delay = decision.delay_seconds
    found = decision.replacement not in {None, incident.replacement}
    acted = _acted(incident, decision, now)
    return replace(
        acted,
        state=decision.state,
        reason=decision.reason,
        transitions=(*incident.transitions, entry) if moved else incident.transitions,
        notes=_noted(incident, entry, moved=moved),
        pages=incident.pages + tuple(a.key for a in decision.actions if isinstance(a, Page)),
        replacement=decision.replacement or incident.replacement,
        replacement_ready_at=now if found else incident.replacement_ready_at,
        expects_return=incident.expects_return and not decision.without_replacement,
        surge_to=incident.surge_to if decision.surge_to is None else decision.surge_to,
        lost_at=incident.lost_at or (now if decision.lost else None),
        **_found_forwarded(acted, decision),
        next_tick_at=None if delay is None else now + delay,
    )


def note_refusal(incident: Incident, words: str | None, now: float) -> Incident:
    """Keep what a group said when it was asked to terminate the instance; None: it does."""
    if words is None:
        return incident
    return replace(incident, refused_at=incident.refused_at or now, refusal=words)


def _found_forwarded(acted: Incident, decision: Decision) -> dict[str, Any]:
    if decision.forwarded_at is None or acted.forwarded_at is not None:
        return {}
    at = decision.forwarded_at
    return {"forwarded_at": at, "forwarded_last_at": at, "forwards": 1}


def _acted(incident: Incident, decision: Decision, now: float) -> Incident:
    """Remember the actions that later decisions ask about."""
    for action in decision.actions:
        incident = replace(incident, **_remembered(incident, action, now))
    return incident


def _remembered(incident: Incident, action: Action, now: float) -> dict[str, Any]:
    """Return the fields in which an action is remembered."""
    if isinstance(action, ForwardDrain):
        return {
            "forwarded_at": incident.forwarded_at or now,
            "forwarded_last_at": now,
            "forwards": incident.forwards + 1,
        }
    if isinstance(action, CompleteHook):
        return {"completed_at": incident.completed_at or now}
    if isinstance(action, TerminateInGroup):
        return {} if action.instance_id else {"terminate_asked_at": now}
    if isinstance(action, KeepSpare):
        return {"spare": action.node}
    if isinstance(action, FreeSpare):
        return {"spare": None} if action.node == incident.spare else {}
    done, undone = _TIMES.get(type(action)), _UNDONE.get(type(action))
    return {done: now} if done else {undone: None} if undone else {}


def _noted(incident: Incident, entry: Transition, *, moved: bool) -> tuple[Transition, ...]:
    if moved or entry.reason == incident.reason or len(incident.notes) >= MOST_NOTES:
        return incident.notes
    return (*incident.notes, entry)
