"""Takes a terminating instance from its replacement to its end, a state after the other.

    replacing  another node can take the pod
    holding    its turn: nobody else is out, and no partition or voter suffers
    draining   the pod leaves, evicted by the termination handler, by who asked, or by us
    gating     the volumes are free and the broker is back for good; the hooks are completed

Where no termination handler drains (route `evict`) everything else on the node goes first:
Strimzi's operator, which makes the broker's pod anew, may be among it. The broker's pod goes last,
on a reading that allows it at that moment and with the lease. A refused eviction is asked for again
at the next look, and nothing is ever deleted instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.events import Kind
from core.ground.naming import DRAIN_HOOK, GATE_HOOK
from core.ground.window import clock
from core.ground.words import listing
from core.incidents import evicted, in_place
from core.incidents.actions import (
    LATE_REPLACEMENT_SECONDS,
    Action,
    CompleteHook,
    Cordon,
    Decision,
    DropLease,
    Evict,
    ForwardDrain,
    HookResult,
    KeepErrors,
    Page,
    SetDesired,
    TakeLease,
    Uncordon,
    asked_for,
    complete,
    go,
    lease_renewal,
    retain,
    stay,
)
from core.incidents.consenting import (
    MOST_NAMED,
    asking,
    consent,
    is_overruled,
    kept_back,
    other_kafka_pods,
    others_first,
    out_of_time,
    overtaking_decision,
    party_waits,
    reopening_actions,
    unsafe_drains,
    who_goes_first,
)
from core.incidents.learn import WAITING, doubt, pod_there
from core.incidents.observation import ENDING, STOPPED, Observation, PodOnNode, PodView, Policy
from core.incidents.record import STAYS, Forwarding, Incident, State
from core.incidents.replacement import (
    GROUP_PATIENCE_SECONDS,
    decide_awaiting_node,
    is_returning,
    none_will_come,
    nowhere_to_go,
    replacement_for,
    still_missing,
    terminate_through_group,
)

# Auto Scaling announces a termination within seconds; the announcement names NTH's hook by token.
ANNOUNCEMENT_SECONDS = 30.0


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


def _scaled_in(incident: Incident, seen: Observation, policy: Policy) -> Decision:
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
    passed = _follow_begun_drain(incident, seen, policy)
    passed = passed or overtaking_decision(incident, seen, policy)
    if passed and (passed.state is not State.RETAINED or not _is_free(incident, seen, policy)):
        return passed
    mine = seen.lease_holder == incident.id
    give_back: tuple[Action, ...] = (DropLease(),) if mine else ()
    waits = _waits_for_others(incident, seen, policy)
    if waits:
        return replace(waits, actions=(*waits.actions, *give_back))
    if _lacks_a_place(incident, seen, policy):
        return go(State.REPLACING, nowhere_to_go(incident), *give_back)
    allowed, reason = consent(incident, seen, policy)
    if not allowed:
        told = _waits_long(incident, seen, policy, reason)
        return stay(incident, policy, reason, *told, *give_back)
    step = _take_turn(incident, seen, policy, reason)
    if not is_overruled(incident, seen, policy):
        return step
    page = Page("last_in_sync", f"AWS takes instance {incident.instance_id}. {reason}")
    return replace(step, actions=(*step.actions, page))


def _waits_long(
    incident: Incident, seen: Observation, policy: Policy, reason: str
) -> tuple[Action, ...]:
    """Call a person for planned work that Kafka keeps waiting: no hook bounds it, and no run.

    Sooner where AWS's date does.
    """
    bounded = incident.kind not in {Kind.SCHEDULED_CHANGE, Kind.SICK_NODE}
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


def _take_turn(incident: Incident, seen: Observation, policy: Policy, reason: str) -> Decision:
    if seen.lease_holder == incident.id:
        return _let_go(incident, seen, policy, reason)
    first = who_goes_first(incident, seen, policy)
    if first is not None:
        said = f"{reason} Incident {first} has less time to wait, and goes first."
        step = stay(incident, policy, said)
    else:
        # Only a reading made while the lease is held is safe: its last holder may have just left.
        step = stay(incident, policy, f"{reason} Taking the lease.", TakeLease(), delay=0)
    return asking(step, incident, seen, policy)


def _is_free(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether nothing kept an instance to its hold limit but a last in-sync replica."""
    leased = seen.lease_holder not in {None, incident.id}
    clear = not leased and _is_clear(incident, seen, policy)
    return clear and is_overruled(incident, seen, policy)


def _is_clear(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether no other's drain, no hold and no want of a place speaks against a drain."""
    others = next(unsafe_drains(seen, policy), None)
    kept = kept_back(incident, seen, policy)
    return others is None and kept is None and not _lacks_a_place(incident, seen, policy)


def _follow_begun_drain(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Follow a drain that an invocation has begun and not lived to record.

    It may have died before it sent the message, which is then sent again, under the same id, where
    everything still allows it. A two-minute warning is forwarded as if nothing had been begun.
    """
    if seen.own_drain_at is None or incident.urgent:
        return None
    reason = f"The drain of {incident.node_name} was begun by an invocation that died over it."
    sent = incident.is_hooked or in_place.is_wanted(incident, policy)
    clear = sent and _is_clear(incident, seen, policy)
    again = (ForwardDrain(),) if clear and consent(incident, seen, policy)[0] else ()
    begun = go(State.DRAINING, reason, *lease_renewal(incident), *again)
    return replace(begun, forwarded_at=seen.own_drain_at)


def _waits_for_others(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    waits = others_first(incident, seen, policy)
    if waits is not None:
        return waits
    blocked = kept_back(incident, seen, policy)
    if blocked is not None:
        return stay(incident, policy, blocked)
    if seen.lease_holder not in {None, incident.id}:
        reason = f"Incident {seen.lease_holder} takes a Kafka node out first."
        return asking(stay(incident, policy, reason), incident, seen, policy)
    shared = other_kafka_pods(incident, seen, policy)
    return None if shared is None else stay(incident, policy, shared, Page("shared_node", shared))


def _let_go(incident: Incident, seen: Observation, policy: Policy, reason: str) -> Decision:
    """Start the drain with the lease in hand; the hooks must stand before it."""
    if in_place.is_wanted(incident, policy):
        return in_place.leave(incident, seen, policy, reason)
    if not incident.is_hooked:
        alone = last_way(incident, seen, policy)
        if alone:
            return go(State.DRAINING, alone, TakeLease(), ForwardDrain())
        return terminate_through_group(incident, seen, policy, reason)
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


def last_way(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return why a node is drained without its group: AWS takes it soon, and the group refuses."""
    refusal, taken_at = incident.refusal, incident.taken_at
    if refusal is None or taken_at is None or seen.now - refusal.since <= GROUP_PATIENCE_SECONDS:
        return None
    left = taken_at - seen.now
    if left > policy.planned_margin_seconds / 2:
        return None
    return (
        f"AWS takes instance {incident.instance_id} in {left / 60:.0f} min and its group does not "
        f"terminate it: it is drained where it stands."
    )


MOST_FORWARDS = 3
# A group shows within seconds that a hook was completed.
SOON_SECONDS = 2.0
# After that long a hook that was completed and still waits is a person's matter.
REFUSED_SECONDS = 300.0


def draining(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait until the Kafka pod has left the node."""
    if incident.node_id is None:
        return _idle_node_drains(incident, seen, policy)
    pod = seen.pod_named(incident.pod_name)
    if pod is None or not pod_there(incident, pod, seen):
        reason = f"Pod {incident.pod_name} has left {incident.node_name}."
        return go(State.GATING, reason, *lease_renewal(incident))
    if seen.ec2_state in ENDING | STOPPED:
        reason = f"Instance {incident.instance_id} ended before {pod.name} had left it."
        return go(State.GATING, reason, Page("ended_early", reason), *lease_renewal(incident))
    if incident.let_go_by is not None:
        return _let_fall(incident, incident.let_go_by)
    if seen.now - incident.entered_at > policy.hold_limit_seconds:
        return retain(
            incident,
            "drain_limit",
            f"Pod {pod.name} is still on {incident.node_name} {policy.hold_limit_seconds:.0f} s "
            f"after the drain began; the node is kept.",
        )
    return _still_there(incident, seen, policy, pod)


def _still_there(incident: Incident, seen: Observation, policy: Policy, pod: PodView) -> Decision:
    if asked_for(incident, policy):
        return evicted.draining(incident, seen, policy)
    if is_our_drain(incident, policy):
        return _evict_pods(incident, seen, policy, pod)
    return _decide_stuck_drain(incident, seen, policy, pod) or stay(
        incident,
        policy,
        f"The termination handler drains {incident.node_name}; {pod.name} is still there.",
        *lease_renewal(incident),
    )


def _decide_stuck_drain(
    incident: Incident, seen: Observation, policy: Policy, pod: PodView
) -> Decision | None:
    """Say what keeps a drain from ending, once the termination handler has had its time."""
    sent = incident.forwarded
    waited = seen.now - (incident.entered_at if sent is None else sent.last_at)
    if pod.stopping:
        return None  # It is on its way; its own grace is longer than any patience here.
    budget = seen.refusing_budget(pod.name)
    if budget is not None:
        reason = (
            f"PodDisruptionBudget {budget.name} allows no disruption, so {pod.name} is not evicted "
            f"from {incident.node_name}."
        )
        late = waited > policy.forward_again_seconds / 2 or (sent is not None and sent.times > 1)
        page = (Page(f"budget:{budget.name}", reason),) if late else ()
        if waited <= policy.forward_again_seconds:
            return stay(incident, policy, reason, *page, *lease_renewal(incident))
    if waited <= policy.forward_again_seconds or sent is None:
        return None
    return _again(incident, seen, policy, pod, sent)


def _again(
    incident: Incident, seen: Observation, policy: Policy, pod: PodView, sent: Forwarding
) -> Decision:
    """Send the drain once more, unless it would come too late or Kafka no longer allows it."""
    draining_for, waited = seen.now - incident.entered_at, seen.now - sent.last_at
    in_vain = (
        f"The termination handler was sent the drain of {incident.node_name} "
        f"{sent.times} times, and {pod.name} is still there."
    )
    stuck = draining_for > MOST_FORWARDS * policy.forward_again_seconds
    page = (Page("drain_stuck", in_vain),) if stuck else ()
    allowed, refusal = consent(incident, seen, policy)
    waits: str | None = None
    if sent.times >= MOST_FORWARDS and waited <= policy.drain_life_seconds:
        waits = in_vain
    elif draining_for + policy.drain_life_seconds > policy.hold_limit_seconds:
        # What is sent now could outlive the decision to keep the node after all.
        waits = in_vain
    elif not (allowed or incident.urgent):
        waits = f"{pod.name} is still on {incident.node_name}. {refusal}"
    if waits is not None:
        return stay(incident, policy, waits, *page, *lease_renewal(incident))
    # Under the same id: a handler that is at it drops the copy, one that has failed or lost its
    # memory in a restart begins again.
    reason = (
        f"{pod.name} is still on {incident.node_name} {waited:.0f} s after the drain was sent; it "
        f"is sent again."
    )
    opened = reopening_actions(incident, seen)
    return stay(incident, policy, reason, *page, *lease_renewal(incident), *opened, ForwardDrain())


def _let_fall(incident: Incident, by: str) -> Decision:
    """Let an instance go whatever still runs there: a person has decided it."""
    return go(
        State.RELEASED,
        f"{by} lets instance {incident.instance_id} go as it is.",
        *complete(incident, HookResult.CONTINUE),
        DropLease(),
    )


def _let_go_empty(incident: Incident, seen: Observation, policy: Policy, by: str) -> Decision:
    """Let an instance go that a pod has left: through its group, where no hook of ours holds it."""
    is_kept = seen.lifecycle_state == "InService" and not incident.is_hooked
    if is_kept and not asked_for(incident, policy):
        # The group would have it beside its replacement for good.
        reason = f"{by} lets instance {incident.instance_id} go."
        return terminate_through_group(incident, seen, policy, reason)
    return _let_fall(incident, by)


def _idle_node_drains(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Open the gate of a node without Kafka, looked at once more: its drain hook alone holds it."""
    doubtful = doubt(incident, seen, patient=False)
    if doubtful and seen.now - incident.entered_at <= policy.hold_limit_seconds:
        return stay(incident, policy, f"{doubtful}: the gate stays closed.")
    if doubtful:
        return retain(incident, "drain_limit", f"{doubtful}; the node is kept.")
    if is_our_drain(incident, policy):
        return _empty_idle_node(incident, seen, policy)
    nobody = _nobody_drains(incident, policy)
    opening = complete(incident, HookResult.CONTINUE) if nobody else _gate_open(incident)
    return go(State.GATING, f"The {GATE_HOOK} is open: only hook {DRAIN_HOOK} holds it.", *opening)


def gating(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Keep the old instance until its volumes are free and its broker is back for good."""
    if incident.node_id is None:
        return _idle_node_ends(incident, seen, policy)
    if incident.let_go_by is not None:
        return _let_go_empty(incident, seen, policy, incident.let_go_by)
    missing = still_missing(incident, seen, policy) or _still_to_leave(incident, seen, policy)
    if missing is None:
        return _release(incident, seen, policy)
    waited = seen.now - incident.entered_at
    patient = waited <= policy.post_condition_wait_seconds
    if patient or is_returning(incident, seen, policy):
        return stay(incident, policy, missing, *lease_renewal(incident))
    since = f"{missing.rstrip('.')}, {waited:.0f} s after the pod left"
    if seen.ec2_state in ENDING:
        reason = f"{since}, and instance {incident.instance_id} is gone."
        return go(State.LOST, reason, Page("not_back", reason), DropLease())
    return retain(incident, "not_back", f"{since}; the old instance is kept.")


def _release(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Let the instance go, and believe that it went once its group shows it."""
    if asked_for(incident, policy) and not incident.is_hooked:
        return evicted.over(incident, seen)
    waits = _not_gone(incident, seen, policy)
    if waits:
        return waits
    if not incident.is_hooked and seen.lifecycle_state == "InService":
        # Drained by a handler that hears Health itself: an empty node of the group is left.
        refused = incident.refusal
        if refused is not None and seen.now - refused.since > GROUP_PATIENCE_SECONDS:
            reason = (
                f"Kafka node {incident.node_id} has left instance {incident.instance_id}, which "
                f"its group does not terminate: it is empty until AWS takes it."
            )
            called = Page("group_refuses", reason)
            return go(State.RETAINED, reason, called, DropLease(ended=True))
        reason = f"Kafka node {incident.node_id} is back, and its old node is empty."
        return terminate_through_group(incident, seen, policy, reason)
    pod = seen.pod_named(incident.pod_name)
    where = f"is back on {pod.node_name}" if pod and incident.expects_return else "has left"
    return go(
        State.RELEASED,
        f"Kafka node {incident.node_id} {where}: instance {incident.instance_id} may go.",
        DropLease(ended=True),
    )


def _not_gone(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Complete the hooks, again and again, for as long as the group shows the instance in them.

    A completion that was answered "no" is no completion: its token may be an earlier action's.
    """
    if not incident.is_hooked or seen.lifecycle_state not in {WAITING, "InService"}:
        return None
    asked_at = incident.completed_at
    stands = f"Instance {incident.instance_id} may go, and its group has it {seen.lifecycle_state}"
    if policy.drain_route == "asked":
        return stay(incident, policy, f"{stands}: the owner of its hook completes it.")
    if asked_at is None:
        actions = complete(incident, HookResult.CONTINUE)
        return stay(incident, policy, f"{stands}.", *actions, delay=SOON_SECONDS)
    if seen.lifecycle_state == "InService" and seen.now - incident.entered_at > REFUSED_SECONDS:
        reason = f"{stands}: it is drained, and is not leaving after all."
        return go(State.RIDDEN_THROUGH, reason, Page("not_leaving", reason), DropLease(ended=True))
    reason = f"{stands} still: its hooks are completed again."
    late = seen.now - asked_at > REFUSED_SECONDS
    page = (Page("hook_refuses", reason),) if late else ()
    return stay(incident, policy, reason, *page, *complete(incident, HookResult.CONTINUE))


def _idle_node_ends(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Follow an instance without Kafka until its drain hook has let it go."""
    if seen.ec2_state in ENDING or seen.lifecycle_state == "Terminating:Proceed":
        reason = f"Instance {incident.instance_id} is drained and ends."
        return go(State.RELEASED, reason, DropLease(ended=True))
    if seen.now - incident.entered_at > policy.hold_limit_seconds:
        reason = f"Instance {incident.instance_id} was not drained in time; it is kept."
        return retain(incident, "drain_limit", reason)
    again: tuple[Action, ...] = ()
    if seen.lifecycle_state == WAITING:
        nobody_else = _nobody_drains(incident, policy) or is_our_drain(incident, policy)
        again = complete(incident, HookResult.CONTINUE) if nobody_else else _gate_open(incident)
    reason = (
        f"Instance {incident.instance_id} is empty, and its hooks are completed again."
        if is_our_drain(incident, policy)
        else f"The termination handler drains {incident.instance_id}."
    )
    return stay(incident, policy, reason, *again)


def _nobody_drains(incident: Incident, policy: Policy) -> bool:
    """Say that nobody was sent to an empty node, so nobody completes its drain hook but us.

    Only daemons run there. The sweep may have found it before AWS's word came, which then is not
    forwarded any more; where others hear AWS themselves, that word says that they are at it.
    """
    heard = policy.drain_route != "held" and incident.drain_event is not None
    return incident.forwarded is None and not heard


def _gate_open(incident: Incident) -> tuple[Action, ...]:
    return (CompleteHook(GATE_HOOK, HookResult.CONTINUE),) if incident.is_hooked else ()


# How long Kafka's pod waits for the others, of which one may be refused for hours.
OTHERS_SECONDS = 120.0
# A pod that is still there then is a person's matter.
LATE_EVICTION_SECONDS = 600.0


def is_our_drain(incident: Incident, policy: Policy) -> bool:
    """Say whether we drain the node ourselves: nobody else was to, and nobody has asked."""
    return policy.drain_route == "evict" and not incident.is_evicted


def _evict_pods(incident: Incident, seen: Observation, policy: Policy, pod: PodView) -> Decision:
    waits = _kafka_waits(incident, seen, policy, pod)
    reason = waits or _eviction_text(incident, seen, pod)
    late = seen.now - incident.entered_at > LATE_EVICTION_SECONDS
    page = (Page("drain_stuck", reason),) if late else ()
    last = () if waits else map(_eviction, _leaving_kafka_pods(incident, seen))
    return stay(
        incident,
        policy,
        reason,
        *page,
        # Asked for, not stated: nothing of Kafka's is out before its pod is evicted.
        TakeLease(),
        *_emptying_actions(incident, seen),
        *last,
    )


def _kafka_waits(incident: Incident, seen: Observation, policy: Policy, pod: PodView) -> str | None:
    """Return what keeps Kafka's own pod for now; None: it is to go."""
    if pod.stopping:
        return f"{pod.name} stops on {incident.node_name}."
    still = f"{pod.name} is still on {incident.node_name}."
    if not _leaving_kafka_pods(incident, seen):
        return f"{still} The list of the node's pods does not show it: it is looked at once more."
    if incident.urgent:
        return None
    hindrance = (
        seen.paused
        or _too_early_or_late(incident, seen, policy)
        or other_kafka_pods(incident, seen, policy)
    )
    if hindrance:
        return f"{still} {hindrance}"
    allowed, refusal = consent(incident, seen, policy)
    return None if allowed else f"{still} {refusal}"


def _too_early_or_late(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    drained_for = seen.now - incident.entered_at
    if drained_for + policy.drain_life_seconds > policy.hold_limit_seconds:
        # What is evicted now could outlive the decision to keep the node after all.
        return "It is too late to begin: the node is about to be kept."
    others = _leaving_pods(seen)
    if others and drained_for <= OTHERS_SECONDS:
        return f"First to leave: {_join_titles(others)}."
    return None


def _eviction_text(incident: Incident, seen: Observation, pod: PodView) -> str:
    budget = seen.refusing_budget(pod.name)
    if budget is None:
        return f"{pod.name} is evicted from {incident.node_name}."
    return (
        f"PodDisruptionBudget {budget.name} allows no disruption, so {pod.name} is not evicted "
        f"from {incident.node_name}; Stillwater tries again."
    )


def _still_to_leave(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return who is still to leave beside Kafka; None: nobody, or the machine has ended."""
    if (
        not is_our_drain(incident, policy)
        or seen.ec2_state in ENDING | STOPPED
        or incident.let_go_by
    ):
        return None
    others = _leaving_pods(seen)
    if not others:
        return None
    return f"Still to leave {incident.node_name}, and asked for again: {_join_titles(others)}."


def _empty_idle_node(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    where = incident.node_name or incident.instance_id
    left = _still_to_leave(incident, seen, policy)
    cordon = _cordon_actions(incident, seen)
    if left is None and not cordon:
        reason = f"Nothing is left to drain on {where}."
        return go(State.GATING, reason, *complete(incident, HookResult.CONTINUE))
    # What came there since this reading is seen by the next.
    left = left or f"{where} takes no new pods from now on: it is looked at once more."
    drained_for = seen.now - incident.entered_at
    if drained_for > policy.hold_limit_seconds:
        return retain(incident, "drain_limit", f"{left} The node is kept.")
    page = (Page("drain_stuck", left),) if drained_for > LATE_EVICTION_SECONDS else ()
    return stay(incident, policy, left, *page, *_emptying_actions(incident, seen))


def remaining_evictions(
    incident: Incident, seen: Observation, policy: Policy
) -> tuple[Action, ...]:
    """Ask for what is left beside Kafka while the gate waits for the broker elsewhere."""
    left = _still_to_leave(incident, seen, policy)
    if left is None:
        return ()
    late = seen.now - incident.entered_at > LATE_EVICTION_SECONDS
    return (*((Page("drain_stuck", left),) if late else ()), *_emptying_actions(incident, seen))


def uncordon_actions(incident: Incident, seen: Observation, state: State) -> tuple[Action, ...]:
    """Let a node take pods again that stays after all."""
    node = seen.node_named(incident.node_name)
    if state not in STAYS or node is None or node.schedulable:
        return ()
    return (Uncordon(node.name),)


def _emptying_actions(incident: Incident, seen: Observation) -> tuple[Action, ...]:
    """Keep new pods off the node, evict what is not Kafka's, and name what nobody makes anew."""
    bare = [each for each in seen.on_node if not (each.stays or each.owned or each.kafka)]
    reason = (
        f"Not evicted from {incident.node_name}, since no controller would make it again: "
        f"{_join_titles(bare)}. It ends with its machine; move it by hand if it matters."
    )
    page = (Page("pods_without_owner", reason),) if bare else ()
    going = (each for each in _leaving_pods(seen) if not each.stopping)
    return (*page, *_cordon_actions(incident, seen), *map(_eviction, going))


def _cordon_actions(incident: Incident, seen: Observation) -> tuple[Action, ...]:
    node = seen.node_named(incident.node_name)
    return (Cordon(node.name),) if node is not None and node.schedulable else ()


def _leaving_pods(seen: Observation) -> list[PodOnNode]:
    return [each for each in seen.on_node if each.owned and not (each.stays or each.kafka)]


def _leaving_kafka_pods(incident: Incident, seen: Observation) -> list[PodOnNode]:
    """Return Kafka's pods that go: the incident's own, and all where nobody waits for consent."""
    everyone = incident.urgent or incident.release is not None
    return [
        each
        for each in seen.on_node
        if each.kafka and not each.stopping and (everyone or each.name == incident.pod_name)
    ]


def _eviction(pod: PodOnNode) -> Evict:
    return Evict(pod.namespace, pod.name, pod.uid, kafka=pod.kafka)


def _join_titles(pods: Sequence[PodOnNode]) -> str:
    return listing(sorted(pod.title for pod in pods), MOST_NAMED)
