"""Adds to an incident what Karpenter does to its node (core.incidents.nodeclaims): why, until when.

Whatever opened the incident, the gate or the sweep: core.incidents.learn asks `note_disruption` at
every reading, core.incidents.decide asks `deadlines` whom to call.
"""

from __future__ import annotations

from dataclasses import replace

from core.events import Kind
from core.incidents.actions import EndClaim, Page
from core.incidents.nodeclaims import (
    DISRUPTED_TAINT,
    Disruption,
    NodeClaim,
    disrupted_for,
    disruption_of,
)
from core.incidents.observation import Observation
from core.incidents.record import UNDRAINED, Decision, Incident, State
from core.incidents.sections import Drainer
from core.window import clock

KARPENTER = "Karpenter"
# Somebody who is called then can still see why Kafka does not let the broker go, and mend it.
WARNED_SECONDS = 1800.0


def claim_of(incident: Incident, seen: Observation) -> NodeClaim | None:
    """Return the NodeClaim of an incident's instance."""
    return next((c for c in seen.claims if c.instance_id == incident.instance_id), None)


def disruption(incident: Incident, seen: Observation) -> Disruption | None:
    """Return what Karpenter does to the incident's node at this moment."""
    claim = claim_of(incident, seen)
    rotated = incident.kind is Kind.ROTATION
    return None if claim is None else disruption_of(claim, seen.now, rotated=rotated)


def note_disruption(incident: Incident, seen: Observation) -> Incident:
    """Keep why Karpenter ends the node and from when on it asks no budget, and tell of each once.

    A reason that is known stays: the sweep has asked EC2, too, and a claim alone says less. A
    deadline only comes nearer.
    """
    found = disruption(incident, seen)
    if found is None:
        return incident
    told = disrupted_for(incident.disruption, found.reason.value)
    ends = [at for at in (told.forced_at, _forced_at(incident, found, seen)) if at is not None]
    told = replace(told, forced_at=min(ends, default=None))
    drainer = incident.drainer or Drainer(name=KARPENTER)
    known = replace(incident, drainer=drainer, disruption=told)
    if told == incident.disruption:
        return known
    return known.with_note(seen.now, "tick", found.sentence)


def _forced_at(incident: Incident, found: Disruption, seen: Observation) -> float | None:
    """Return from when on Karpenter asks no budget: a pod is to have stopped by the deadline.

    One that tolerates the taint is not evicted at all: its node may end as soon as the claim is
    deleted.
    """
    pod = seen.pod_named(incident.pod_name)
    if found.begun and pod is not None and pod.ignores_disruption:
        return seen.now
    if found.deadline is None:
        return None
    return found.deadline - ((pod.grace_seconds if pod is not None else None) or 0.0)


def claim_to_end(incident: Incident, seen: Observation, decided: Decision) -> tuple[EndClaim, ...]:
    """Have Karpenter end the node of a rotation, for which it makes room first.

    From then on nobody calls it off. The gate keeps the broker until its successor is Ready and
    Kafka lets it go; core.rotation.claims says where that can be relied upon.
    """
    claim = claim_of(incident, seen)
    if incident.kind is not Kind.ROTATION or claim is None or claim.leaves or seen.paused:
        return ()
    if decided.state not in {State.REPLACING, State.HOLDING} or incident.called_off:
        return ()
    return (EndClaim(claim.name, claim.uid),)


def forced_soon(incident: Incident, now: float, margin_seconds: float) -> bool:
    """Say whether the node's drainer stops asking budgets within a margin, or has."""
    at = None if incident.disruption is None else incident.disruption.forced_at
    return at is not None and now >= at - margin_seconds


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
            f"disruption budget ({told.reason}), and only an eviction gate is asked."
        )
    return (Page("forced", f"{how} {decided.reason}"),)
