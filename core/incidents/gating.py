"""Decides when the gate opens: the instance's volumes free, its broker back for good.

core.incidents.draining and core.incidents.lost ask it in state `gating`.
"""

from __future__ import annotations

from core.availability.presence import is_back
from core.incidents.decisions import asked_for
from core.incidents.observation import Observation, Policy
from core.incidents.record import Incident
from core.incidents.unready import why_unready
from core.incidents.whereabouts import attached_there, pod_there


def still_missing(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return what the gate still waits for, or None when the instance may go."""
    away = _still_away(incident, seen, policy) if incident.expects_return else None
    return _still_held(incident, seen, policy, away) or away


def is_returning(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether the broker is back, and only has to stay so for a while: it is not given up.

    Each look that sees nothing starts that while again.
    """
    back = incident.expects_return and incident.broker_back_at is not None
    return back and _still_held(incident, seen, policy, None) is None


def _still_held(
    incident: Incident, seen: Observation, policy: Policy, away: str | None
) -> str | None:
    """Return what of the broker's the old instance still has.

    A broker that is back has its volumes. Where EC2 has nothing attached either, what Kubernetes
    still notes is another claim's.
    """
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.ready and asked_for(incident, policy):
        # Perhaps on its own node again, where a drainer thought better of it.
        return None
    if pod is not None and pod_there(incident, pod, seen):
        return f"Pod {pod.name} is still on {incident.node_name}."
    attached = attached_there(incident, seen)
    if attached and (seen.volumes or away is not None):
        held = f"Volume {attached[0]} is still attached to {incident.node_name}."
        return held if seen.volumes or away is None else f"{held} {away}"
    if seen.volumes:
        return f"EC2 has not yet detached {seen.volumes[0]} from {incident.instance_id}."
    return None


def _still_away(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return what the broker lacks on its new node."""
    pod = seen.pod_named(incident.pod_name)
    if pod is None or not pod.ready:
        why = why_unready(incident.pod_name, seen)
        return f"Pod {incident.pod_name} is not Ready on another node yet{why}."
    home = seen.node_named(pod.node_name)
    if home is not None and not (home.ready and home.csi_ready):
        return f"{home.name}, where {pod.name} runs, is not Ready with its EBS driver."
    if policy.gate == "ready":
        return None
    return not_back(incident, seen, policy)


def not_back(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return what Kafka still lacks of the broker, or None when it is back for good."""
    if seen.kafka is None or incident.node_id is None:
        return seen.kafka_silence
    verdict = is_back(
        incident.node_id,
        seen.kafka,
        back_since=incident.broker_back_at,
        now=seen.now,
        hold_seconds=policy.post_condition_hold_seconds,
    )
    return None if verdict.allowed else verdict.reason
