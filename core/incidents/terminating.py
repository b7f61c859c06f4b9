"""Lets a node with a lifecycle go in order, up to its drain: replacement first, then its turn.

One function per state, replacing and holding; core.incidents calls them. What makes planned work
different until its hooks stand is in core.incidents.planned, what a dead machine needs in
core.incidents.lost, what follows a drain that has begun in core.incidents.draining.

Decides about an instance that its group does not terminate, before its hooks ever stand.

core.incidents.terminating asks `kept_by_group` before it asks the group, and `last_way` before
that. A refusal is noted with the group's own words (settling.note_refusal), a place where the group
terminates nothing is learnt (learn).
"""

from __future__ import annotations

from dataclasses import replace

from core.errors import Conflict
from core.events import Kind
from core.incidents import drains, in_place
from core.incidents.actions import (
    Action,
    DropLease,
    EndDrain,
    ForwardDrain,
    KeepErrors,
    Page,
    SetDesired,
    TakeLease,
    TerminateInGroup,
)
from core.incidents.consenting import consent, is_overruled, party_waits
from core.incidents.decisions import (
    asked_for,
    asking,
    evicting,
    go,
    is_hooked,
    lease_renewal,
    retain,
    stay,
    who_goes_first,
)
from core.incidents.drains import unsafe_drains
from core.incidents.learn import forced_soon, wanted_kept
from core.incidents.observation import Observation, Policy
from core.incidents.record import EXPEDITED, Decision, Incident, State
from core.incidents.replacement import (
    has_room,
    none_will_come,
    nowhere_to_go,
    replacement_for,
    what_is_coming,
)
from core.incidents.waits import GROUP_SECONDS, LATE_REPLACEMENT_SECONDS
from core.window import clock

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


# How often an unanswered launch is looked at again: twice as long each time, up to SQS's longest.
LONGEST_BACKOFF_SECONDS = 900.0
# Auto Scaling announces a termination within seconds; the announcement names NTH's hook by token.
ANNOUNCEMENT_SECONDS = 30.0


def forward_now(policy: Policy) -> Decision:
    """Drain at once: two minutes leave no time for a replacement."""
    if policy.drain_route == "direct":
        return go(State.DRAINING, "The termination handler heard the warning itself.", KeepErrors())
    if policy.drain_route == "asked":
        reason = "EC2 takes the instance within two minutes: whoever drains it is let through."
        return go(State.DRAINING, reason, KeepErrors())
    return go(
        State.DRAINING,
        "EC2 takes the instance within two minutes: the drain starts at once.",
        ForwardDrain(),
    )


def past_hold_limit(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Keep an instance that has been held for too long: never silently, never for ever.

    A pause, a person's hold and a frozen zone outlast our limit, which counts anew after them; they
    do not outlast the one that AWS sets a hook.
    """
    if not is_hooked(incident) or policy.drain_route == "asked":
        return None  # Nothing of ours runs out: whoever waits for a window may wait for days.
    last = max(policy.hook_limit_seconds - policy.heartbeat_timeout_seconds, 0.0)
    held, waited = seen.now - incident.held_since, seen.now - incident.waits_since
    patient = wanted_kept(incident, seen) or waited <= policy.hold_limit_seconds
    if patient and held <= last:
        return None
    return retain(
        incident,
        "hold_limit",
        f"Instance {incident.instance_id} was held for {held:.0f} s without "
        f"being allowed to go ({incident.reason.rstrip('.')}); it is kept until a person decides.",
    )


def overtaking_decision(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Stop waiting for a replacement or a turn when something else has made it pointless."""
    if incident.urgent:
        return forward_now(policy)
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.node_name not in {None, incident.node_name}:
        # Evicted by somebody else, or by a drain whose invocation died before recording it.
        reason = f"Pod {pod.name} has moved to {pod.node_name} already."
        return go(State.DRAINING, reason, *lease_renewal(incident))
    gone = incident.node_name is not None and seen.node_named(incident.node_name) is None
    homeless = pod is None or pod.node_name is None
    if evicting(incident) and homeless and incident.node_id is not None:
        # By somebody who asked nobody: it is out, and not on its way to where it was.
        reason = f"Pod {incident.pod_name} has left {incident.node_name}, which others drain."
        return go(State.DRAINING, reason, *lease_renewal(incident))
    if is_hooked(incident) and gone and homeless:
        reason = f"Node {incident.node_name} is gone from Kubernetes, and its pod with it."
        return go(State.DRAINING, reason, *lease_renewal(incident))
    return past_hold_limit(incident, seen, policy)


def replacing(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait until another node can take the pod."""
    passed = overtaking_decision(incident, seen, policy)
    if passed:
        return passed
    if incident.release is not None:
        reason = f"{incident.release.by} lets it go without a replacement."
        return replace(go(State.HOLDING, reason), without_replacement=True)
    found = replacement_for(incident, seen)
    if found:
        reason = f"{found.name} is Ready in {incident.zone} with its EBS driver registered."
        return replace(go(State.HOLDING, reason), replacement=found.name)
    if none_will_come(incident, seen):
        return _scaled_in(incident, seen, policy)
    return decide_awaiting_node(incident, seen, policy)


def decide_awaiting_node(
    incident: Incident, seen: Observation, policy: Policy, *actions: Action
) -> Decision:
    """Wait for a node that was asked for; call a person when none comes, and look less often."""
    failure = incident.launch_failure
    pool = (
        "a pool that its Node does not name" if incident.pool is None else f"pool {incident.pool}"
    )
    what = f"{incident.node_name} waits for a replacement in {pool} of"
    if failure is not None:
        reason = (
            f"{what} {incident.zone}, and AWS launches none since {clock(failure.since)}: "
            f"{failure.cause.rstrip('.')}. The old node is kept."
        )
        lasts = max(seen.now - failure.since, policy.tick_interval_seconds)
        backoff = min(lasts, LONGEST_BACKOFF_SECONDS)
        return stay(incident, policy, reason, *actions, Page("no_capacity", reason), delay=backoff)
    reason = f"{what} {incident.zone}{what_is_coming(incident, seen)}."
    waited = seen.now - incident.entered_at
    if waited > LATE_REPLACEMENT_SECONDS:
        page = Page("late_replacement", f"{reason.rstrip('.')}, for {waited / 60:.0f} min.")
        return stay(incident, policy, reason, *actions, page)
    return stay(incident, policy, reason, *actions)


def _scaled_in(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Never drain into nothing unless the policy says so."""
    what = f"The group of instance {incident.instance_id} was scaled in and launches no replacement"
    if policy.scale_in == "release":
        reason = f"{what}; the policy lets Kafka node {incident.node_id} go without one."
        return replace(go(State.HOLDING, reason), without_replacement=True)
    group = seen.group
    if group is None or group.desired >= group.maximum:
        reason = f"{what}, and its maximum size forbids one; raise the maximum."
        return stay(incident, policy, reason, Page("scale_in", reason))
    reason = f"{what}; its desired capacity is raised to {group.desired + 1} again."
    return stay(incident, policy, reason, Page("scale_in", reason), SetDesired(group.desired + 1))


def holding(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait for the turn: nobody else is out, and no partition or voter suffers."""
    passed = _follow_begun_drain(incident, seen, policy) or overtaking_decision(
        incident, seen, policy
    )
    mine = seen.lease_holder == incident.id
    if passed and (passed.state is not State.RETAINED or not _is_free(incident, seen, policy)):
        return passed
    give_back: tuple[Action, ...] = (DropLease(),) if mine else ()
    waits = (
        others_first(incident, seen, policy)
        or _stay_if_blocked(incident, seen, policy)
        or _stay_if_leased(incident, seen, policy)
        or _stay_if_shared(incident, seen, policy)
    )
    if waits:
        return replace(waits, actions=(*waits.actions, *give_back))
    if _lacks_a_place(incident, seen, policy):
        return go(State.REPLACING, nowhere_to_go(incident), *give_back)
    allowed, reason = consent(incident, seen, policy)
    if not allowed:
        told = _waits_long(incident, seen, policy, reason)
        return stay(incident, policy, reason, *told, *give_back)
    if is_overruled(incident, seen, policy):
        page = Page("last_in_sync", f"AWS takes instance {incident.instance_id}. {reason}")
        step = _with_lease(incident, seen, policy, reason, mine=mine)
        return replace(step, actions=(*step.actions, page))
    return _with_lease(incident, seen, policy, reason, mine=mine)


def _waits_long(
    incident: Incident, seen: Observation, policy: Policy, reason: str
) -> tuple[Action, ...]:
    """Call a person for planned work that Kafka keeps waiting: no hook bounds it, and no run.

    Sooner where AWS's date does.
    """
    bounded = is_hooked(incident) or incident.kind not in {Kind.SCHEDULED_CHANGE, Kind.SICK_NODE}
    since = max(incident.entered_at, incident.kept_at or 0.0)
    waited = seen.now - since
    taken = incident.taken_at
    near = taken is not None and seen.now >= taken - LATE_REPLACEMENT_SECONDS
    hurried = out_of_time(incident, seen, policy) and (near or waited > LATE_REPLACEMENT_SECONDS)
    if bounded or not (hurried or waited > policy.hold_limit_seconds):
        return ()
    return (Page("waits_long", f"{incident.node_name} waits since {clock(since)}. {reason}"),)


def _lacks_a_place(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether a broker that is to come back has nowhere to: no other node, nor its own."""
    stays = in_place.is_wanted(incident, policy)
    return incident.expects_return and not stays and replacement_for(incident, seen) is None


def _with_lease(
    incident: Incident, seen: Observation, policy: Policy, reason: str, *, mine: bool
) -> Decision:
    first = None if mine else who_goes_first(incident, seen, policy)
    if first is not None:
        waits = f"{reason} Incident {first} has less time to wait, and goes first."
        return asking(stay(incident, policy, waits), incident, seen, policy)
    if not mine:
        # Only a reading made while the lease is held is safe: its last holder may have just left.
        taking = stay(incident, policy, f"{reason} Taking the lease.", TakeLease(), delay=0)
        return asking(taking, incident, seen, policy)
    return _let_go(incident, seen, policy, reason)


def _is_free(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether nothing kept an instance to its hold limit but a last in-sync replica."""
    others = next(unsafe_drains(seen, policy), None) is not None
    kept = seen.lease_holder not in {None, incident.id} or kept_back(incident, seen, policy)
    ready = not _lacks_a_place(incident, seen, policy)
    return not others and not kept and ready and is_overruled(incident, seen, policy)


def out_of_time(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether the instance is taken so soon that nothing may wait for a frozen zone.

    A freeze keeps planned work away; it keeps neither AWS from its date nor Karpenter from its
    deadline, and a broker that is not moved by then is lost instead.
    """
    if forced_soon(incident, seen.now, policy.planned_margin_seconds):
        return True
    if incident.scheduled_said_at is None or incident.called_off:
        return False
    hurried = EXPEDITED in (incident.event_type or "").upper()
    due = incident.taken_at
    return hurried or (due is not None and seen.now >= due - policy.planned_margin_seconds)


def _follow_begun_drain(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Follow a drain that an invocation has begun and not lived to record.

    It may have died before it sent the message, which is then sent again, under the same id, where
    everything still allows it.
    """
    if seen.own_drain_at is None:
        return None
    reason = f"The drain of {incident.node_name} was begun by an invocation that died over it."
    ready = not _lacks_a_place(incident, seen, policy)
    free = (
        next(unsafe_drains(seen, policy), None) is None
        and kept_back(incident, seen, policy) is None
    )
    sent = is_hooked(incident) or in_place.is_wanted(incident, policy)
    again = sent and ready and free and consent(incident, seen, policy)[0]
    actions: tuple[Action, ...] = (ForwardDrain(),) if again else ()
    begun = go(State.DRAINING, reason, *lease_renewal(incident), *actions)
    return replace(begun, forwarded_at=seen.own_drain_at)


def _stay_if_blocked(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    blocked = kept_back(incident, seen, policy)
    return None if blocked is None else stay(incident, policy, blocked)


def _stay_if_leased(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    if seen.lease_holder in {None, incident.id}:
        return None
    reason = f"Incident {seen.lease_holder} takes a Kafka node out first."
    return asking(stay(incident, policy, reason), incident, seen, policy)


def _stay_if_shared(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    reason = drains.other_kafka_pods(incident, seen, policy)
    return None if reason is None else stay(incident, policy, reason, Page("shared_node", reason))


def others_first(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Wait for drains of others that may still take a broker out; end those that cannot."""
    for drain, reason in unsafe_drains(seen, policy):
        waited = seen.now - incident.entered_at
        late = not drain.open and waited > LATE_REPLACEMENT_SECONDS
        page = (Page("drain_standing", reason),) if late else ()
        return asking(stay(incident, policy, reason, *page), incident, seen, policy)
    ended = tuple(EndDrain(drain.holder) for drain in seen.drains)
    if not ended:
        return None
    holders = ", ".join(drain.holder for drain in seen.drains)
    # Read once more before anything follows from it.
    return stay(incident, policy, f"The drain of {holders} has ended safely.", *ended)


def kept_back(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Say who wants the instance kept for now: a pause, a person, or a zone that is frozen."""
    if seen.paused:
        return seen.paused
    if incident.release is not None:
        return None
    if incident.held_until is not None and seen.now < incident.held_until:
        return f"Instance {incident.instance_id} is held until {clock(incident.held_until)}."
    freeze = None if out_of_time(incident, seen, policy) else seen.freeze(incident.zone)
    return None if freeze is None else f"{freeze.sentence} Nothing is drained there."


def _let_go(incident: Incident, seen: Observation, policy: Policy, reason: str) -> Decision:
    """Start the drain with the lease in hand; the hooks must stand before it."""
    if in_place.is_wanted(incident, policy):
        return in_place.leave(incident, seen, policy, reason)
    if not is_hooked(incident):
        alone = last_way(incident, seen, policy)
        if alone:
            return go(State.DRAINING, alone, TakeLease(), ForwardDrain())
        return into_hooks(incident, seen, policy, reason)
    if policy.drain_route == "direct":
        heard = f"{reason} The termination handler heard it itself."
        return go(State.DRAINING, heard, KeepErrors(), *lease_renewal(incident))
    asked_at = incident.terminate_asked_at
    fresh = asked_at is not None and seen.now - asked_at < ANNOUNCEMENT_SECONDS
    if incident.drain_event is None and fresh:
        waits = f"{reason} The group's announcement is to be forwarded, and has not come yet."
        return stay(incident, policy, waits, TakeLease())
    # The lease comes first: when it is refused after all, nothing is forwarded.
    sent = go(State.DRAINING, reason, TakeLease(), ForwardDrain())
    return party_waits(incident, seen, policy, reason) or sent


def into_hooks(incident: Incident, seen: Observation, policy: Policy, reason: str) -> Decision:
    """Terminate the instance through its group: the hooks then hold it, and the drain follows."""
    if seen.paused:
        return stay(incident, policy, seen.paused, DropLease())
    kept = kept_by_group(incident, seen, policy)
    if kept:
        return kept
    accepted = _accepted_at(incident, seen)
    if accepted is not None:
        late = seen.now - accepted > GROUP_SECONDS
        said = f"{reason} Its group has accepted the termination, and has it in service still."
        return stay(incident, policy, said, DropLease() if late else TakeLease())
    leased = () if incident.node_id is None else (TakeLease(),)
    # What an incident has written down it may not have asked the group for yet.
    raised = incident.surge_to is not None and has_room(incident, seen)
    if is_out_of_service(incident, seen):
        return left_by_group(incident, seen, policy, reason)
    if seen.lifecycle_state not in {"InService", "Terminating:Retained"}:
        # Asked already; a second time would lower the desired capacity twice.
        return stay(incident, policy, f"{reason} Its hooks are about to stand.", *leased)
    return stay(
        incident,
        policy,
        f"{reason} It is terminated through its group.",
        *leased,
        TerminateInGroup(decrement=raised and not below_minimum(incident)),
    )


def _accepted_at(incident: Incident, seen: Observation) -> float | None:
    """Return when the group accepted a termination that it does not show; None: it is asked.

    Asked again, it would lower its desired capacity again. A person's word has it asked once more.
    """
    asked = incident.terminate_asked_at
    said = incident.release is not None and asked is not None and incident.release.at > asked
    silent = seen.lifecycle_state == "InService" and incident.refusal is None
    return asked if silent and not said else None
