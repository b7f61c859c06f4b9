"""Defines the actions and the decisions that order them, and records one that was carried out.

An action is frozen, says what is to be true afterwards, and may be done twice;
handlers.incidents.act carries it out. Below the level `act` of adoption (watch -> gate -> act ->
own) nothing of what is theirs is changed: at `watch` a drain is decided as if it were ours to send,
at `gate` whoever drains asks (core.gate), and only that takes the lease and takes a broker out. An
action is theirs unless it stands in OF_OURS, so that a new one is withheld until somebody has
thought about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

from core.ground.naming import DRAIN_HOOK, GATE_HOOK
from core.ground.window import clock
from core.incidents.observation import Policy
from core.incidents.record import (
    ALLOWED,
    TERMINAL,
    Forwarding,
    Incident,
    InPlace,
    Replacement,
    State,
    Transition,
)


class HookResult(StrEnum):
    CONTINUE = "CONTINUE"
    ABANDON = "ABANDON"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Keep one lifecycle hook waiting for another heartbeat timeout."""

    hook: str


@dataclass(frozen=True, slots=True)
class ForwardDrain:
    """Hand the announcement to the node termination handler, which cordons and drains.

    Where none does, the lease alone is put to use; `Cordon` and `Evict` follow.
    """


@dataclass(frozen=True, slots=True)
class Cordon:
    """Keep new pods off a node, in this incident's name."""

    node: str


@dataclass(frozen=True, slots=True)
class Uncordon:
    """Let a node take pods again, if this incident kept them off."""

    node: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Ask once for the eviction of this very pod; a refusal is an answer, and nothing is forced."""

    namespace: str
    name: str
    uid: str
    # Kafka's own needs the lease; any other only its budgets' consent.
    kafka: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceRoot:
    """Have EC2 replace the root volume of the instance, once, however often it is asked.

    `trial` only asks whether it would. A refusal is an answer, and is kept.
    """

    image_id: str
    trial: bool = False


@dataclass(frozen=True, slots=True)
class EndClaim:
    """Delete this very NodeClaim: Karpenter makes room for its pods, evicts them, ends the node."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class KeepErrors:
    """Keep the counters of metadata errors before a restart sets them back; nothing waits for it.

    A drain that is forwarded keeps them by itself.
    """


@dataclass(frozen=True, slots=True)
class CompleteHook:
    hook: str
    result: HookResult


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Take the cluster's lease, or renew it; `out` notes that the node is out, and it holds on."""

    out: bool = False


@dataclass(frozen=True, slots=True)
class DropLease:
    """Give the lease back, if this incident holds it; one that was used, only once it `ended`."""

    ended: bool = False


@dataclass(frozen=True, slots=True)
class EndDrain:
    """Give back another incident's lease whose drain was seen to have ended safely."""

    holder: str


@dataclass(frozen=True, slots=True)
class OpenBudget:
    """Let a pod be evicted beside others of its party, by a label for this incident.

    Whoever is not labelled is counted anew, so that nobody of them goes.
    """

    pod: str


@dataclass(frozen=True, slots=True)
class CloseBudget:
    """Take a pod's label off again, if it is this incident's."""

    pod: str


@dataclass(frozen=True, slots=True)
class SetDesired:
    """Set the group's desired capacity to an absolute number, so that doing it twice is once."""

    desired: int


@dataclass(frozen=True, slots=True)
class TerminateInGroup:
    """Terminate the instance through its group, which runs the lifecycle hooks.

    `decrement` lowers the desired capacity by one, where it was raised for the replacement.
    `instance_id` names another instance of the group: a spare that nobody needs after all.
    """

    decrement: bool
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class KeepSpare:
    """Keep a node that waits for the pod from Cluster Autoscaler, which sees only an idle one."""

    node: str


@dataclass(frozen=True, slots=True)
class FreeSpare:
    """Leave a node to Cluster Autoscaler again."""

    node: str


@dataclass(frozen=True, slots=True)
class TaintOutOfService:
    """Let Kubernetes give up a dead machine's pods and volumes; refused unless EC2 confirms."""

    node: str


@dataclass(frozen=True, slots=True)
class ReleaseAttachments:
    """Let go of what a Node that is gone still holds; refused unless EC2 confirms the end."""

    node: str


@dataclass(frozen=True, slots=True)
class Untaint:
    """Take the out-of-service taint off a node whose machine runs again."""

    node: str


@dataclass(frozen=True, slots=True)
class MoveLeaders:
    """Have other brokers lead what these lead, until `RestoreLeaders`."""

    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RestoreLeaders:
    """Give the leaders back that this incident moved away.

    Without an election whoever goes on with the broker, a run, has it lead little by little.
    """

    elect: bool = True


@dataclass(frozen=True, slots=True)
class FreezeZone:
    """Freeze a zone that is lost as a whole; whoever is first calls a person, once for all."""

    zone: str
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    """Call a person; once per key of an incident, of a zone's, or of a run until it is resumed."""

    key: str
    reason: str


def runbook(page: str, runbooks_url: str) -> str:
    """Return where a page's runbook is read.

    >>> runbook("budget:orders-kafka", "https://wiki.example/kafka")
    'https://wiki.example/kafka/budget.md'
    """
    return f"{runbooks_url}/{page.partition(':')[0]}.md"


Action = (
    Heartbeat
    | ForwardDrain
    | Cordon
    | Uncordon
    | Evict
    | ReplaceRoot
    | EndClaim
    | KeepErrors
    | CompleteHook
    | TakeLease
    | DropLease
    | EndDrain
    | OpenBudget
    | CloseBudget
    | SetDesired
    | TerminateInGroup
    | KeepSpare
    | FreeSpare
    | TaintOutOfService
    | ReleaseAttachments
    | Untaint
    | MoveLeaders
    | RestoreLeaders
    | FreezeZone
    | Page
)


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
    turn_due_at: float | None = None  # it waits for others alone (core.incidents.consenting)


def stay(
    incident: Incident, policy: Policy, reason: str, *actions: Action, delay: float | None = None
) -> Decision:
    """Keep the state and look again after one interval, or after `delay` seconds."""
    return Decision(
        state=incident.state,
        reason=reason,
        actions=actions,
        delay_seconds=policy.tick_interval_seconds if delay is None else delay,
    )


def go(state: State, reason: str, *actions: Action) -> Decision:
    """Move to another state and look again at once; a terminal state is not looked at again."""
    return Decision(
        state=state,
        reason=reason,
        actions=actions,
        delay_seconds=None if state in TERMINAL else 0.0,
    )


def asked_for(incident: Incident, policy: Policy) -> bool:
    """Say whether the node goes when its own drainer asks: nobody of ours is sent to drain it."""
    return incident.is_evicted or policy.drain_route == "asked"


def complete(incident: Incident, result: HookResult) -> tuple[Action, ...]:
    """Complete both hooks; one that is complete already makes this a no-op."""
    if not incident.is_hooked:
        return ()
    return (CompleteHook(DRAIN_HOOK, result), CompleteHook(GATE_HOOK, result))


def lease_renewal(incident: Incident) -> tuple[Action, ...]:
    """Keep the lease while the broker is out: a fact, noted beside whoever else may hold it."""
    return () if incident.node_id is None else (TakeLease(out=True),)


def retain(incident: Incident, key: str, reason: str) -> Decision:
    """Keep the instance: ABANDON, which the group's instance lifecycle policy turns into retain."""
    taken_at = None if incident.called_off else incident.taken_at
    told = reason if taken_at is None else f"{reason} AWS takes it at {clock(taken_at)} anyway."
    return go(
        State.RETAINED, told, Page(key, told), *complete(incident, HookResult.ABANDON), DropLease()
    )


# A replacement takes a few minutes; Cluster Autoscaler gives up on a node after as many.
LATE_REPLACEMENT_SECONDS = 900.0
Level = Literal["watch", "gate", "act", "own"]
OWN: Level = "own"
ACTING: frozenset[Level] = frozenset({"act", "own"})
# What the one who asks a group to terminate hears of it.
WITHHELD = "Watching only: Stillwater asks no group to terminate anything."
# Before what would be done, in a record, a thread and a page.
WATCHED = "Watching only, this would be done: "
# They write the ledger's table and the ticks queue, and nothing else.
OF_OURS = (TakeLease, DropLease, EndDrain, Page, KeepErrors, FreezeZone)


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be done, machine by machine; without arguments, of a cluster that is ours."""

    level: Level = OWN
    # Auto Scaling groups that were named to be changed; None: every one.
    named: frozenset[str] | None = None
    # Whether whoever evicts Kafka's pods has to ask.
    gated: bool = False

    def level_of(self, group: str | None) -> Level:
        """Return the level for a machine: one in no group that was named is left to others.

        EKS and Karpenter take no hooks of ours on theirs: whoever drains those asks, or is watched.
        """
        if self.level not in ACTING or self.named is None or group in self.named:
            return self.level
        return "gate" if self.gated else "watch"

    def policy(self, group: str | None, policy: Policy) -> Policy:
        """Return what decisions about a machine obey: at `gate` nobody of ours is sent to drain."""
        return replace(policy, drain_route="asked") if self.level_of(group) == "gate" else policy


def is_allowed(action: Action, level: Level) -> bool:
    """Say whether an action may be carried out at a level."""
    return level in ACTING or isinstance(action, OF_OURS)


def withheld_actions(actions: Sequence[Action], level: Level) -> tuple[Action, ...]:
    """Return the actions that a level keeps from being carried out."""
    return tuple(action for action in actions if not is_allowed(action, level))


def told_decision(decision: Decision, level: Level) -> Decision:
    """Return a decision as it is recorded, told and paged: what is withheld is said to be."""
    if not withheld_actions(decision.actions, level):
        return decision
    actions = tuple(
        replace(each, reason=f"{WATCHED}{each.reason}") if isinstance(each, Page) else each
        for each in decision.actions
    )
    return replace(decision, reason=f"{WATCHED}{decision.reason}", actions=actions)


# Actions that are remembered by when they were done last, and those that undo one.
_TIMES: Mapping[type[object], tuple[str, bool]] = {
    Heartbeat: ("heartbeat_at", True),
    TaintOutOfService: ("tainted_at", True),
    Untaint: ("tainted_at", False),
    MoveLeaders: ("leaders_moved_at", True),
    RestoreLeaders: ("leaders_moved_at", False),
}


def settle(incident: Incident, decision: Decision, now: float, *, actor: str = "tick") -> Incident:
    """Record that a decision was carried out.

    Raises ValueError for a transition DESIGN does not allow.
    """
    if decision.state is not incident.state and decision.state not in ALLOWED[incident.state]:
        raise ValueError(f"Incident {incident.id} may not go {incident.state} -> {decision.state}.")
    entry = Transition(now, decision.state, actor, decision.reason)
    moved = decision.state is not incident.state
    delay = decision.delay_seconds
    acted = incident
    for action in decision.actions:
        acted = replace(acted, **_remembered_fields(acted, action, now))
        if acted.in_place is not None and isinstance(action, ReplaceRoot | Uncordon):
            acted = replace(acted, in_place=_note_in_place(acted.in_place, action, now))
    if decision.forwarded_at is not None:
        # Sent by an invocation that did not live to record it.
        sent = _forwarding_at(acted.forwarded, decision.forwarded_at)
        acted = replace(acted, forwarded=sent)
    if not moved and decision.reason != incident.reason:
        acted = acted.add_note(now, actor, decision.reason)
    return replace(
        acted,
        state=decision.state,
        reason=decision.reason,
        transitions=(*incident.transitions, entry) if moved else incident.transitions,
        pages=incident.pages + tuple(a.key for a in decision.actions if isinstance(a, Page)),
        replacement=_replacement_after(incident, decision, now),
        expects_return=incident.expects_return and not decision.without_replacement,
        surge_to=incident.surge_to if decision.surge_to is None else decision.surge_to,
        in_place=_place_after_decision(acted, decision),
        turn_due_at=decision.turn_due_at,
        lost_at=incident.lost_at or (now if decision.lost else None),
        next_tick_at=None if delay is None else now + delay,
    )


def _replacement_after(incident: Incident, decision: Decision, now: float) -> Replacement | None:
    found = decision.replacement
    if found is None or found == incident.replacement_node:
        return incident.replacement
    return Replacement(node=found, ready_at=now)


def _place_after_decision(acted: Incident, decision: Decision) -> InPlace | None:
    """Keep why a root volume is not replaced after all; the first reason stands."""
    why, place = decision.not_in_place, acted.in_place
    if place is None or why is None or place.refusal is not None:
        return place
    return replace(place, refusal=why)


def _forwarding_at(before: Forwarding | None, at: float) -> Forwarding:
    return Forwarding(first_at=at, last_at=at) if before is None else before.again(at)


def _remembered_fields(incident: Incident, action: Action, now: float) -> dict[str, Any]:
    """Return the fields in which later decisions find an action."""
    if isinstance(action, ForwardDrain):
        return {"forwarded": _forwarding_at(incident.forwarded, now)}
    if isinstance(action, CompleteHook):
        return {"completed_at": incident.completed_at or now}
    if isinstance(action, TerminateInGroup):
        return {} if action.instance_id else {"terminate_asked_at": _asked_at(incident, now)}
    if isinstance(action, KeepSpare):
        return {"spare": action.node}
    if isinstance(action, FreeSpare) and action.node == incident.spare:
        return {"spare": None}
    name, done = _TIMES.get(type(action), ("", False))
    return {name: now if done else None} if name else {}


def _asked_at(incident: Incident, now: float) -> float:
    """Return when a group was asked to terminate; of one that accepted, the first time."""
    before, said = incident.terminate_asked_at, incident.release
    if before is None or incident.refusal is not None:
        return now
    return now if said is not None and said.at > before else before


def _note_in_place(place: InPlace, action: ReplaceRoot | Uncordon, now: float) -> InPlace:
    if isinstance(action, Uncordon):
        return replace(place, returned_at=place.returned_at or now)
    if action.trial:
        return replace(place, tried_at=now)
    return replace(place, asked_at=place.asked_at or now)
