"""Follows a drain to its end: the pod leaves, its broker comes back elsewhere, the instance goes.

One function per state, draining and gating; core.incidents calls them. What leads to a drain is
core.incidents.terminating, what the gate waits for core.incidents.replacement.
"""

from __future__ import annotations

from core.incidents import drains, evicted
from core.incidents.actions import Action, CompleteHook, DropLease, ForwardDrain, HookResult, Page
from core.incidents.consenting import consent, reopening_actions
from core.incidents.decisions import (
    ENDING,
    STOPPED,
    asked_for,
    complete,
    ec2_state,
    go,
    is_hooked,
    lease_renewal,
    retain,
    stay,
)
from core.incidents.learn import WAITING, doubt, pod_there
from core.incidents.observation import Observation, PodView, Policy
from core.incidents.record import Decision, Forwarding, Incident, State
from core.incidents.replacement import is_returning, still_missing
from core.incidents.terminating import PATIENCE_SECONDS, into_hooks
from core.naming import DRAIN_HOOK, GATE_HOOK

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
    if ec2_state(seen) in ENDING | STOPPED:
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
    if drains.ours(incident, policy):
        return drains.draining(incident, seen, policy, pod)
    return _decide_stuck_drain(incident, seen, policy) or stay(
        incident,
        policy,
        f"The termination handler drains {incident.node_name}; {pod.name} is still there.",
        *lease_renewal(incident),
    )


def _decide_stuck_drain(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Say what keeps a drain from ending, once the termination handler has had its time."""
    pod = seen.pod_named(incident.pod_name)
    sent = incident.forwarded
    waited = seen.now - (incident.entered_at if sent is None else sent.last_at)
    if pod is None or pod.stopping:
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


def _idle_node_drains(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Open the gate of a node without Kafka, looked at once more: its drain hook alone holds it."""
    doubtful = doubt(incident, seen, patient=False)
    if doubtful and seen.now - incident.entered_at <= policy.hold_limit_seconds:
        return stay(incident, policy, f"{doubtful}: the gate stays closed.")
    if doubtful:
        return retain(incident, "drain_limit", f"{doubtful}; the node is kept.")
    if drains.ours(incident, policy):
        return drains.idle(incident, seen, policy)
    nobody = _nobody_drains(incident, policy)
    opening = complete(incident, HookResult.CONTINUE) if nobody else _gate_open(incident)
    return go(State.GATING, f"The {GATE_HOOK} is open: only hook {DRAIN_HOOK} holds it.", *opening)


def gating(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Keep the old instance until its volumes are free and its broker is back for good."""
    if incident.node_id is None:
        return _idle_node_ends(incident, seen, policy)
    if incident.let_go_by is not None:
        return _let_fall(incident, incident.let_go_by)
    missing = still_missing(incident, seen, policy) or drains.left_behind(incident, seen, policy)
    if missing is None:
        return _release(incident, seen, policy)
    waited = seen.now - incident.entered_at
    patient = waited <= policy.post_condition_wait_seconds
    if patient or is_returning(incident, seen, policy):
        return stay(incident, policy, missing, *lease_renewal(incident))
    since = f"{missing.rstrip('.')}, {waited:.0f} s after the pod left"
    if ec2_state(seen) in ENDING:
        reason = f"{since}, and instance {incident.instance_id} is gone."
        return go(State.LOST, reason, Page("not_back", reason), DropLease())
    return retain(incident, "not_back", f"{since}; the old instance is kept.")


def _release(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Let the instance go, and believe that it went once its group shows it."""
    if asked_for(incident, policy) and not is_hooked(incident):
        return evicted.over(incident, seen)
    waits = _not_gone(incident, seen, policy)
    if waits:
        return waits
    if not is_hooked(incident) and seen.lifecycle_state == "InService":
        # Drained by a handler that hears Health itself: an empty node of the group is left.
        refused = incident.refusal
        if refused is not None and seen.now - refused.since > PATIENCE_SECONDS:
            reason = (
                f"Kafka node {incident.node_id} has left instance {incident.instance_id}, which "
                f"its group does not terminate: it is empty until AWS takes it."
            )
            called = Page("group_refuses", reason)
            return go(State.RETAINED, reason, called, DropLease(ended=True))
        reason = f"Kafka node {incident.node_id} is back, and its old node is empty."
        return into_hooks(incident, seen, policy, reason)
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
    if not is_hooked(incident) or seen.lifecycle_state not in {WAITING, "InService"}:
        return None
    asked_at = incident.completed_at
    stands = f"Instance {incident.instance_id} may go, and its group has it {seen.lifecycle_state}"
    if policy.drain_route == "asked":
        return stay(incident, policy, f"{stands}: whoever made its hook completes it.")
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
    if ec2_state(seen) in ENDING or seen.lifecycle_state == "Terminating:Proceed":
        reason = f"Instance {incident.instance_id} is drained and ends."
        return go(State.RELEASED, reason, DropLease(ended=True))
    if seen.now - incident.entered_at > policy.hold_limit_seconds:
        reason = f"Instance {incident.instance_id} was not drained in time; it is kept."
        return retain(incident, "drain_limit", reason)
    again: tuple[Action, ...] = ()
    if seen.lifecycle_state == WAITING:
        nobody_else = _nobody_drains(incident, policy) or drains.ours(incident, policy)
        again = complete(incident, HookResult.CONTINUE) if nobody_else else _gate_open(incident)
    reason = (
        f"Instance {incident.instance_id} is empty, and its hooks are completed again."
        if drains.ours(incident, policy)
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
    return (CompleteHook(GATE_HOOK, HookResult.CONTINUE),) if is_hooked(incident) else ()
