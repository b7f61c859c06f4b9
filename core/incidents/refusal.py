"""Decides about an instance that its group does not terminate, before its hooks ever stand.

core.incidents.terminating asks `kept_by_group` before it asks the group, and `last_way` before
that. A refusal is noted with the group's own words (settling.note_refusal), a place where the group
terminates nothing is learnt (learn).
"""

from __future__ import annotations

from core.errors import Conflict
from core.incidents.actions import DropLease, Page
from core.incidents.decisions import asked_for, is_hooked, stay
from core.incidents.observation import Observation, Policy
from core.incidents.record import Decision, Incident

# Auto Scaling announces a termination within half a minute; a group that is busy says no for one.
PATIENCE_SECONDS = 120.0
# Afterwards it is asked again as often as that: somebody may have changed the group.
SLOW_SECONDS = 600.0


def kept_by_group(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Give the lease back, call a person and look again slowly, once a group has refused for long.

    None: it has not, or is to be asked again now.
    """
    refusal = incident.refusal
    elsewhere = seen.lifecycle_state not in {"InService", "Terminating:Retained"}
    # Hooks that were announced in an earlier round hold nobody there.
    if refusal is None or (is_hooked(incident) and elsewhere):
        return None
    patient = seen.now - refusal.since <= PATIENCE_SECONDS
    asked = seen.now - (incident.terminate_asked_at or refusal.since) < SLOW_SECONDS
    if not elsewhere and (patient or not asked):
        return None
    reason = (
        f"Group {incident.group or 'of none'} does not terminate instance {incident.instance_id}: "
        f"{refusal.words.rstrip('.')}. {_remedy(incident, seen)}"
    )
    page = () if patient else (Page("group_refuses", reason),)
    delay = policy.tick_interval_seconds if patient else SLOW_SECONDS
    return stay(incident, policy, reason, *page, DropLease(), delay=delay)


def is_out_of_service(incident: Incident, seen: Observation) -> bool:
    """Say whether no group would terminate the instance, nor was asked to: no hooks ever stand."""
    asked = incident.terminate_asked_at is not None or is_hooked(incident)
    return not asked and not (seen.lifecycle_state or "").startswith(("InService", "Terminating"))


def left_by_group(incident: Incident, seen: Observation, policy: Policy, reason: str) -> Decision:
    """Call a person for an idle instance out of service, unless who brings its successor ends it.

    One that a broker waits on counts as refused before (core.incidents.learn).
    """
    state = seen.lifecycle_state
    where = "in no Auto Scaling group" if state is None else f"{state} in its group"
    said = f"{reason} Instance {incident.instance_id} is {where}, so nothing here terminates it."
    if asked_for(incident, policy) or (state or "").startswith("Pending"):
        return stay(incident, policy, said)
    return stay(incident, policy, said, Page("no_group", f"{said} {_remedy(incident, seen)}"))


def below_minimum(incident: Incident) -> bool:
    """Say whether the group refused to become smaller than its minimum; it may be asked not to."""
    return incident.refusal is not None and _names_minimum(incident.refusal.words)


def own_refusal(incident: Incident, instance_id: str, words: str | None) -> str | None:
    """Return why a group does not end the incident's own instance; None: it does, or never will.

    Raises Conflict where it does not end an idle one now: once its incident is over, nobody would
    come back to it. A group that wants the machine, or has it no longer, is taken at its word.
    """
    if words is None or instance_id == incident.instance_id:
        return words
    if _names_minimum(words) or "not found" in words.lower():
        return None
    raise Conflict(f"Its group does not terminate idle {instance_id}: {words}")


def _names_minimum(words: str) -> bool:
    return any(name in words.lower() for name in ("minsize", "min size"))


def last_way(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return why a node is drained without its group: AWS takes it soon, and the group refuses."""
    refusal, taken_at = incident.refusal, incident.taken_at
    if refusal is None or taken_at is None or is_hooked(incident):
        return None
    if seen.now - refusal.since <= PATIENCE_SECONDS:
        return None
    left = taken_at - seen.now
    if left > policy.planned_margin_seconds / 2:
        return None
    return (
        f"AWS takes instance {incident.instance_id} in {left / 60:.0f} min and its group does not "
        f"terminate it: it is drained where it stands."
    )


def _remedy(incident: Incident, seen: Observation) -> str:
    state = seen.lifecycle_state
    if state is None and incident.node_id is None:
        return "Attach it to its group again, or terminate it by hand."
    if state is None:
        return "Attach it to its group again, or move its broker by hand."
    if "Standby" in state:
        return "Put it in service again (aws autoscaling exit-standby)."
    if below_minimum(incident):
        return "Lower the group's minimum size."
    return "See the group's activities; it is asked again every 10 min."
