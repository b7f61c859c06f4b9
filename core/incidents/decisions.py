"""Builds the decisions of core.incidents and what it calls; nothing here decides.

Decides whose turn it is where several wait for the lease: the one with the least time left.

AWS's date, a hook that runs out and Karpenter's deadline say how much that is; who has none of them
is given the hold limit, from when it first waited. So a newer announcement passes an older one only
where AWS gives it less time, and nobody is passed for ever. Who is kept by something of its own, or
is not looked at any more, lets the others pass: an incident asks for its turn in the record of each
look, and its own next look takes the word back (core.incidents.learn).

This decides who asks for the lease, never who gets it: core.availability.lease knows no order.

Decides which actions a level of adoption allows; the others are said instead of done.

    watch -> gate -> act -> own

Below `act` nothing of what is theirs is changed: what remains is a ledger, queues and a thread of
our own. At `watch` a drain is decided as if it were ours to send. At `gate` it is not: whoever
drains asks (core.gate), and only that takes the lease and takes a broker out. An action is theirs
unless it stands in OF_OURS, so that a new one is withheld until somebody has thought about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core.events import Kind
from core.incidents.actions import (
    Action,
    CompleteHook,
    DropLease,
    EndDrain,
    FreezeZone,
    HookResult,
    KeepErrors,
    Page,
    TakeLease,
)
from core.incidents.observation import Observation, Policy, WaitingTurn
from core.incidents.record import TERMINAL, Decision, Incident, State
from core.naming import DRAIN_HOOK, GATE_HOOK
from core.window import clock

# EC2's states of an instance that is ending, and of one that certainly runs nothing any more;
# None is an instance EC2 has already forgotten.
ENDING = frozenset({"shutting-down", "terminated", None})
STOPPED = frozenset({"stopped", "terminated", None})


def ec2_state(seen: Observation) -> str | None:
    return None if seen.instance is None else seen.instance.state


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


def is_hooked(incident: Incident) -> bool:
    """Say whether lifecycle hooks hold the instance.

    One announcement stands for both hooks: the other may have got lost.
    """
    return bool(incident.hooks) and incident.group is not None


def evicting(incident: Incident) -> bool:
    """Say whether an eviction alone asks for it: what AWS announces later governs it."""
    return incident.kind is Kind.EVICTION and not is_hooked(incident)


def asked_for(incident: Incident, policy: Policy) -> bool:
    """Say whether the node goes when its own drainer asks: nobody of ours is sent to drain it."""
    return evicting(incident) or policy.drain_route == "asked"


def at_its_turn(incident: Incident) -> bool:
    """Say whether the node goes as soon as nobody else is out: it waits for that, or is let go.

    One for which a run only makes ready may have a word or a date of others, by which it goes.
    """
    others_say = (incident.release, incident.scheduled_said_at, incident.disruption)
    if incident.ahead and not (is_hooked(incident) or incident.urgent or any(others_say)):
        return False
    undrained = incident.state in {State.OPENED, State.REPLACING}
    return incident.state is State.HOLDING or (undrained and incident.release is not None)


def complete(incident: Incident, result: HookResult) -> tuple[Action, ...]:
    """Complete both hooks; one that is complete already makes this a no-op."""
    if not is_hooked(incident):
        return ()
    return (CompleteHook(DRAIN_HOOK, result), CompleteHook(GATE_HOOK, result))


def lease_renewal(incident: Incident) -> tuple[Action, ...]:
    """Keep the lease while the broker is out: a fact, noted beside whoever else may hold it."""
    return () if incident.node_id is None else (TakeLease(out=True),)


def retain(incident: Incident, key: str, reason: str) -> Decision:
    """Keep the instance: ABANDON, which the group's instance lifecycle policy turns into retain."""
    taken_at = None if incident.called_off else incident.taken_at
    told = (
        reason if taken_at is None else f"{reason} AWS takes it at {clock(taken_at)} all the same."
    )
    return go(
        State.RETAINED,
        told,
        Page(key, told),
        *complete(incident, HookResult.ABANDON),
        DropLease(),
    )


# Ticks of whoever is first may be late by so many intervals.
LATE_INTERVALS = 3


def turn_due_at(incident: Incident, seen: Observation, policy: Policy) -> float:
    """Return by when an incident's turn is to have come."""
    entered = (t.at for t in incident.transitions if t.state is State.HOLDING)
    ends = [next(entered, seen.now) + policy.hold_limit_seconds]
    if is_hooked(incident):
        ends.append(incident.waits_since + policy.hold_limit_seconds)
    disruption, release = incident.disruption, incident.release
    dates = (
        incident.taken_at,
        None if disruption is None else disruption.forced_at,
        None if release is None else release.at,
    )
    return min(*ends, *(at for at in dates if at is not None), ends[0])


def asking(decision: Decision, incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Return a decision that waits for others, and says so."""
    return replace(decision, turn_due_at=turn_due_at(incident, seen, policy))


def who_goes_first(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return the incident that is to have the lease before this one; None: it is this one's turn.

    Where somebody holds it, or a companion does, the lease itself says who goes.
    """
    if seen.lease_holder is not None or seen.beside:
        return None
    mine = turn_due_at(incident, seen, policy), incident.id
    late = LATE_INTERVALS * policy.tick_interval_seconds
    first = min(
        ((w.due_at, w.incident_id) for w in seen.waiting if seen.now <= w.next_look_at + late),
        default=mine,
    )
    return None if first >= mine else first[1]


def waiting_turns(others: Iterable[Incident], incident: Incident) -> Iterator[WaitingTurn]:
    """Yield who else asks for its turn, of another party than an incident's."""
    for other in others:
        together = other.party is not None and other.party == incident.party
        if other.turn_due_at is not None and not together:
            looked_at = max(other.ticked_at or 0.0, other.next_tick_at or 0.0)
            yield WaitingTurn(other.id, other.turn_due_at, looked_at)


Level = Literal["watch", "gate", "act", "own"]
OWN: Level = "own"
ACTING: frozenset[Level] = frozenset({"act", "own"})
# What the one who asks a group to terminate hears of it.
WITHHELD = "Watching only: no group is asked to terminate anything."
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

    def of(self, group: str | None) -> Level:
        """Return the level for a machine: one in no group that was named is left to others.

        EKS and Karpenter take no hooks of ours on theirs: whoever drains those asks, or is watched.
        """
        if self.level not in ACTING or self.named is None or group in self.named:
            return self.level
        return "gate" if self.gated else "watch"

    def policy(self, group: str | None, policy: Policy) -> Policy:
        """Return what decisions about a machine obey: at `gate` nobody of ours is sent to drain."""
        return replace(policy, drain_route="asked") if self.of(group) == "gate" else policy


def is_allowed(action: Action, level: Level) -> bool:
    """Say whether an action may be carried out at a level."""
    return level in ACTING or isinstance(action, OF_OURS)


def withheld_actions(actions: Sequence[Action], level: Level) -> tuple[Action, ...]:
    """Return the actions that a level keeps from being carried out."""
    return tuple(action for action in actions if not is_allowed(action, level))


def as_told(decision: Decision, level: Level) -> Decision:
    """Return a decision as it is recorded, told and paged: what is withheld is said to be."""
    if not withheld_actions(decision.actions, level):
        return decision
    actions = tuple(
        replace(each, reason=f"{WATCHED}{each.reason}") if isinstance(each, Page) else each
        for each in decision.actions
    )
    return replace(decision, reason=f"{WATCHED}{decision.reason}", actions=actions)
