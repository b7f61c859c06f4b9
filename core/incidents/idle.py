"""Decides whether a node runs no Kafka, which one reading cannot say.

A pod that its operator restarts has no node for a second, and may have none at all for as long. So
a node counts as idle once every reading has shown it so for `IDLE_SECONDS` (core.incidents.learn
keeps since when), and not while something speaks against it. core.incidents.decide and planned ask
before a drain or a termination that waits for nobody, draining before the gate is opened.
"""

from __future__ import annotations

from core.incidents.actions import Page
from core.incidents.decisions import stay
from core.incidents.observation import Observation, Policy
from core.incidents.record import Decision, Incident
from core.incidents.whereabouts import attached_there

IDLE_SECONDS = 30.0
# An operator's restart is over by then; a pod that still has no node does not come from here.
PATIENCE_SECONDS = 300.0


def doubt(incident: Incident, seen: Observation, *, patient: bool = True) -> str | None:
    """Return what speaks against a node being idle though no Kafka pod is on it; None: nothing."""
    where = _where(incident, seen)
    volumes = attached_there(incident, seen, where)
    if volumes:
        return f"No Kafka pod is on {where}, and volume {volumes[0]} is attached there"
    homeless = next((pod.name for pod in seen.pods if pod.node_name is None), None)
    if patient and homeless is not None:
        return f"No Kafka pod is on {where}, and {homeless} has no node at the moment"
    return None


def _where(incident: Incident, seen: Observation) -> str:
    """Return what its node is called: by EC2's word where it never joined, or is deleted."""
    dns_name = "" if seen.instance is None else seen.instance.private_dns_name
    return incident.node_name or dns_name or incident.instance_id


def looked_at_again(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Keep a node that may be idle where it is until that is sure; None: it is."""
    if seen.paused:
        return stay(incident, policy, seen.paused)
    waited = seen.now - incident.held_since
    patient = waited <= PATIENCE_SECONDS
    doubtful = doubt(incident, seen, patient=patient)
    if doubtful is not None:
        reason = f"{doubtful}: it is looked at again."
        page = () if patient else (Page("volume_on_idle_node", reason),)
        return stay(incident, policy, reason, *page)
    if incident.node_name is None:
        return None  # It never joined.
    since = incident.idle_since
    if since is None:
        # Homeless pods alone reset it, and are believed to belong elsewhere by now.
        return None if not patient else _once_more(incident, policy)
    return None if seen.now - since >= IDLE_SECONDS else _once_more(incident, policy)


def _once_more(incident: Incident, policy: Policy) -> Decision:
    reason = f"No Kafka pod is on {incident.node_name}: it is looked at once more."
    return stay(incident, policy, reason)
