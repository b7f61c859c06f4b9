"""Builds the decisions of core.incidents and what it calls; nothing here decides."""

from __future__ import annotations

from core.events import Kind
from core.incidents.actions import Action, CompleteHook, DropLease, HookResult, Page, TakeLease
from core.incidents.observation import Observation, Policy
from core.incidents.record import TERMINAL, Decision, Incident, State
from core.naming import DRAIN_HOOK, GATE_HOOK
from core.window import clock

# EC2's states of an instance that is ending, and of one that certainly runs nothing any more;
# None is an instance EC2 has already forgotten.
ENDING = frozenset({"shutting-down", "terminated", None})
STOPPED = frozenset({"stopped", "terminated", None})


def ec2_state(seen: Observation) -> str | None:
    return None if seen.instance is None else seen.instance.state


def stay(
    incident: Incident, policy: Policy, reason: str, *actions: Action, delay: float | None = None
) -> Decision:
    """Keep the state and look again after one interval, or after `delay` seconds."""
    return Decision(
        state=incident.state,
        reason=reason,
        actions=actions,
        delay_seconds=policy.tick_interval_seconds if delay is None else delay,
    )


def go(state: State, reason: str, *actions: Action) -> Decision:
    """Move to another state and look again at once; a terminal state is not looked at again."""
    return Decision(
        state=state,
        reason=reason,
        actions=actions,
        delay_seconds=None if state in TERMINAL else 0.0,
    )


def is_hooked(incident: Incident) -> bool:
    """Say whether lifecycle hooks hold the instance.

    One announcement stands for both hooks: the other may have got lost.
    """
    return bool(incident.hooks) and incident.group is not None


def evicting(incident: Incident) -> bool:
    """Say whether an eviction alone asks for it: what AWS announces later governs it."""
    return incident.kind is Kind.EVICTION and not is_hooked(incident)


def asked_for(incident: Incident, policy: Policy) -> bool:
    """Say whether the node goes when its own drainer asks: nobody of ours is sent to drain it."""
    return evicting(incident) or policy.drain_route == "asked"


def at_its_turn(incident: Incident) -> bool:
    """Say whether the node goes as soon as nobody else is out: it waits for that, or is let go.

    One for which a run only makes ready may have a word or a date of others, by which it goes.
    """
    others_say = (incident.release, incident.scheduled_said_at, incident.disruption)
    if incident.ahead and not (is_hooked(incident) or incident.urgent or any(others_say)):
        return False
    undrained = incident.state in {State.OPENED, State.REPLACING}
    return incident.state is State.HOLDING or (undrained and incident.release is not None)


def complete(incident: Incident, result: HookResult) -> tuple[Action, ...]:
    """Complete both hooks; one that is complete already makes this a no-op."""
    if not is_hooked(incident):
        return ()
    return (CompleteHook(DRAIN_HOOK, result), CompleteHook(GATE_HOOK, result))


def lease_renewal(incident: Incident) -> tuple[Action, ...]:
    """Keep the lease while the broker is out: a fact, noted beside whoever else may hold it."""
    return () if incident.node_id is None else (TakeLease(out=True),)


def retain(incident: Incident, key: str, reason: str) -> Decision:
    """Keep the instance: ABANDON, which the group's instance lifecycle policy turns into retain."""
    taken_at = None if incident.called_off else incident.taken_at
    told = (
        reason if taken_at is None else f"{reason} AWS takes it at {clock(taken_at)} all the same."
    )
    return go(
        State.RETAINED,
        told,
        Page(key, told),
        *complete(incident, HookResult.ABANDON),
        DropLease(),
    )
