"""Decides who leads while AWS reboots a machine that stays: others, until its broker is back.

Several reboots may be ahead of one machine, or one before its retirement. From ten minutes before
each until it is over others lead, in between the machine's own broker does. AWS may never say that
one is over: its time ends by itself, and the next is still ahead.

core.incidents.planned asks for a machine that is only rebooted, core.incidents.decide for one that
AWS ends as well.
"""

from __future__ import annotations

from dataclasses import replace

from core.availability.presence import check_returned
from core.events import Kind
from core.events.scheduled import ChangeResponse, answer_to
from core.incidents.actions import MoveLeaders, Page, RestoreLeaders
from core.incidents.decisions import go, is_hooked, stay
from core.incidents.joining import scheduled_changes
from core.incidents.observation import Observation, Policy
from core.incidents.record import Decision, Incident, State
from core.window import clock

# SQS delays a message by 15 minutes at most.
LONGEST_DELAY_SECONDS = 900.0
# Leaders move in seconds. AWS begins its maintenance at the time it gives, or later.
LEADERS_LEAD_SECONDS = 600.0
MAINTENANCE_SECONDS = 7200.0
LOOK_AGAIN_SECONDS = 60.0


def ride_through(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Keep the instance through all that is ahead of it, one after another."""
    code = incident.event_type or "a scheduled change"
    if incident.node_id is None or not _dates(incident):
        what = f"{code} gives instance {incident.instance_id} back"
        return go(State.RIDDEN_THROUGH, f"{what}: its replicas carry on meanwhile.")
    over = f"{code} is over, and Kafka node {incident.node_id} in every ISR."
    return _step(incident, incident.node_id, seen, policy) or go(State.RIDDEN_THROUGH, over)


def with_reboots(
    decision: Decision, incident: Incident, seen: Observation, policy: Policy
) -> Decision:
    """Add to a decision about an instance that AWS ends what reboots before that ask for."""
    ends = answer_to(incident.event_type) is not ChangeResponse.RIDE_THROUGH
    planned = incident.kind is Kind.SCHEDULED_CHANGE and ends and not is_hooked(incident)
    if not planned or incident.node_id is None or decision.state is not incident.state:
        return decision
    step = _step(incident, incident.node_id, seen, policy)
    if step is None:
        back = () if incident.leaders_moved_at is None else (RestoreLeaders(),)
        return replace(decision, actions=(*decision.actions, *back))
    waits = [d for d in (decision.delay_seconds, step.delay_seconds) if d is not None]
    actions = (*decision.actions, *step.actions)
    return replace(decision, actions=actions, delay_seconds=min(waits, default=None))


def _dates(incident: Incident) -> list[tuple[float, str]]:
    """Return when each reboot that is not closed is due, and what AWS calls it; the next first."""
    return sorted(
        (each.due_at, each.code or "a reboot")
        for each in scheduled_changes(incident)
        if each.answer is ChangeResponse.RIDE_THROUGH
        and not each.closed
        and each.due_at is not None
    )


def _step(incident: Incident, node_id: int, seen: Observation, policy: Policy) -> Decision | None:
    """Move leaders for the reboot that is next or under way; None: there is none, and all is back.

    One whose date was told when it was long over asks for nothing.
    """
    ahead = [(due, code) for due, code in _dates(incident) if seen.now < due + MAINTENANCE_SECONDS]
    due, code = ahead[0] if ahead else (float("inf"), "")
    begins = due - LEADERS_LEAD_SECONDS
    moved = incident.leaders_moved_at is not None
    if seen.now >= begins and not moved:
        reason = f"{code} is due at {clock(due)}: others lead what Kafka node {node_id} did."
        return stay(incident, policy, reason, MoveLeaders((node_id,)), delay=LOOK_AGAIN_SECONDS)
    if seen.now >= begins:
        reason = f"{code} is due at {clock(due)}; its leaders return when it is over."
        return stay(incident, policy, reason, delay=_until(due + MAINTENANCE_SECONDS, seen.now))
    if moved and (seen.kafka is None or not check_returned(node_id, seen.kafka).allowed):
        last = max((due for due, _ in _dates(incident) if due <= seen.now), default=seen.now)
        reason = f"Kafka node {node_id} is not back in every ISR after the reboot of {clock(last)}."
        page = Page(f"not_back:{last:.0f}", reason)
        return stay(incident, policy, reason, page, delay=LOOK_AGAIN_SECONDS)
    if not ahead:
        return None
    reason = f"{code} at {clock(due)} gives the instance back: leaders move away before it."
    back = (RestoreLeaders(),) if moved else ()
    return stay(incident, policy, reason, *back, delay=_until(begins, seen.now))


def _until(moment: float, now: float) -> float:
    return min(moment - now, LONGEST_DELAY_SECONDS)
