"""Decides what happens to an instance that leaves: one pure function, `next_action`.

    opened -> replacing -> holding -> draining -> gating -> released
    side exits: ridden_through, cancelled, retained, lost

handlers.tick calls it once per tick with what is remembered (core.incident_record) and what is true
now (core.observations), carries out the actions in order, and records the decision with `settle`.
A decision that is repeated after a crash must be harmless: every action is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from core.decisions import ENDING, STOPPED, ec2_state, go, hooked, retained, stay
from core.departure import draining, forward_now, gating, holding, overdue, replacing
from core.events import Interruption, Kind
from core.incident_record import (
    ALLOWED,
    TERMINAL,
    Decision,
    Incident,
    State,
    Transition,
    learn,
    merge,
    open_incident,
    reopens,
    settle,
    unattended,
)
from core.naming import DRAIN_HOOK, GATE_HOOK
from core.observations import DropLease, ForwardDrain, Heartbeat, Observation, Page, Policy

__all__ = [
    "ALLOWED",
    "TERMINAL",
    "Decision",
    "Incident",
    "State",
    "Transition",
    "learn",
    "merge",
    "next_action",
    "open_incident",
    "reopens",
    "settle",
    "unanswered",
    "unattended",
]

# SQS delays a message by 15 minutes at most.
LONGEST_DELAY_SECONDS = 900.0
# Auto Scaling may announce a termination before its own describe call shows it.
IN_SERVICE_GRACE_SECONDS = 60.0
# Scheduled changes that give the instance back.
_RIDDEN_THROUGH = ("REBOOT", "NETWORK_MAINTENANCE", "POWER_MAINTENANCE")


def unanswered(interruption: Interruption) -> str | None:
    """Say why an announcement opens no incident; None: it opens one."""
    if interruption.kind is Kind.ASG_LAUNCH:
        return f"Instance {interruption.instance_id} is being launched, which takes nothing away."
    if interruption.closed:
        return f"What was scheduled for instance {interruption.instance_id} is over or called off."
    return None


def next_action(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Decide the next step of one incident, after `learn` has added what `seen` shows."""
    if not incident.open:
        return Decision(state=incident.state, reason=incident.reason)
    if seen.blind:
        decision = _blind(incident, seen, policy)
    else:
        ended = _ended_elsewhere(incident, seen)
        decision = ended or _STEPS[incident.state](incident, seen, policy)
    actions = tuple(
        a for a in decision.actions if not (isinstance(a, Page) and a.key in incident.pages)
    )
    if _heartbeat_is_due(decision, incident, seen, policy):
        actions = (Heartbeat(DRAIN_HOOK), Heartbeat(GATE_HOOK), *actions)
    return replace(decision, actions=actions)


def _heartbeat_is_due(
    decision: Decision, incident: Incident, seen: Observation, policy: Policy
) -> bool:
    """Keep both hooks waiting once half their timeout has passed since the last heartbeat."""
    if decision.delay_seconds is None or not hooked(incident):
        return False
    if not seen.blind and ec2_state(seen) in ENDING:
        return False
    last = incident.heartbeat_at or incident.announced_at
    return seen.now - last >= policy.heartbeat_timeout_seconds / 2


def _blind(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Keep the instance while nothing can be read; a drain that has begun goes on by itself."""
    drained = incident.state in {State.DRAINING, State.GATING}
    if hooked(incident) and not drained:
        return overdue(incident, seen, policy) or stay(incident, policy, seen.blind)
    if drained and seen.now - incident.entered_at > policy.hold_limit_seconds:
        # The hooks run out of heartbeats unseen: somebody must look before they do.
        return stay(incident, policy, seen.blind, Page("blind", seen.blind))
    return stay(incident, policy, seen.blind)


def _ended_elsewhere(incident: Incident, seen: Observation) -> Decision | None:
    """Recognise that somebody else has ended what this incident was doing."""
    if seen.lifecycle_state == "Terminating:Retained":
        return retained(
            incident,
            "retained",
            f"The group retains instance {incident.instance_id}: a hook was abandoned or timed "
            f"out. It runs on until a person releases it.",
        )
    if incident.state in {State.DRAINING, State.GATING}:
        return None
    if ec2_state(seen) in STOPPED:
        reason = (
            f"EC2 confirms that instance {incident.instance_id} is {ec2_state(seen) or 'gone'}, "
            f"and nothing had drained it."
        )
        return go(State.LOST, reason, Page("lost", reason), DropLease())
    in_service = incident.kind is Kind.ASG_TERMINATE and seen.lifecycle_state == "InService"
    if in_service and seen.now - incident.held_since > IN_SERVICE_GRACE_SECONDS:
        reason = f"The group has instance {incident.instance_id} in service: it is not leaving."
        return go(State.CANCELLED, reason, DropLease())
    return None


def _opened(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    if incident.urgent:
        return forward_now(policy)
    return _FIRST_STEPS[incident.kind](incident, seen, policy)


def _terminating(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    del seen
    if policy.drain_route == "direct":
        return go(State.DRAINING, "The termination handler heard the announcement itself.")
    if incident.node_id is not None:
        return go(
            State.REPLACING,
            f"Kafka node {incident.node_id} runs on {incident.node_name}: a replacement comes "
            f"first.",
        )
    reason = f"No Kafka pod runs on instance {incident.instance_id}: nothing is to be replaced."
    return go(State.DRAINING, reason, *(() if incident.drain_event is None else (ForwardDrain(),)))


def _scheduled(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    del seen
    code = incident.event_type or "a scheduled change"
    if incident.called_off:
        return go(State.CANCELLED, f"AWS called {code} off.")
    if any(word in code for word in _RIDDEN_THROUGH):
        return go(
            State.RIDDEN_THROUGH,
            f"{code} gives instance {incident.instance_id} back: its replicas carry on meanwhile.",
        )
    due = incident.due_at
    when = "at a time not yet said" if due is None else f"at {datetime.fromtimestamp(due, UTC)}"
    reason = (
        f"AWS takes instance {incident.instance_id} {when} ({code}); terminate it through its "
        f"Auto Scaling group before then, and replacement and drain follow by themselves."
    )
    longest = max(LONGEST_DELAY_SECONDS, policy.tick_interval_seconds)
    return stay(incident, policy, reason, Page("scheduled", reason), delay=longest)


def _recommended(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    del seen, policy
    return go(
        State.RIDDEN_THROUGH,
        f"EC2 only recommends to leave instance {incident.instance_id}; a warning would open an "
        f"incident of its own.",
    )


def _unannounced(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait for EC2's word on a state change that nothing announced; `lost` comes from above."""
    state = ec2_state(seen)
    if state in {"pending", "running"}:
        return go(State.CANCELLED, f"EC2 runs instance {incident.instance_id}: it stays.")
    return stay(
        incident, policy, f"Instance {incident.instance_id} is {state}, and nothing announced it."
    )


def _damaged(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Keep what AWS says is damaged: only a person knows whether the broker is better off gone."""
    del seen, policy
    what = incident.event_type or incident.kind.value
    return retained(
        incident,
        "damaged",
        f"AWS reports {what} for instance {incident.instance_id}; it is kept until a person "
        f"decides.",
    )


_Step = Callable[[Incident, Observation, Policy], Decision]
_FIRST_STEPS: Mapping[Kind, _Step] = {
    Kind.ASG_TERMINATE: _terminating,
    Kind.SCHEDULED_CHANGE: _scheduled,
    Kind.REBALANCE: _recommended,
    Kind.STATE_CHANGE: _unannounced,
    Kind.INSTANCE_ISSUE: _damaged,
    Kind.INSTANCE_STORE_DEGRADED: _damaged,
    Kind.VOLUME_PROBLEM: _damaged,
}
_STEPS: Mapping[State, _Step] = {
    State.OPENED: _opened,
    State.REPLACING: replacing,
    State.HOLDING: holding,
    State.DRAINING: draining,
    State.GATING: gating,
}
