"""Records a decision that was carried out: the state it led to, and what was done for it."""

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
    ReplaceRoot,
    RestoreLeaders,
    TaintOutOfService,
    TerminateInGroup,
    Uncordon,
    Untaint,
)
from core.incidents.record import ALLOWED, Decision, Incident, Transition
from core.incidents.sections import Forwarding, GroupRefusal, InPlace, Replacement

# Actions that are remembered by when they were done last, and those that undo one.
_TIMES: Mapping[type[object], str] = {
    Heartbeat: "heartbeat_at",
    TaintOutOfService: "tainted_at",
    MoveLeaders: "leaders_moved_at",
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
    acted = _remember_actions(incident, decision, now)
    if not moved and decision.reason != incident.reason:
        acted = acted.with_note(now, actor, decision.reason)
    return replace(
        acted,
        state=decision.state,
        reason=decision.reason,
        transitions=(*incident.transitions, entry) if moved else incident.transitions,
        pages=incident.pages + tuple(a.key for a in decision.actions if isinstance(a, Page)),
        replacement=_replacement(incident, decision, now),
        expects_return=incident.expects_return and not decision.without_replacement,
        surge_to=incident.surge_to if decision.surge_to is None else decision.surge_to,
        in_place=_in_place(acted, decision),
        turn_due_at=decision.turn_due_at,
        lost_at=incident.lost_at or (now if decision.lost else None),
        forwarded=_found_forwarded(acted, decision),
        next_tick_at=None if delay is None else now + delay,
    )


def _replacement(incident: Incident, decision: Decision, now: float) -> Replacement | None:
    found = decision.replacement
    if found is None or found == incident.replacement_node:
        return incident.replacement
    return Replacement(node=found, ready_at=now)


def _in_place(acted: Incident, decision: Decision) -> InPlace | None:
    """Keep why a root volume is not replaced after all; the first reason stands."""
    why, place = decision.not_in_place, acted.in_place
    if place is None or why is None or place.refusal is not None:
        return place
    return replace(place, refusal=why)


def note_refusal(incident: Incident, words: str | None, now: float) -> Incident:
    """Keep what was answered where something was asked for and refused; None: nothing was.

    By EC2, about the root volume, for as long as that is to be replaced in place; else by the
    group that was asked to terminate the instance.
    """
    if words is None:
        return incident
    place = incident.in_place
    if place is not None and place.refusal is None:
        return replace(incident, in_place=replace(place, refusal=words))
    before = incident.refusal
    refusal = GroupRefusal(since=before.since if before else now, words=words)
    return replace(incident, refusal=refusal)


def _found_forwarded(acted: Incident, decision: Decision) -> Forwarding | None:
    """Count a drain that an invocation has sent and not lived to record."""
    at = decision.forwarded_at
    return acted.forwarded if at is None else _forwarding_at(acted.forwarded, at)


def _forwarding_at(before: Forwarding | None, at: float) -> Forwarding:
    return Forwarding(first_at=at, last_at=at) if before is None else before.again(at)


def _remember_actions(incident: Incident, decision: Decision, now: float) -> Incident:
    """Remember the actions that later decisions ask about."""
    for action in decision.actions:
        incident = replace(incident, **_remembered_fields(incident, action, now))
        if incident.in_place is not None and isinstance(action, ReplaceRoot | Uncordon):
            incident = replace(incident, in_place=_in_place_after(incident.in_place, action, now))
    return incident


def _remembered_fields(incident: Incident, action: Action, now: float) -> dict[str, Any]:
    """Return the fields in which an action is remembered."""
    if isinstance(action, ForwardDrain):
        return {"forwarded": _forwarding_at(incident.forwarded, now)}
    if isinstance(action, CompleteHook):
        return {"completed_at": incident.completed_at or now}
    if isinstance(action, TerminateInGroup):
        return {} if action.instance_id else {"terminate_asked_at": _asked_at(incident, now)}
    if isinstance(action, KeepSpare):
        return {"spare": action.node}
    if isinstance(action, FreeSpare):
        return {"spare": None} if action.node == incident.spare else {}
    done, undone = _TIMES.get(type(action)), _UNDONE.get(type(action))
    return {done: now} if done else {undone: None} if undone else {}


def _asked_at(incident: Incident, now: float) -> float:
    """Return when a group was asked to terminate; of one that accepted, the first time."""
    before, said = incident.terminate_asked_at, incident.release
    again = said is not None and before is not None and said.at > before
    kept = before is not None and incident.refusal is None and not again
    return before if kept and before is not None else now


def _in_place_after(place: InPlace, action: ReplaceRoot | Uncordon, now: float) -> InPlace:
    if isinstance(action, Uncordon):
        return replace(place, returned_at=place.returned_at or now)
    if action.trial:
        return replace(place, tried_at=now)
    return replace(place, asked_at=place.asked_at or now)
