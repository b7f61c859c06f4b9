"""Decides whether the node of an incident may go: Kafka's consent, and Strimzi's operator at rest.

core.incidents.terminating asks before a drain, handlers.incidents.act directly before it is sent,
core.incidents.draining before it is sent again, core.gate before an eviction.
"""

from __future__ import annotations

from core.availability.consent import may_leave
from core.availability.operator import OperatorTask, operator_tasks
from core.events import Kind
from core.incidents.decisions import is_hooked
from core.incidents.observation import Observation, Policy
from core.incidents.opening import is_open
from core.incidents.record import Incident
from core.unknown import Unknown
from core.views import id_list

# How long the operator may be unreadable before a person is called.
UNKNOWN_SECONDS = 900.0


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
    busy = _operator_hinders(incident, seen)
    if not verdict.allowed:
        # The roll is why a replica is away, and the partition alone would not tell a person.
        return False, verdict.reason if busy is None else f"{verdict.reason} {busy}"
    waits = operator_refusal(incident, seen, policy) or _budget_refusal(incident, seen)
    if waits is not None:
        return False, waits
    if busy is None:
        return True, verdict.reason
    return True, f"{verdict.reason} Node {incident.node_id} does not wait any longer: {busy}"


def _budget_refusal(incident: Incident, seen: Observation) -> str | None:
    """Return which disruption budget would keep a party's eviction waiting; None: none."""
    budget = seen.refusing_budget(incident.pod_name)
    # One that yields is opened before the drain is sent (core.incidents.opening).
    refused = budget is not None and not (budget.yields or is_open(incident, seen))
    if not (seen.beside and budget is not None and refused):
        return None
    # The eviction would only wait in the termination handler, and run out of its time there.
    return (
        f"Kafka node {incident.node_id} may leave together with {id_list(sorted(seen.beside))}, "
        f"and PodDisruptionBudget {budget.name} lets no other pod go until one is Ready again."
    )


def operator_refusal(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return why the operator keeps a node from leaving now; None: it does not.

    Between two pods of its roll everything is whole, and the next one goes without a word to us.
    AWS's own deadline overrides it, and so does a departure that was announced when the operator
    gets nowhere: a pod may wait for the very node that waits for the operator.
    """
    if incident.release is not None or incident.urgent or incident.node_id is None:
        return None
    waits = _operator_hinders(incident, seen)
    if waits is None or _insists(incident, seen, policy):
        return None
    tasks = _tasks_of_others(incident, seen)
    if tasks and _is_announced(incident) and all(each.is_stalled(seen.now) for each in tasks):
        return None
    return f"Node {incident.node_id} may not leave: {waits}"


def stalled_operator(incident: Incident, seen: Observation) -> str | None:
    """Return what of the operator's work needs a person; None: nothing does."""
    if isinstance(seen.operator, Unknown):
        since = incident.doubted_since or seen.now
        return _operator_hinders(incident, seen) if seen.now - since > UNKNOWN_SECONDS else None
    tasks = _tasks_of_others(incident, seen)
    stalled = next((each.sentence for each in tasks if each.is_stalled(seen.now)), None)
    return stalled and f"{stalled} Nothing planned starts before it has finished."


def _operator_hinders(incident: Incident, seen: Observation) -> str | None:
    if isinstance(seen.operator, Unknown):
        return f"Whether Strimzi's operator restarts pods is not known: {seen.operator.why}"
    return next((each.sentence for each in _tasks_of_others(incident, seen)), None)


def _tasks_of_others(incident: Incident, seen: Observation) -> list[OperatorTask]:
    """Return the operator's tasks but those about the incident's own pod alone.

    The next pod of that name has the new description: one restart instead of two.
    """
    if seen.operator is None or isinstance(seen.operator, Unknown):
        return []
    tasks = operator_tasks(seen.operator, seen.pods, seen.taken_out, seen.now)
    return [each for each in tasks if not each.is_about_only({incident.pod_name})]


def _is_announced(incident: Incident) -> bool:
    """Say whether AWS or a group takes the instance: nothing that we planned, or that may wait."""
    return is_hooked(incident) and not (_is_rotated(incident) or incident.called_off)


def _is_rotated(incident: Incident) -> bool:
    return any(key.startswith(f"{Kind.ROTATION}:") for key in incident.announcements)


def _insists(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether AWS takes the instance, and waits no longer: past the limit, or near its date."""
    if _is_rotated(incident) or incident.called_off:
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
