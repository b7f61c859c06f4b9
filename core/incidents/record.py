"""One incident per instance: what is remembered about it, and how announcements join it.

The ledger stores an Incident whole (core.incidents.codec). Announcements change facts
(`open_incident`, `merge`), people and groups add theirs (core.incidents.requests), readings too
(core.incidents.learn), decisions move the state (`settle`); nothing else does. core.incidents
decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from core.events import Interruption, Kind
from core.incidents.observation import (
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
from core.naming import DRAIN_HOOK


class State(StrEnum):
    """Where an incident stands; DESIGN: How an interruption flows."""

    OPENED = "opened"
    REPLACING = "replacing"
    HOLDING = "holding"
    DRAINING = "draining"
    GATING = "gating"
    RELEASED = "released"
    RIDDEN_THROUGH = "ridden_through"
    CANCELLED = "cancelled"
    RETAINED = "retained"
    LOST = "lost"


TERMINAL = frozenset(
    {State.RELEASED, State.RIDDEN_THROUGH, State.CANCELLED, State.RETAINED, State.LOST}
)
_SIDE_EXITS = frozenset({State.CANCELLED, State.RETAINED, State.LOST})
# An instance that is lost without warning has nothing left to drain: it goes to the gate at once.
ALLOWED: Mapping[State, frozenset[State]] = {
    State.OPENED: _SIDE_EXITS
    | {State.REPLACING, State.DRAINING, State.GATING, State.RIDDEN_THROUGH},
    State.REPLACING: _SIDE_EXITS | {State.HOLDING, State.DRAINING, State.GATING},
    State.HOLDING: _SIDE_EXITS | {State.REPLACING, State.DRAINING, State.GATING},
    State.DRAINING: frozenset({State.GATING, State.RELEASED, State.RETAINED, State.LOST}),
    State.GATING: frozenset({State.RELEASED, State.RETAINED, State.LOST, State.RIDDEN_THROUGH}),
    **{state: frozenset() for state in TERMINAL},
}
# A later kind governs an earlier one: what was planned becomes a termination, what was a
# termination becomes a two-minute warning.
_GRAVITY = (
    Kind.ASG_LAUNCH,
    Kind.STATE_CHANGE,
    Kind.REBALANCE,
    Kind.INSTANCE_ISSUE,
    Kind.INSTANCE_STORE_DEGRADED,
    Kind.VOLUME_PROBLEM,
    Kind.SICK_NODE,
    Kind.SCHEDULED_CHANGE,
    Kind.ROTATION,
    Kind.ASG_TERMINATE,
    Kind.CAPACITY_RESERVATION,
    Kind.SPOT_INTERRUPTION,
)
URGENT = frozenset({Kind.SPOT_INTERRUPTION, Kind.CAPACITY_RESERVATION})
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


@dataclass(frozen=True, slots=True)
class Transition:
    """A state the incident entered, or a reason that changed while it stayed."""

    at: float  # epoch seconds
    state: State
    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Everything the loop remembers about one instance that is leaving."""

    id: str
    instance_id: str
    kind: Kind
    state: State
    opened_at: float
    # When AWS said what the incident is about now: the clocks of its hooks started here.
    announced_at: float
    announcements: tuple[str, ...]  # dedupe keys of every announcement that joined
    group: str | None = None
    hooks: Mapping[str, str | None] = field(default_factory=dict)  # hook -> lifecycle token
    hooks_said: Mapping[str, float] = field(default_factory=dict)  # hook -> when AWS said so
    drain_event: str | None = None  # what the node termination handler is sent
    event_type: str | None = None
    due_at: float | None = None
    called_off: bool = False
    scheduled_said_at: float | None = None  # when AWS last said something about the schedule
    party: str | None = None  # of a rotation run: whose nodes may be out together
    # Learned from readings.
    zone: str | None = None
    pool: str | None = None
    node_name: str | None = None
    pod_name: str | None = None
    node_id: int | None = None  # Kafka's; None: no Kafka pod was found on the node
    role: str | None = None
    idle_since: float | None = None  # since when every reading has shown the node without Kafka
    replacement: str | None = None
    replacement_ready_at: float | None = None
    broker_back_at: float | None = None
    lifecycle: str | None = None  # where the quorum last had the broker (core.health.lifecycle)
    # Done by the loop.
    expects_return: bool = True
    surge_to: int | None = None  # the desired capacity that makes room for the replacement
    raised_at: float | None = None  # when the group was asked for that
    spare: str | None = None  # the node kept from Cluster Autoscaler
    terminate_asked_at: float | None = None
    refused_at: float | None = None  # since when its group does not terminate it
    refusal: str | None = None  # the group's own words
    failing_since: float | None = None  # since when no turn could carry out its actions
    blind_since: float | None = None  # since when nothing could be read
    doubted_since: float | None = None  # since when no reading of Kafka is whole, or none comes
    forwarded_at: float | None = None
    forwarded_last_at: float | None = None
    forwards: int = 0
    lost_at: float | None = None  # EC2 confirmed that the machine runs nothing any more
    tainted_at: float | None = None
    leaders_moved_at: float | None = None
    heartbeat_at: float | None = None
    completed_at: float | None = None  # when a hook was first completed
    pages: tuple[str, ...] = ()
    # Said by a person, or by AWS about the group; see the functions at the end.
    held_until: float | None = None
    ignored_by: str | None = None
    release_asked_by: str | None = None
    release_asked_at: float | None = None
    launch_failed_at: float | None = None
    launch_failure: str | None = None  # AWS's own words
    reason: str = ""
    transitions: tuple[Transition, ...] = ()
    notes: tuple[Transition, ...] = ()
    ticked_at: float | None = None
    next_tick_at: float | None = None
    version: int = 0
    # What a newer release wrote and this one cannot read; core.incidents.codec writes it back.
    unread: Mapping[str, Any] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        return self.state not in TERMINAL

    @property
    def unreadable(self) -> str | None:
        """Return the word of a newer release without which nothing can be decided."""
        words = [str(self.unread[n]) for n in ("kind", "state") if n in self.unread]
        return " ".join(words) or ("a state" if "transitions" in self.unread else None)

    @property
    def urgent(self) -> bool:
        return self.kind in URGENT

    @property
    def let_go(self) -> bool:
        """Say whether a person has let go of it in the state it is in."""
        asked_at = self.release_asked_at
        return asked_at is not None and asked_at > self.entered_at

    @property
    def entered_at(self) -> float:
        """Return when the present state began."""
        return self.transitions[-1].at

    @property
    def held_since(self) -> float:
        """Return when the loop began to hold the instance for what governs the incident now.

        A retirement stays open for days before the termination that follows it joins; an
        announcement may also reach us long after it was made.
        """
        return max(self.opened_at, self.announced_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do now, which state that leads to, and why."""

    state: State
    reason: str
    actions: tuple[Action, ...] = ()
    delay_seconds: float | None = None  # until the next tick; None: there is none
    replacement: str | None = None  # the node found Ready to take over
    without_replacement: bool = False
    forwarded_at: float | None = None  # sent by an invocation that died before recording it
    # Written before it is acted on: raised from what is read anew, it would rise at every retry.
    surge_to: int | None = None
    lost: bool = False


def incident_id(instance_id: str, round_number: int) -> str:
    """Return the id of an instance's incident; a retained instance may be announced again."""
    return instance_id if round_number == 1 else f"{instance_id}.{round_number}"


def round_of(id_: str) -> int:
    """Return the round that an incident's id names.

    >>> [round_of(id_) for id_ in ("i-0a", "i-0a.2")]
    [1, 2]
    """
    _, _, number = id_.partition(".")
    return int(number) if number else 1


def instance_of(id_: str) -> str:
    """Return the instance that an incident's id names.

    >>> instance_of("i-0a.2")
    'i-0a'
    """
    return id_.partition(".")[0]


def open_incident(
    interruption: Interruption, now: float, *, round_number: int = 1, actor: str = "interruption"
) -> Incident:
    """Open the incident an announcement asks for."""
    blank = Incident(
        id=incident_id(interruption.instance_id, round_number),
        instance_id=interruption.instance_id,
        kind=interruption.kind,
        state=State.OPENED,
        opened_at=now,
        announced_at=interruption.announced_at(now),
        announcements=(),
        reason=_opening(interruption),
    )
    opened = Transition(now, State.OPENED, actor, blank.reason)
    return merge(replace(blank, transitions=(opened,)), interruption, now)


def _opening(interruption: Interruption) -> str:
    if interruption.kind is Kind.ROTATION:
        return f"Rotation: {interruption.event_type or 'asked for'}."
    if interruption.kind is Kind.SICK_NODE:
        return f"Instance {interruption.instance_id} is sick: {interruption.event_type}."
    return f"AWS announced {interruption.kind.value} for instance {interruption.instance_id}."


def merge(incident: Incident, interruption: Interruption, now: float) -> Incident:
    """Join another announcement about the same instance; one already joined changes nothing."""
    if interruption.dedupe_key in incident.announcements or not incident.open:
        return incident
    kind = max(incident.kind, interruption.kind, key=_GRAVITY.index)
    newest = _newest_of_hook(incident, interruption, now)
    joined = replace(
        incident,
        announcements=(*incident.announcements, interruption.dedupe_key),
        kind=kind,
        announced_at=_governing_at(incident, interruption, now),
        group=incident.group or interruption.group,
        drain_event=_drain_event(incident, interruption, newest=newest),
    )
    return _scheduled(_in_hook(joined, interruption, now, newest=newest), interruption, now)


def _newest_of_hook(incident: Incident, interruption: Interruption, now: float) -> bool:
    """Say whether AWS announced this hook later than what is known of it, whenever it arrived.

    A token names one lifecycle action: that of an earlier termination completes nothing any more.
    """
    if interruption.hook is None or interruption.lifecycle_token is None:
        return False
    known_at = incident.hooks_said.get(interruption.hook)
    token = incident.hooks.get(interruption.hook)
    if known_at is None or token is None:
        return True
    said = interruption.announced_at(now), interruption.lifecycle_token
    return said > (known_at, token)


def _in_hook(
    incident: Incident, interruption: Interruption, now: float, *, newest: bool
) -> Incident:
    """Add the hook an announcement names, with the token that completes it now."""
    hook = interruption.hook
    if hook is None:
        return incident
    if not newest:
        return replace(incident, hooks={hook: None, **incident.hooks})
    return replace(
        incident,
        hooks={**incident.hooks, hook: interruption.lifecycle_token},
        hooks_said={**incident.hooks_said, hook: interruption.announced_at(now)},
    )


def _governing_at(incident: Incident, interruption: Interruption, now: float) -> float:
    """Return when AWS first said what governs the incident, in whatever order words arrive."""
    said_at = interruption.announced_at(now)
    before, after = (_GRAVITY.index(k) for k in (incident.kind, interruption.kind))
    if after == before:
        return min(incident.announced_at, said_at)
    return said_at if after > before else incident.announced_at


def _drain_event(incident: Incident, interruption: Interruption, *, newest: bool) -> str | None:
    """Choose what to forward: the drain hook's own event, or else a two-minute warning.

    The handler completes the hook its message names, so the drain hook's event comes first.
    """
    if interruption.hook == DRAIN_HOOK and interruption.body:
        known = incident.hooks.get(DRAIN_HOOK) is not None and incident.drain_event is not None
        return interruption.body if newest or not known else incident.drain_event
    if interruption.kind in URGENT and incident.hooks.get(DRAIN_HOOK) is None:
        return incident.drain_event or interruption.body
    return incident.drain_event


def _scheduled(incident: Incident, interruption: Interruption, now: float) -> Incident:
    """Take over what is scheduled, unless it is older than what is known."""
    if interruption.kind is Kind.ROTATION:
        party = interruption.party or incident.party
        return replace(incident, called_off=interruption.closed, party=party)
    if interruption.kind is Kind.SICK_NODE is incident.kind:
        said = interruption.event_type or incident.event_type
        return replace(incident, called_off=interruption.closed, event_type=said)
    if interruption.kind is not Kind.SCHEDULED_CHANGE:
        return replace(
            incident,
            event_type=incident.event_type or interruption.event_type,
            due_at=incident.due_at or interruption.due_at,
        )
    if interruption.outdated(incident.scheduled_said_at, now):
        return incident
    return replace(
        incident,
        event_type=interruption.event_type or incident.event_type,
        due_at=interruption.due_at or incident.due_at,
        # What AWS no longer wants, a run of ours may still do.
        called_off=incident.called_off if incident.kind is Kind.ROTATION else interruption.closed,
        scheduled_said_at=interruption.said_at(now),
    )


def reopens(finished: Incident, interruption: Interruption) -> bool:
    """Say whether an announcement asks for another incident after one that is over.

    A released or lost instance is gone: what is still said about it is an echo.
    """
    gone = finished.state in {State.RELEASED, State.LOST}
    known = interruption.dedupe_key in finished.announcements
    graver = _GRAVITY.index(interruption.kind) > _GRAVITY.index(finished.kind)
    asked_for = interruption.kind is Kind.ROTATION  # a person's later word
    # Hooks hold it now: an ignored two-minute warning has said nothing about those.
    held = interruption.kind is Kind.ASG_TERMINATE and not finished.hooks
    unwanted = finished.ignored_by is not None and not (graver or asked_for or held)
    return not (gone or known or unwanted)


def unattended(incident: Incident, now: float, late_seconds: float) -> bool:
    """Say whether nothing carries an open incident any more: its tick is that late."""
    expected = max(incident.ticked_at or incident.opened_at, incident.next_tick_at or 0.0)
    return incident.open and now - expected > late_seconds


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
