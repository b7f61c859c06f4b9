"""One incident per instance: what is remembered about it, and what may follow on what.

The ledger stores an Incident whole (core.incidents.codec). Announcements change facts
(core.incidents.joining), people and groups add theirs (core.incidents.requests), readings too
(core.incidents.learn), decisions move the state (core.incidents.settling); nothing else does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from core.events import Kind
from core.events.announcements import URGENT
from core.events.scheduled import ChangeResponse, answer_to
from core.incidents.actions import Action
from core.incidents.schedules import ScheduledChange
from core.incidents.sections import (
    Drainer,
    Forwarding,
    GroupRefusal,
    InPlace,
    LaunchFailure,
    NodeDisruption,
    Release,
    Replacement,
)
from core.stored import unread_keys


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
# In the order of its way: nothing of Kafka's has been told to leave.
UNDRAINED = (State.OPENED, State.REPLACING, State.HOLDING)
_SIDE_EXITS = frozenset({State.CANCELLED, State.RETAINED, State.LOST})
# An instance that is lost without warning has nothing left to drain: it goes to the gate at once.
ALLOWED: Mapping[State, frozenset[State]] = {
    State.OPENED: _SIDE_EXITS
    | {State.REPLACING, State.DRAINING, State.GATING, State.RIDDEN_THROUGH},
    State.REPLACING: _SIDE_EXITS | {State.HOLDING, State.DRAINING, State.GATING},
    State.HOLDING: _SIDE_EXITS | {State.REPLACING, State.DRAINING, State.GATING},
    # A pod that was evicted may start again where it was: then nothing is to be gated.
    State.DRAINING: frozenset(
        {State.GATING, State.RELEASED, State.RETAINED, State.LOST, State.RIDDEN_THROUGH}
    ),
    State.GATING: frozenset({State.RELEASED, State.RETAINED, State.LOST, State.RIDDEN_THROUGH}),
    **{state: frozenset() for state in TERMINAL},
}
# Reasons name partitions, so they vary; the item must stay far below DynamoDB's 400 KB.
MOST_NOTES = 200


@dataclass(frozen=True, slots=True)
class Transition:
    """A state the incident entered, or a reason that changed while it stayed."""

    at: float  # epoch seconds
    state: State
    actor: str
    reason: str
    unread: Mapping[str, Any] = unread_keys()


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
    scheduled: tuple[ScheduledChange, ...] = ()  # all of it; the fields above are what governs
    party: str | None = None  # of a rotation run: whose nodes may be out together
    in_place: InPlace | None = None  # of a rotation run: no other instance takes over
    ahead: bool = False  # of a rotation run: its replacement is made ready, its turn comes later
    drainer: Drainer | None = None
    disruption: NodeDisruption | None = None
    # Learned from readings.
    zone: str | None = None
    pool: str | None = None
    node_name: str | None = None
    pod_name: str | None = None
    node_id: int | None = None  # Kafka's; None: no Kafka pod was found on the node
    role: str | None = None
    idle_since: float | None = None  # since when every reading has shown the node without Kafka
    replacement: Replacement | None = None
    broker_back_at: float | None = None
    lifecycle: str | None = None  # where the quorum last had the broker (core.health.lifecycle)
    # Done by the loop.
    expects_return: bool = True
    surge_to: int | None = None  # the desired capacity that makes room for the replacement
    spare: str | None = None  # the node kept from Cluster Autoscaler
    terminate_asked_at: float | None = None
    refusal: GroupRefusal | None = None  # what its group says when it is to terminate it
    failing_since: float | None = None  # since when no turn could carry out its actions
    blind_since: float | None = None  # since when nothing could be read
    ending_since: float | None = None  # since when EC2 says stopping, or shutting-down
    doubted_since: float | None = None  # since when no reading of Kafka is whole, or none comes
    turn_due_at: float | None = None  # it asked for its turn, which is due then; None: it does not
    forwarded: Forwarding | None = None
    lost_at: float | None = None  # EC2 confirmed that the machine runs nothing any more
    tainted_at: float | None = None
    leaders_moved_at: float | None = None
    heartbeat_at: float | None = None
    completed_at: float | None = None  # when a hook was first completed
    pages: tuple[str, ...] = ()
    # Said by a person, or by AWS about the group (core.incidents.requests).
    held_until: float | None = None
    kept_at: float | None = None  # when somebody was last seen to want the instance kept
    ignored_by: str | None = None
    release: Release | None = None
    launch_failure: LaunchFailure | None = None
    launches_said_at: float | None = None  # when the group last said something about its launches
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

    def with_note(self, at: float, actor: str, sentence: str) -> Incident:
        """Return it with a sentence more about the state it stays in, while there is room."""
        if len(self.notes) >= MOST_NOTES:
            return self
        return replace(self, notes=(*self.notes, Transition(at, self.state, actor, sentence)))

    @property
    def unreadable(self) -> str | None:
        """Return the word of a newer release without which nothing can be decided."""
        words = [str(self.unread[n]) for n in ("kind", "state") if n in self.unread]
        unknown = any("state" in each.unread for each in self.transitions)
        return " ".join(words) or ("a state" if unknown else None)

    @property
    def urgent(self) -> bool:
        return self.kind in URGENT

    @property
    def taken_at(self) -> float | None:
        """Return when AWS ends the machine; a date at which it gives it back is none."""
        stays = (
            self.scheduled_said_at is not None
            and answer_to(self.event_type) is not ChangeResponse.RETIRE
        )
        return None if stays else self.due_at

    @property
    def let_go_by(self) -> str | None:
        """Return who has let go of it in the state it is in; None: nobody has."""
        asked = self.release
        return asked.by if asked is not None and asked.at > self.entered_at else None

    @property
    def replacement_node(self) -> str | None:
        """Return the name of the node that takes the pod over; None: none was found yet."""
        return None if self.replacement is None else self.replacement.node

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

    @property
    def waits_since(self) -> float:
        """Return from when the hold limit counts: not while a person or a frozen zone keeps it."""
        return max(self.held_since, self.kept_at or 0.0)


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
    not_in_place: str | None = None  # why the root volume is not replaced after all
    turn_due_at: float | None = None  # it waits for others alone (core.incidents.turns)


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


def is_unattended(incident: Incident, now: float, late_seconds: float) -> bool:
    """Say whether nothing carries an open incident any more: its tick is that late."""
    expected = max(incident.ticked_at or incident.opened_at, incident.next_tick_at or 0.0)
    return incident.open and now - expected > late_seconds
