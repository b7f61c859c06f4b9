"""Decides planned departures (AWS, a rotation, a sick machine) and reboots that AWS has planned.

    opened     waits for its window (core.ground.window)
    replacing  makes room for one more node in the zone's group, and waits for it
    holding    waits for consent and the lease, then terminates the instance through its group

Until then nothing runs out: whoever planned it may call it off, and it ends without a trace. Where
AWS only reboots, the instance stays; others lead from ten minutes before until its broker is back.
AWS may never say that a reboot is over, so its time ends by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.availability.consent import check_returned
from core.events import Kind
from core.events.health import ChangeResponse, answer_to
from core.ground.window import Start, clock, start_of
from core.incidents import in_place
from core.incidents.actions import (
    LATE_REPLACEMENT_SECONDS,
    Action,
    Decision,
    DropLease,
    KeepErrors,
    MoveLeaders,
    Page,
    RestoreLeaders,
    SetDesired,
    asked_for,
    go,
    stay,
)
from core.incidents.consenting import kept_back, look_again, out_of_time, overtaking_decision
from core.incidents.evicted import given_up
from core.incidents.joining import scheduled_changes
from core.incidents.observation import Observation, Policy
from core.incidents.record import EXPEDITED, UNDRAINED, Incident, State
from core.incidents.replacement import (
    decide_awaiting_node,
    is_own_group,
    is_unneeded,
    is_unsettled,
    nowhere_to_go,
    replacement_for,
    spoken_for,
    terminate_through_group,
)

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


def add_reboots(
    decision: Decision, incident: Incident, seen: Observation, policy: Policy
) -> Decision:
    """Add to a decision about an instance that AWS ends what reboots before that ask for."""
    ends = answer_to(incident.event_type) is not ChangeResponse.RIDE_THROUGH
    planned = incident.kind is Kind.SCHEDULED_CHANGE and ends
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


def serves_on(incident: Incident, now: float, seconds: float = 0.0) -> bool:
    """Say whether a machine waits for AWS's date, and serves as any other for so long at least.

    One that reboots does not: it looks sick meanwhile.
    """
    dated = incident.kind is Kind.SCHEDULED_CHANGE and incident.state in UNDRAINED
    begins = LEADERS_LEAD_SECONDS + seconds
    soon = any(due - begins <= now < due + MAINTENANCE_SECONDS for due, _ in _dates(incident))
    return dated and not (soon or incident.release)


def _until(moment: float, now: float) -> float:
    return min(moment - now, LONGEST_DELAY_SECONDS)


# How long a machine stands ready for a run that does not come: its nodes have an hour each.
AHEAD_SECONDS = 3600.0
# How often one is looked at that is ready: its turn wakes it.
READY_SECONDS = 60.0
# Whom we ask to leave ourselves -> how that ends when it is no longer wanted.
_CALLED_OFF: Mapping[Kind, str] = {
    Kind.ROTATION: "A person called the rotation off.",
    Kind.SICK_NODE: "The machine is well again: its agent, its kubelet and EC2 all say so.",
    Kind.EVICTION: "No drainer requests the eviction any longer.",
}

# Who waits for no window, and why.
_AT_ONCE: Mapping[Kind, str] = {
    Kind.ROTATION: "its turn in the rotation has come",
    Kind.EVICTION: "who drains it waits for an answer",
    Kind.SICK_NODE: "it may die before a window opens, so its replacement begins at once",
}


def decide_scheduled(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Decide about a change AWS has scheduled, before anything is done about it."""
    decided = _governing(incident, seen, policy)
    unknown = [e for e in incident.scheduled if e.answer is ChangeResponse.TELL and not e.closed]
    if not unknown or answer_to(incident.event_type) is ChangeResponse.TELL:
        return decided
    told = Page("unknown_change", _unanswered_text(unknown[0].code, incident))
    return replace(decided, actions=(told, *decided.actions))


def _unanswered_text(code: str | None, incident: Incident) -> str:
    return (
        f"AWS schedules {code or 'a change'} for instance {incident.instance_id}, which no rule "
        f"answers: it is not replaced for that, and a person decides."
    )


def _governing(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    code = incident.event_type or "a scheduled change"
    if incident.called_off:
        return call_off(incident, seen, policy)
    answer = answer_to(incident.event_type)
    if answer is ChangeResponse.TELL:
        reason = _unanswered_text(incident.event_type, incident)
        return go(State.RIDDEN_THROUGH, reason, Page("unknown_change", reason))
    if answer is ChangeResponse.RIDE_THROUGH:
        return ride_through(incident, seen, policy)
    if policy.drain_route == "direct":
        heard = "The termination handler heard the announcement itself."
        return go(State.DRAINING, heard, KeepErrors())
    due = incident.due_at
    when = "at a time not yet said" if due is None else f"at {clock(due)}"
    taken = f"AWS takes instance {incident.instance_id} {when} ({code})"
    if incident.node_name is None:
        # There is nothing to move; a person may care.
        reason = f"{taken}; it is not a node of Kubernetes."
        page = Page("scheduled", reason)
        return stay(incident, policy, reason, page, delay=LONGEST_DELAY_SECONDS)
    return _begin(incident, seen, policy, taken)


def decide_asked(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Begin with an instance that a run has come to, or a machine that is sick and not dead."""
    if incident.called_off:
        return call_off(incident, seen, policy)
    sick = "is sick" if incident.scheduled_said_at else f"is sick ({incident.event_type})"
    why = sick if incident.kind is Kind.SICK_NODE else "is to be replaced"
    return _begin(incident, seen, policy, f"Instance {incident.instance_id} {why}")


def _begin(incident: Incident, seen: Observation, policy: Policy, taken: str) -> Decision:
    """Start replacing once the window is open and nobody wants the instance kept."""
    kept = kept_back(incident, seen, policy)
    hurry = _against_a_freeze(incident, seen, policy, taken)
    if kept:
        late = out_of_time(incident, seen, policy)
        asked = (Page("held_past_date", f"{taken}. {kept} AWS does not wait."),) if late else ()
        return stay(incident, policy, f"{taken}. {kept}", *asked, delay=LONGEST_DELAY_SECONDS)
    start = _start(incident, seen, policy)
    if start.at > seen.now:
        delay = max(start.at - seen.now, policy.tick_interval_seconds)
        delay = min(delay, max(LONGEST_DELAY_SECONDS, policy.tick_interval_seconds))
        return stay(incident, policy, f"{taken}; {start.reason}.", delay=delay)
    begins = f"{taken}; {start.reason}."
    return _nothing_to_move(incident, seen, policy) or go(State.REPLACING, begins, *hurry)


def _against_a_freeze(
    incident: Incident, seen: Observation, policy: Policy, taken: str
) -> tuple[Action, ...]:
    """Call a person where AWS's date leaves no time to wait until a zone is well."""
    freeze = seen.freeze(incident.zone)
    if freeze is None or not out_of_time(incident, seen, policy):
        return ()
    reason = f"{taken}. {freeze.sentence} AWS does not wait for that, so it is replaced anyway."
    return (Page("frozen_zone", reason),)


def _nothing_to_move(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Let a node without Kafka go at once: its group launches another, nobody waits for it."""
    if incident.node_id is not None:
        return None
    if _awaits_its_turn(incident, seen, policy):
        reason = f"No Kafka pod runs on {incident.node_name}, whose turn has not come."
        return stay(incident, policy, reason)
    again = look_again(incident, seen, policy)
    if again:
        return again
    reason = f"No Kafka pod runs on {incident.node_name}."
    return terminate_through_group(incident, seen, policy, reason)


def _start(incident: Incident, seen: Observation, policy: Policy) -> Start:
    at_once = _AT_ONCE.get(incident.kind)
    if at_once is None and EXPEDITED in (incident.event_type or "").upper():
        at_once = "AWS hurries, so the replacement begins at once"
    if at_once is not None:
        return Start(seen.now, at_once)
    return start_of(
        incident.due_at, seen.now, policy.maintenance, margin_seconds=policy.planned_margin_seconds
    )


def waits(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Say what keeps planned work from going on in `replacing` or `holding`; None: nothing."""
    if incident.called_off or given_up(incident, seen):
        return call_off(incident, seen, policy)
    if incident.ahead and seen.now - incident.opened_at > AHEAD_SECONDS:
        return call_off(incident, seen, policy, "Its run has not come to it within an hour.")
    mine: tuple[Action, ...] = (DropLease(),) if seen.lease_holder == incident.id else ()
    kept = kept_back(incident, seen, policy)
    if kept:
        return stay(incident, policy, kept, *mine, delay=4 * policy.tick_interval_seconds)
    start = _start(incident, seen, policy)
    if start.at > seen.now:
        # The window has closed over it, and another opens in time.
        reason = f"Instance {incident.instance_id} has its replacement; {start.reason}."
        delay = min(start.at - seen.now, LONGEST_DELAY_SECONDS)
        return stay(incident, policy, reason, *mine, delay=delay)
    return None


def replacing(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Make room for one more node, once, and wait until it can take the pod."""
    passed = overtaking_decision(incident, seen, policy) or waits(incident, seen, policy)
    if passed:
        return passed
    if asked_for(incident, policy) and incident.release is not None:
        return replace(go(State.HOLDING, incident.reason), without_replacement=True)
    in_its_place = in_place.replacing(incident, seen, policy)
    if in_its_place is not None:
        return in_its_place
    found = replacement_for(incident, seen)
    if found:
        reason = f"{found.name} is Ready in {incident.zone} with its EBS driver registered."
        taken = _room_taken_over(incident, seen)
        return replace(go(State.HOLDING, reason), replacement=found.name, surge_to=taken)
    return _capacity(incident, seen, policy)


def _capacity(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    group = seen.group
    theirs = policy.drain_route == "asked" or not is_own_group(seen)
    if asked_for(incident, policy) and (group is None or theirs):
        return decide_awaiting_node(
            incident, seen, policy
        )  # Whose machines they are brings the next one.
    if group is None:
        reason = (
            f"Instance {incident.instance_id} belongs to no Auto Scaling group, so nothing "
            f"replaces it; move Kafka node {incident.node_id} by hand before AWS takes it."
        )
        return stay(incident, policy, reason, Page("no_group", reason), delay=LONGEST_DELAY_SECONDS)
    # Absolute and never lowered: a group with one instance too many picks which one goes.
    # Another that has let its own instance go meanwhile has lowered the group, and rightly so.
    wanted = min(incident.surge_to or group.desired + 1, spoken_for(seen) + 1)
    lacking = incident.surge_to is None or group.desired < wanted
    if lacking and max(group.desired + 1, wanted) > group.maximum:
        reason = (
            f"{group.name} may not grow above {group.maximum}, so Kafka node {incident.node_id} "
            f"has no replacement; raise its maximum."
        )
        return stay(incident, policy, reason, Page("no_room", reason), delay=60.0)
    if incident.surge_to is not None:
        return decide_awaiting_node(
            incident, seen, policy, *((SetDesired(wanted),) if lacking else ())
        )
    # Others may have written theirs down, and not asked the group yet.
    surge = max(group.desired, spoken_for(seen)) + 1
    if surge > group.maximum:
        reason = f"{group.name} has room for {group.maximum} instances, and others wait for those."
        return stay(incident, policy, reason)
    reason = f"{group.name} gets room for {surge} instances."
    return replace(stay(incident, policy, reason, delay=0.0), surge_to=surge)


def _room_taken_over(incident: Incident, seen: Observation) -> int | None:
    """Return the room that another asked the group for and nobody needs; None: there is none.

    Its group has terminated that one by itself, and replaced it: whoever takes the machine that is
    left gives the room back with its own.
    """
    group = seen.group
    if incident.surge_to is not None or group is None or not seen.asking:
        return None
    return group.desired if group.desired > spoken_for(seen) else None


def holding(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Wait, with a replacement at hand, for what keeps planned work, or for a run; None: go on.

    Nobody waits for a run whom AWS takes meanwhile, or a person lets go.
    """
    kept = waits(incident, seen, policy)
    if kept or not _awaits_its_turn(incident, seen, policy):
        return kept
    passed = overtaking_decision(incident, seen, policy)
    if passed:
        return passed
    found = replacement_for(incident, seen)
    if found is None:
        return go(State.REPLACING, nowhere_to_go(incident))
    reason = (
        f"{found.name} can take Kafka node {incident.node_id} over, whose turn in the rotation has "
        f"not come."
    )
    return stay(incident, policy, reason, delay=READY_SECONDS)


def _awaits_its_turn(incident: Incident, seen: Observation, policy: Policy) -> bool:
    hurried = incident.release is not None or out_of_time(incident, seen, policy)
    return incident.ahead and not hurried


def call_off(
    incident: Incident, seen: Observation, policy: Policy, why: str | None = None
) -> Decision:
    """End what is no longer wanted; what it asked its group for is given back (replacement)."""
    code = incident.event_type or "the scheduled change"
    reason = why or _CALLED_OFF.get(incident.kind) or f"AWS called {code} off."
    said_at = incident.notes[-1].at if incident.notes else 0.0
    since = max(incident.entered_at, incident.scheduled_said_at or 0.0, said_at)
    if is_unneeded(incident, seen):
        if is_unsettled(seen) and seen.now - since < LATE_REPLACEMENT_SECONDS:
            waits = f"{reason} The room for its replacement is given back once that is settled."
            return stay(incident, policy, waits, DropLease())
        spare = replacement_for(incident, seen)
        reason = reason if spare is None else f"{reason} {spare.name} is not needed any more."
    return go(State.CANCELLED, reason, DropLease())


def is_planned(incident: Incident) -> bool:
    """Say whether the instance still serves and only a schedule or a rotation asks for its end."""
    asked = incident.scheduled_said_at is not None or incident.kind in _CALLED_OFF
    return asked and not incident.is_hooked and not incident.urgent
