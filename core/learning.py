"""What readings teach an incident: where its instance stood, and since when its broker is back.

handlers.tick calls `learn` between observing and deciding; a blind reading teaches nothing.
"""

from __future__ import annotations

from dataclasses import replace

from core.events import Kind
from core.incident_record import Incident, State
from core.naming import DRAIN_HOOK, GATE_HOOK
from core.observations import Observation
from core.rotation import returned

# Auto Scaling's names for an instance that stands in its terminating hooks.
WAITING = "Terminating:Wait"
# What a termination through the group follows, and then governs.
_BEFORE = frozenset({Kind.SCHEDULED_CHANGE, Kind.STATE_CHANGE, Kind.REBALANCE, Kind.ROTATION})


def learn(incident: Incident, seen: Observation) -> Incident:
    """Add what a reading shows; who stood on the node is settled once the drain is forwarded."""
    if seen.blind:
        return incident
    if seen.lifecycle_state == WAITING and not incident.hooks:
        # The group has begun and its announcement is late, or lost: the loop must keep the hooks.
        incident = replace(
            incident,
            hooks={DRAIN_HOOK: None, GATE_HOOK: None},
            kind=Kind.ASG_TERMINATE if incident.kind in _BEFORE else incident.kind,
            announced_at=seen.now,
        )
    if _undrained(incident):
        incident = _placed(incident, seen)
    if incident.node_id is not None and incident.state is State.GATING:
        incident = _return_noted(incident, seen)
    return incident


def _undrained(incident: Incident) -> bool:
    gone = {State.DRAINING, State.GATING}
    return incident.forwarded_at is None and incident.state not in gone


def _placed(incident: Incident, seen: Observation) -> Incident:
    node = seen.node_of(incident.instance_id)
    instance = seen.instance
    name = node.name if node else incident.node_name
    zone = node.zone if node else None
    pod = seen.pod_on(name)
    incident = replace(
        incident,
        group=incident.group or (instance.group if instance else None),
        zone=incident.zone or zone or (instance.zone if instance else None),
        pool=incident.pool or (node.pool if node else None),
        node_name=name,
    )
    if pod is None:
        return incident
    return replace(incident, pod_name=pod.name, node_id=pod.node_id, role=pod.role)


def _return_noted(incident: Incident, seen: Observation) -> Incident:
    """Keep since when every reading has shown the broker back; one that does not starts again."""
    if seen.kafka is None or incident.node_id is None:
        return incident  # Silence is no sign of absence.
    pod = seen.pod_named(incident.pod_name)
    settled = pod is not None and pod.ready and pod.node_name != incident.node_name
    if not settled or not returned(incident.node_id, seen.kafka).allowed:
        return replace(incident, broker_back_at=None)
    return replace(incident, broker_back_at=incident.broker_back_at or seen.now)
