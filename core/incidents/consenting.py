"""Asks whether Kafka, or a person in its place, lets the node of an incident go.

core.incidents.terminating asks before a drain, core.incidents.draining before it is sent again.
"""

from __future__ import annotations

from core.availability.consent import may_leave
from core.events import Kind
from core.incidents.decisions import is_hooked
from core.incidents.observation import Observation, Policy
from core.incidents.opening import is_open
from core.incidents.record import Incident
from core.views import id_list


def consent(incident: Incident, seen: Observation, policy: Policy) -> tuple[bool, str]:
    """Say whether Kafka, or a person in its place, lets the node go, and why."""
    if incident.release is not None:
        return True, f"{incident.release.by} lets Kafka node {incident.node_id} go."
    if seen.kafka is None or incident.node_id is None:
        return False, seen.kafka_silence
    verdict = may_leave(
        incident.node_id,
        seen.kafka,
        isr_margin=policy.isr_margin,
        beside=seen.beside,
        even_last=_insists(incident, seen, policy),
    )
    rolled = _roll_reason(incident, seen)
    if verdict.allowed and rolled and not _insists(incident, seen, policy):
        return False, rolled
    budget = seen.refusing_budget(incident.pod_name)
    # One that yields is opened before the drain is sent (core.incidents.opening).
    refused = budget is not None and not (budget.yields or is_open(incident, seen))
    if verdict.allowed and seen.beside and budget is not None and refused:
        # The eviction would only wait in the termination handler, and run out of its time there.
        return False, (
            f"Kafka node {incident.node_id} may leave together with "
            f"{id_list(sorted(seen.beside))}, and PodDisruptionBudget {budget.name} "
            f"lets no other pod go until one is Ready again."
        )
    return verdict.allowed, verdict.reason


def _roll_reason(incident: Incident, seen: Observation) -> str:
    """Say that Strimzi's operator is rolling pods, which it does one after the other.

    Between two of them everything is whole, and the next one goes without a word to us.
    """
    if seen.revisions_silence:
        return f"Whether Strimzi rolls pods is not known: {seen.revisions_silence}"
    pod = seen.rolled_beside(incident.pod_name)
    if pod is None:
        return ""
    why = "somebody asked for it" if pod.roll_asked else "its description has changed"
    return (
        f"Node {incident.node_id} may not leave: Strimzi is to restart pod {pod.name} ({why}); "
        f"wait until it has, or see why its operator does not go on."
    )


def _insists(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether AWS takes the instance, and waits no longer: past the limit, or near its date."""
    rotated = any(key.startswith(f"{Kind.ROTATION}:") for key in incident.announcements)
    if rotated or incident.called_off:
        return False
    due = incident.taken_at
    if due is not None and seen.now >= due - policy.hold_limit_seconds:
        return True
    return is_hooked(incident) and seen.now - incident.waits_since > policy.hold_limit_seconds


def is_overruled(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether AWS's word alone lets a node go that is some partition's last in sync."""
    if seen.kafka is None or incident.node_id is None or incident.release is not None:
        return False
    margin = policy.isr_margin
    plain = may_leave(incident.node_id, seen.kafka, isr_margin=margin, beside=seen.beside)
    return not plain.allowed and consent(incident, seen, policy)[0]
