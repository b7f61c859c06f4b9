"""Decides whether a drain whose incident is over has ended safely, or may still take a broker out.

core.incidents.terminating asks it in state `holding`, of every lease that was used and never given
back: the node of a `retained` incident may still be drained by a message that waits in the
termination handler's queue, and the broker of a `lost` one may be on its way back. Until both are
ruled out by what is seen, nobody else goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.availability.lease import Lease, hinders
from core.availability.presence import check_returned
from core.incidents.observation import Observation, Policy, StandingDrain
from core.incidents.record import Incident, State
from core.window import clock

_GONE = frozenset({"terminated", None})  # EC2's states of an instance that nobody can drain


def seen_to_end(incident: Incident) -> bool:
    """Say whether an incident that is over saw its own drain end, so that no lease outlives it.

    One that a person let go as it was has seen nothing.
    """
    return incident.state is State.RELEASED and incident.release is None


def without_lease(
    others: Iterable[Incident], leases: Iterable[Lease], incident: Incident
) -> Iterator[Incident]:
    """Yield the open incidents whose drain was sent, and of which the lease's item knows nothing.

    Somebody deleted that item, or the table was restored: the incidents' own records still count.
    """
    used = {lease.holder for lease in leases if lease.out_at is not None}
    for other in others:
        if other.forwarded is None or other.node_id is None or other.id in used:
            continue
        asked = Lease(other.id, 0.0, other.node_id, other.party)
        if hinders(asked, incident.id, incident.party):
            yield other


def unsafe_drains(seen: Observation, policy: Policy) -> Iterator[tuple[StandingDrain, str]]:
    """Yield every drain of others that has not ended safely, and why not."""
    for drain in seen.drains:
        reason = not_ended(drain, seen, policy)
        if reason is not None:
            yield drain, reason


def not_ended(drain: StandingDrain, seen: Observation, policy: Policy) -> str | None:
    """Return what keeps a drain from having ended safely; None: it has.

    An open incident ends its own drain. Of one that is over, the message must be able to do nothing
    any more (its queue has dropped it, or its instance is gone), and the broker must be back in
    every ISR, unless it was let go for good or the cluster knows it no longer.
    """
    if drain.open:
        return f"Incident {drain.holder} takes a Kafka node out first."
    what = f"Incident {drain.holder} is over ({drain.state}), but"
    until = _message_ends(drain, seen, policy)
    if until is not None:
        may = (
            "a pod that it evicted may still be on its way"
            if policy.drain_route == "evict"
            else "the termination handler may still be given its drain"
        )
        return f"{what} {may}, until {clock(until)}."
    away = _away(drain, seen)
    return None if away is None else f"{what} its Kafka node is not back. {away}"


def _message_ends(drain: StandingDrain, seen: Observation, policy: Policy) -> float | None:
    """Return until when a forwarded message may still drain the node; None: it cannot."""
    if drain.forwarded_at is None:
        return None
    if drain.instance_state in _GONE and seen.node_of(drain.instance_id) is None:
        return None
    ends = drain.forwarded_at + policy.drain_life_seconds
    return ends if seen.now < ends else None


def _away(drain: StandingDrain, seen: Observation) -> str | None:
    """Return what the broker lacks; None where it is whole, or none is expected back."""
    node_id = drain.node_id
    if node_id is None or not drain.expects_return:
        return None
    if seen.kafka is None:
        return seen.kafka_silence
    pod = next((p for p in seen.pods if p.node_id == node_id), None)
    if pod is None and seen.kafka.forgot(node_id):
        return None
    if pod is None or not pod.ready:
        return f"Its pod is not Ready: {'there is none' if pod is None else pod.name}."
    verdict = check_returned(node_id, seen.kafka)
    return None if verdict.allowed else verdict.reason
