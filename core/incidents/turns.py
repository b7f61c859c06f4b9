"""Decides whose turn it is where several wait for the lease: the one with the least time left.

AWS's date, a hook that runs out and Karpenter's deadline say how much that is; who has none of them
is given the hold limit, from when it first waited. So a newer announcement passes an older one only
where AWS gives it less time, and nobody is passed for ever. Who is kept by something of its own, or
is not looked at any more, lets the others pass: an incident asks for its turn in the record of each
look, and its own next look takes the word back (core.incidents.settling).

This decides who asks for the lease, never who gets it: core.availability.lease knows no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from core.incidents.decisions import is_hooked
from core.incidents.observation import Observation, Policy, WaitingTurn
from core.incidents.record import Decision, Incident, State

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
