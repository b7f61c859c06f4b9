"""Decides about a node that somebody in the cluster wants emptied: the gate was asked to evict.

    opened     -> replacing at once: who drains waits for an answer, not for a window
    replacing  as anything planned: room for one more node in the zone's group, or one that the
               drainer has brought itself
    holding    nobody is sent to drain; `hindrance` is None when whoever asks next is let through
    draining   entered by the gate (core.gate), which has used the lease for it
    gating     the broker is back in every ISR; the instance is its drainer's, and stays

No instance is terminated for it, and nobody who stops asking leaves anything behind.
"""

from __future__ import annotations

from dataclasses import replace

from core.availability.consent import check_returned
from core.events import Kind
from core.ground.window import clock
from core.incidents.actions import Decision, DropLease, EndClaim, Page, go, lease_renewal, stay
from core.incidents.consenting import (
    asking,
    consent,
    kept_back,
    others_first,
    overtaking_decision,
    unsafe_drains,
    who_goes_first,
)
from core.incidents.learn import claim_of, forced_soon, karpenter_disruption
from core.incidents.observation import DISRUPTED_TAINT, Observation, Policy
from core.incidents.record import SOMEBODY, UNDRAINED, Incident, State
from core.incidents.replacement import (
    barred,
    is_own_group,
    nowhere_to_go,
    replacement_for,
    what_is_coming,
    why_unready,
)

# kubectl asks again every 5 s, Karpenter within 10 s; Cluster Autoscaler leaves a node that would
# not drain alone for 5 min. Who has been silent for longer has given up.
SILENCE_SECONDS = 900.0
# The API server ends a request after 60 s, so an eviction that was let through has happened by
# then, or never will.
REQUEST_SECONDS = 90.0
# A replacement takes a few minutes, and a hook that is not ours gives no more time than it has.
PLACE_SECONDS = 120.0


def given_up(incident: Incident, seen: Observation) -> bool:
    """Say whether nobody asks for the eviction any more.

    Karpenter does, silent or not, for as long as it ends the node.
    """
    if karpenter_disruption(incident, seen) is not None:
        return False
    asked_at = None if incident.drainer is None else incident.drainer.asked_at
    silent_since = incident.opened_at if asked_at is None else asked_at
    return incident.is_evicted and seen.now - silent_since > SILENCE_SECONDS


def decide_opened(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Begin at once, unless somebody wants the node kept."""
    if incident.node_id is None:
        return go(State.CANCELLED, f"No Kafka pod runs on instance {incident.instance_id}.")
    kept = kept_back(incident, seen, policy)
    if kept and not given_up(incident, seen):
        return stay(incident, policy, kept)
    return go(State.REPLACING, f"{_asker(incident)} drains {incident.node_name}.")


def hindrance(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return what keeps the broker from being evicted now, as a sentence; None: nothing does."""
    kept = kept_back(incident, seen, policy)
    if kept:
        return kept
    others = next((reason for _, reason in unsafe_drains(seen, policy)), None)
    if others is not None:
        return others
    if seen.lease_holder not in {None, incident.id}:
        return f"Incident {seen.lease_holder} takes a Kafka node out first."
    first = who_goes_first(incident, seen, policy)
    if first is not None:
        return f"Incident {first} has less time to wait, and goes first."
    if _waits_for_room(incident, seen):
        mine = is_own_group(seen) and policy.drain_route != "asked"
        told = what_is_coming(incident, seen) if mine or seen.claims else ""
        coming = told or ("" if mine else ": its drainer brings one")
        return f"No other node of {incident.zone} is ready to take {incident.pod_name}{coming}."
    allowed, reason = consent(incident, seen, policy)
    return None if allowed else reason


def room(incident: Incident, seen: Observation) -> bool:
    """Say whether the pod has where to go: another node, or its own, where that stays."""
    if incident.replacement is not None and incident.replacement.node == incident.node_name:
        return starts_again_in_place(incident, seen)
    return replacement_for(incident, seen) is not None


def _waits_for_room(incident: Incident, seen: Observation) -> bool:
    """Say whether the pod has nowhere to go yet, and its machine the time to wait for it.

    One that its group terminates ends with a hook that is not ours, whatever is answered: a broker
    that waits there for too long is lost instead of moved.
    """
    if incident.release is not None or room(incident, seen):
        return False
    return not incident.is_hooked or seen.now - incident.held_since <= PLACE_SECONDS


def starts_again_in_place(incident: Incident, seen: Observation) -> bool:
    """Say whether a deleted pod comes back to its own node, which has the room that it leaves."""
    node, pod = seen.node_named(incident.node_name), seen.pod_named(incident.pod_name)
    return node is not None and barred(node, pod) is None


def holding(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait for the drainer to ask again once nothing speaks against it."""
    begun = _follow_begun_eviction(incident, seen)
    passed = (
        begun or overtaking_decision(incident, seen, policy) or others_first(incident, seen, policy)
    )
    if passed:
        return passed
    if _waits_for_room(incident, seen):
        return go(State.REPLACING, nowhere_to_go(incident))
    refusal = hindrance(incident, seen, policy)
    reason = refusal or f"{_asker(incident)}."
    waits = stay(incident, policy, reason, *_told_late(incident, seen, policy, refusal))
    others = seen.lease_holder or who_goes_first(incident, seen, policy)
    asked_at = None if incident.drainer is None else incident.drainer.asked_at
    # Nobody waits for a drainer that takes its time.
    lately = asked_at is not None and seen.now - asked_at <= REQUEST_SECONDS
    asks = lately and (others or refusal is None)
    return asking(waits, incident, seen, policy) if asks else waits


def _told_late(
    incident: Incident, seen: Observation, policy: Policy, refusal: str | None
) -> tuple[Page, ...]:
    """Call a person for a drain that was refused for long: who drains may wait for ever."""
    since = max(incident.entered_at, incident.kept_at or 0.0)
    if refusal is None or seen.now - since <= policy.hold_limit_seconds:
        return ()
    return (Page("waits_long", f"{incident.node_name} waits since {clock(since)}. {refusal}"),)


def _follow_begun_eviction(incident: Incident, seen: Observation) -> Decision | None:
    """Follow an eviction that the gate has let through and not lived to record."""
    if seen.own_drain_at is None:
        return None
    reason = f"The eviction of {incident.pod_name} was let through by a gate that died over it."
    found = go(State.DRAINING, reason, *lease_renewal(incident))
    return replace(found, forwarded_at=seen.own_drain_at)


def draining(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Follow an eviction that was let through while a pod of its name is on the node."""
    pod = seen.pod_named(incident.pod_name)
    sent = incident.forwarded
    since = incident.entered_at if sent is None else sent.last_at
    if sent is None and not incident.is_evicted:
        reason = f"The webhook allows the eviction of pods on {incident.node_name}."
        return stay(incident, policy, reason, *lease_renewal(incident))
    if pod is None or pod.stopping or seen.now - since <= REQUEST_SECONDS:
        reason = f"{_asker(incident)} evicts {incident.pod_name} from {incident.node_name}."
        return stay(incident, policy, reason, *lease_renewal(incident))
    missing = _not_back(incident, seen, ready=pod.ready)
    if missing is None:
        reason = (
            f"Kafka node {incident.node_id} is whole on {incident.node_name}: another webhook or "
            "budget refused its eviction, or it has started again there."
        )
        return go(State.RIDDEN_THROUGH, reason, DropLease(ended=True))
    late = seen.now - since > policy.post_condition_wait_seconds
    page = (Page("not_back", missing),) if late else ()
    return stay(incident, policy, missing, *page, *lease_renewal(incident))


def _not_back(incident: Incident, seen: Observation, *, ready: bool) -> str | None:
    if not ready:
        return f"Pod {incident.pod_name} is not Ready{why_unready(incident.pod_name, seen)}."
    if seen.kafka is None or incident.node_id is None:
        return seen.kafka_silence
    verdict = check_returned(incident.node_id, seen.kafka)
    return None if verdict.allowed else verdict.reason


def over(incident: Incident, seen: Observation) -> Decision:
    """End with the broker back: the empty instance is its drainer's."""
    pod = seen.pod_named(incident.pod_name)
    where = "has left" if pod is None else f"is back on {pod.node_name}"
    extra = (
        f" Its group has one instance more, {incident.surge_to}, until this one is terminated."
        if incident.surge_to is not None
        else ""
    )
    reason = (
        f"Kafka node {incident.node_id} {where}: instance {incident.instance_id} is for "
        f"{_asker(incident)} to end or to use.{extra}"
    )
    # A rotation's own goes for good: its NodeClaim is deleted, which nobody takes back. By now it
    # may be gone: an empty node ends in a minute or two, and a broker catches up for longer.
    rotated = incident.kind is Kind.ROTATION and incident.disruption is not None
    over_as = State.RELEASED if rotated else State.RIDDEN_THROUGH
    return go(over_as, reason, DropLease(ended=True))


def _asker(incident: Incident) -> str:
    asker = SOMEBODY if incident.drainer is None else incident.drainer.name
    return asker if incident.disruption is None else f"{asker} ({incident.disruption.reason})"


# Somebody who is called then can still see why Kafka does not let the broker go, and mend it.
WARNED_SECONDS = 1800.0


def claim_to_end(incident: Incident, seen: Observation, decided: Decision) -> tuple[EndClaim, ...]:
    """Have Karpenter end the node of a rotation, for which it makes room first.

    From then on nobody calls it off. The gate keeps the broker until its successor is Ready and
    Kafka lets it go; core.rotation.preconditions says where that can be relied upon.
    """
    claim = claim_of(incident, seen)
    if incident.kind is not Kind.ROTATION or claim is None or claim.leaves:
        return ()
    if decided.state not in {State.REPLACING, State.HOLDING} or incident.called_off:
        return ()
    return (EndClaim(claim.name, claim.uid),)


def deadlines(incident: Incident, seen: Observation, decided: Decision) -> tuple[Page, ...]:
    """Call a person while a broker that may not go yet is about to be deleted all the same."""
    told = incident.disruption
    if told is None or told.forced_at is None:
        return ()
    if decided.state not in UNDRAINED or incident.node_id is None:
        return ()
    if not forced_soon(incident, seen.now, WARNED_SECONDS):
        return ()
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.ignores_disruption:
        how = (
            f"Karpenter ends the node under {incident.pod_name} and does not evict it: it "
            f"tolerates {DISRUPTED_TAINT}."
        )
    else:
        how = (
            f"From {clock(told.forced_at)} on Karpenter deletes {incident.pod_name} past its "
            f"disruption budget ({told.reason}), and asks only an eviction webhook."
        )
    return (Page("forced", f"{how} {decided.reason}"),)
