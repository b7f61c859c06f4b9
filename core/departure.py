"""Lets a node with a lifecycle go in order: replacement first, then drain, then the gate.

One function per state from replacing to gating; core.incidents calls them.
"""

from __future__ import annotations

from dataclasses import replace

from core.decisions import ENDING, complete, ec2_state, go, hooked, retained, stay
from core.incident_record import Decision, Incident, State
from core.naming import DRAIN_HOOK, GATE_HOOK
from core.observations import (
    Action,
    CompleteHook,
    DropLease,
    ForwardDrain,
    HookResult,
    Observation,
    Page,
    Policy,
    SetDesired,
    TakeLease,
)
from core.replacement import none_will_come, replacement_for, what_is_coming
from core.rotation import is_back, may_leave


def forward_now(policy: Policy) -> Decision:
    """Drain at once: two minutes leave no time for a replacement."""
    if policy.drain_route == "direct":
        return go(State.DRAINING, "The termination handler heard the warning itself.")
    return go(
        State.DRAINING,
        "EC2 takes the instance within two minutes: the drain starts at once.",
        ForwardDrain(),
        TakeLease(),
    )


def overdue(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Keep an instance that has been held for too long: never silently, never for ever."""
    if seen.now - incident.held_since <= policy.hold_limit_seconds:
        return None
    return retained(
        incident,
        "hold_limit",
        f"Instance {incident.instance_id} was held for {policy.hold_limit_seconds:.0f} s without "
        f"being allowed to go ({incident.reason.rstrip('.')}); it is kept until a person decides.",
    )


def _overtaken(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Stop waiting for a replacement or a turn when something else has made it pointless."""
    if incident.urgent:
        return forward_now(policy)
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.node_name not in {None, incident.node_name}:
        # Evicted by somebody else, or by a drain whose invocation died before recording it.
        reason = f"Pod {pod.name} has moved to {pod.node_name} already."
        return go(State.DRAINING, reason, TakeLease())
    return overdue(incident, seen, policy)


def replacing(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait until another node can take the pod."""
    overtaken = _overtaken(incident, seen, policy)
    if overtaken:
        return overtaken
    found = replacement_for(incident, seen)
    if found:
        reason = f"{found.name} is Ready in {incident.zone} with its EBS driver registered."
        return replace(go(State.HOLDING, reason), replacement=found.name)
    if none_will_come(incident, seen):
        return _scaled_in(incident, seen, policy)
    coming = what_is_coming(incident, seen)
    return stay(
        incident,
        policy,
        f"{incident.node_name} waits for a replacement in pool {incident.pool} of "
        f"{incident.zone}{coming}.",
    )


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
    overtaken = _overtaken(incident, seen, policy)
    if overtaken:
        return overtaken
    mine = seen.lease_holder == incident.id
    if not mine and seen.lease_holder is not None:
        return stay(incident, policy, f"Incident {seen.lease_holder} takes a Kafka node out first.")
    give_back: tuple[Action, ...] = (DropLease(),) if mine else ()
    if incident.expects_return and replacement_for(incident, seen) is None:
        reason = f"Replacement {incident.replacement} can no longer take the pod."
        return go(State.REPLACING, reason, *give_back)
    allowed, reason = _allowed(incident, seen, policy)
    if not allowed:
        return stay(incident, policy, reason, *give_back)
    if not mine:
        # Only a reading made while the lease is held is safe: its last holder may have just left.
        return stay(incident, policy, f"{reason} Taking the lease.", TakeLease(), delay=0)
    # The lease comes first: when it is refused after all, nothing is forwarded.
    return go(State.DRAINING, reason, TakeLease(), ForwardDrain())


def _allowed(incident: Incident, seen: Observation, policy: Policy) -> tuple[bool, str]:
    if seen.kafka is None or incident.node_id is None:
        return False, seen.kafka_silence or "Kafka was not asked."
    verdict = may_leave(incident.node_id, seen.kafka, isr_margin=policy.isr_margin)
    return verdict.allowed, verdict.reason


def draining(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait until the Kafka pod has left the node."""
    if incident.node_id is None:
        return _idle_node_drains(incident)
    pod = seen.pod_named(incident.pod_name)
    if pod is None or pod.node_name != incident.node_name:
        reason = f"Pod {incident.pod_name} has left {incident.node_name}."
        return go(State.GATING, reason, *_renewed(incident, seen))
    if ec2_state(seen) in ENDING:
        reason = f"Instance {incident.instance_id} ended before {pod.name} had left it."
        return go(State.GATING, reason, Page("ended_early", reason), *_renewed(incident, seen))
    if seen.now - incident.entered_at > policy.hold_limit_seconds:
        return retained(
            incident,
            "drain_limit",
            f"Pod {pod.name} is still on {incident.node_name} {policy.hold_limit_seconds:.0f} s "
            f"after the drain began; the node is kept.",
        )
    reason = f"The termination handler drains {incident.node_name}; {pod.name} is still there."
    return stay(incident, policy, reason, *_renewed(incident, seen))


def _idle_node_drains(incident: Incident) -> Decision:
    """Open the gate of a node without Kafka: its drain hook alone holds it."""
    opening: tuple[Action, ...] = ()
    if incident.drain_event is None:
        # Nobody was sent to drain it, so nobody completes the drain hook. Only daemons run there.
        opening = complete(incident, HookResult.CONTINUE)
    elif hooked(incident):
        opening = (CompleteHook(GATE_HOOK, HookResult.CONTINUE),)
    return go(State.GATING, f"The {GATE_HOOK} is open: only hook {DRAIN_HOOK} holds it.", *opening)


def _renewed(incident: Incident, seen: Observation) -> tuple[Action, ...]:
    """Keep the lease while the broker is out; another's lease is not contested."""
    return (TakeLease(),) if seen.lease_holder in {None, incident.id} else ()


def gating(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Keep the old instance until its volumes are free and its broker is back for good."""
    if incident.node_id is None:
        return _idle_node_ends(incident, seen, policy)
    missing = _missing(incident, seen, policy)
    if missing is None:
        return _released(incident, seen)
    waited = seen.now - incident.entered_at
    if waited <= policy.post_condition_wait_seconds:
        return stay(incident, policy, missing, *_renewed(incident, seen))
    since = f"{missing.rstrip('.')}, {waited:.0f} s after the pod left"
    if ec2_state(seen) in ENDING:
        reason = f"{since}, and instance {incident.instance_id} is gone."
        return go(State.LOST, reason, Page("not_back", reason), DropLease())
    return retained(incident, "not_back", f"{since}; the old instance is kept.")


def _released(incident: Incident, seen: Observation) -> Decision:
    pod = seen.pod_named(incident.pod_name)
    where = f"is back on {pod.node_name}" if pod and incident.expects_return else "has left"
    return go(
        State.RELEASED,
        f"Kafka node {incident.node_id} {where}: instance {incident.instance_id} may go.",
        *complete(incident, HookResult.CONTINUE),
        DropLease(),
    )


def _missing(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return what the gate still waits for, or None when the instance may go."""
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.node_name == incident.node_name:
        return f"Pod {pod.name} is still on {incident.node_name}."
    attached = seen.attachments.get(incident.node_name or "", ())
    if attached:
        return f"Volume {attached[0]} is still attached to {incident.node_name}."
    if not incident.expects_return:
        return None
    if pod is None or not pod.ready:
        return f"Pod {incident.pod_name} is not Ready on another node yet."
    if seen.kafka is None or incident.node_id is None:
        return seen.kafka_silence or "Kafka was not asked."
    verdict = is_back(
        incident.node_id,
        seen.kafka,
        back_since=incident.broker_back_at,
        now=seen.now,
        hold_seconds=policy.post_condition_hold_seconds,
    )
    return None if verdict.allowed else verdict.reason


def _idle_node_ends(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Follow an instance without Kafka until its drain hook has let it go."""
    if ec2_state(seen) in ENDING or seen.lifecycle_state == "Terminating:Proceed":
        reason = f"Instance {incident.instance_id} is drained and ends."
        return go(State.RELEASED, reason, DropLease())
    if seen.now - incident.entered_at > policy.hold_limit_seconds:
        reason = f"Instance {incident.instance_id} was not drained in time; it is kept."
        return retained(incident, "drain_limit", reason)
    return stay(incident, policy, f"The termination handler drains {incident.instance_id}.")
