"""Adds what readings show to an incident: where its instance stood, how its broker does, since when
it is back.

handlers.tick calls `learn` between observing and deciding; a blind reading teaches nothing.

Adds to an incident what Karpenter does to its node (core.incidents.nodeclaims): why, until when.

Whatever opened the incident, the gate or the sweep: core.incidents.learn asks `note_disruption` at
every reading, core.incidents.decide asks `deadlines` whom to call.

Says what is on an incident's own machine, as its Node's name alone does not.

A Node is called by its machine's address. Once EC2 has ended the machine, the next one may get
that address, and with it the name, the broker and its volume.

Decides whether a node runs no Kafka, which one reading cannot say.

A pod that its operator restarts has no node for a second, and may have none at all for as long. So
a node counts as idle once every reading has shown it so for `IDLE_SECONDS` (core.incidents.learn
keeps since when), and not while something speaks against it. core.incidents.decide and planned ask
before a drain or a termination that waits for nobody, draining before the gate is opened.

Records a decision that was carried out: the state it led to, and what was done for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.availability.consent import check_returned
from core.events import Kind
from core.events.announcements import ISSUES
from core.health.kafka import BrokerSigns, Lifecycle, lifecycle
from core.health.node import Role
from core.incidents.actions import (
    Action,
    CompleteHook,
    EndClaim,
    ForwardDrain,
    FreeSpare,
    Heartbeat,
    KeepSpare,
    MoveLeaders,
    Page,
    ReplaceRoot,
    RestoreLeaders,
    TaintOutOfService,
    TerminateInGroup,
    Uncordon,
    Untaint,
)
from core.incidents.decisions import evicting, stay
from core.incidents.nodeclaims import (
    DISRUPTED_TAINT,
    Disruption,
    NodeClaim,
    disrupted_for,
    disruption_of,
)
from core.incidents.observation import Observation, PodView, Policy
from core.incidents.record import (
    ALLOWED,
    UNDRAINED,
    Decision,
    Drainer,
    Forwarding,
    GroupRefusal,
    Incident,
    InPlace,
    Replacement,
    State,
    Transition,
)
from core.naming import DRAIN_HOOK, GATE_HOOK
from core.unknown import Unknown
from core.window import clock

KARPENTER = "Karpenter"
# Somebody who is called then can still see why Kafka does not let the broker go, and mend it.
WARNED_SECONDS = 1800.0


def claim_of(incident: Incident, seen: Observation) -> NodeClaim | None:
    """Return the NodeClaim of an incident's instance."""
    return next((c for c in seen.claims if c.instance_id == incident.instance_id), None)


def disruption(incident: Incident, seen: Observation) -> Disruption | None:
    """Return what Karpenter does to the incident's node at this moment."""
    claim = claim_of(incident, seen)
    rotated = incident.kind is Kind.ROTATION
    return None if claim is None else disruption_of(claim, seen.now, rotated=rotated)


def note_disruption(incident: Incident, seen: Observation) -> Incident:
    """Keep why Karpenter ends the node and from when on it asks no budget, and tell of each once.

    A reason that is known stays: the sweep has asked EC2, too, and a claim alone says less. A
    deadline only comes nearer.
    """
    found = disruption(incident, seen)
    if found is None:
        return incident
    told = disrupted_for(incident.disruption, found.reason.value)
    ends = [at for at in (told.forced_at, _forced_at(incident, found, seen)) if at is not None]
    told = replace(told, forced_at=min(ends, default=None))
    drainer = incident.drainer or Drainer(name=KARPENTER)
    known = replace(incident, drainer=drainer, disruption=told)
    if told == incident.disruption:
        return known
    return known.with_note(seen.now, "tick", found.sentence)


def _forced_at(incident: Incident, found: Disruption, seen: Observation) -> float | None:
    """Return from when on Karpenter asks no budget: a pod is to have stopped by the deadline.

    One that tolerates the taint is not evicted at all: its node may end as soon as the claim is
    deleted.
    """
    pod = seen.pod_named(incident.pod_name)
    if found.begun and pod is not None and pod.ignores_disruption:
        return seen.now
    if found.deadline is None:
        return None
    return found.deadline - ((pod.grace_seconds if pod is not None else None) or 0.0)


def claim_to_end(incident: Incident, seen: Observation, decided: Decision) -> tuple[EndClaim, ...]:
    """Have Karpenter end the node of a rotation, for which it makes room first.

    From then on nobody calls it off. The gate keeps the broker until its successor is Ready and
    Kafka lets it go; core.rotation.preconditions says where that can be relied upon.
    """
    claim = claim_of(incident, seen)
    if incident.kind is not Kind.ROTATION or claim is None or claim.leaves or seen.paused:
        return ()
    if decided.state not in {State.REPLACING, State.HOLDING} or incident.called_off:
        return ()
    return (EndClaim(claim.name, claim.uid),)


def forced_soon(incident: Incident, now: float, margin_seconds: float) -> bool:
    """Say whether the node's drainer stops asking budgets within a margin, or has."""
    at = None if incident.disruption is None else incident.disruption.forced_at
    return at is not None and now >= at - margin_seconds


def deadlines(incident: Incident, seen: Observation, decided: Decision) -> tuple[Page, ...]:
    """Call a person while a broker that may not go yet is about to be deleted all the same."""
    told = incident.disruption
    if told is None or told.forced_at is None:
        return ()
    if decided.state not in UNDRAINED or incident.node_id is None:
        return ()
    if not forced_soon(incident, seen.now, WARNED_SECONDS):
        return ()
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.ignores_disruption:
        how = (
            f"Karpenter ends the node under {incident.pod_name} and does not evict it: it "
            f"tolerates {DISRUPTED_TAINT}."
        )
    else:
        how = (
            f"From {clock(told.forced_at)} on Karpenter deletes {incident.pod_name} past its "
            f"disruption budget ({told.reason}), and only an eviction gate is asked."
        )
    return (Page("forced", f"{how} {decided.reason}"),)


def pod_there(incident: Incident, pod: PodView | None, seen: Observation) -> bool:
    """Say whether a pod is on the incident's own machine."""
    if pod is None or pod.node_name is None or pod.node_name != incident.node_name:
        return False
    return not _of_another(pod.node_name, incident, seen)


def attached_there(
    incident: Incident, seen: Observation, name: str | None = None
) -> tuple[str, ...]:
    """Return the volumes that Kubernetes has attached to the incident's own machine.

    `name` is the one of its Node, where the incident never learned it.
    """
    node_name = name or incident.node_name or ""
    return () if _of_another(node_name, incident, seen) else seen.attachments.get(node_name, ())


def _of_another(node_name: str, incident: Incident, seen: Observation) -> bool:
    """Say whether another machine's Node has a name by now."""
    node = seen.node_named(node_name)
    return node is not None and node.instance_id not in {None, incident.instance_id}


IDLE_SECONDS = 30.0
# An operator's restart is over by then; a pod that still has no node does not come from here.
PATIENCE_SECONDS = 300.0


def doubt(incident: Incident, seen: Observation, *, patient: bool = True) -> str | None:
    """Return what speaks against a node being idle though no Kafka pod is on it; None: nothing."""
    where = _where(incident, seen)
    volumes = attached_there(incident, seen, where)
    if volumes:
        return f"No Kafka pod is on {where}, and volume {volumes[0]} is attached there"
    homeless = next((pod.name for pod in seen.pods if pod.node_name is None), None)
    if patient and homeless is not None:
        return f"No Kafka pod is on {where}, and {homeless} has no node at the moment"
    return None


def _where(incident: Incident, seen: Observation) -> str:
    """Return what its node is called: by EC2's word where it never joined, or is deleted."""
    dns_name = "" if seen.instance is None else seen.instance.private_dns_name
    return incident.node_name or dns_name or incident.instance_id


def looked_at_again(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Keep a node that may be idle where it is until that is sure; None: it is."""
    if seen.paused:
        return stay(incident, policy, seen.paused)
    waited = seen.now - incident.held_since
    patient = waited <= PATIENCE_SECONDS
    doubtful = doubt(incident, seen, patient=patient)
    if doubtful is not None:
        reason = f"{doubtful}: it is looked at again."
        page = () if patient else (Page("volume_on_idle_node", reason),)
        return stay(incident, policy, reason, *page)
    if incident.node_name is None:
        return None  # It never joined.
    since = incident.idle_since
    if since is None:
        # Homeless pods alone reset it, and are believed to belong elsewhere by now.
        return None if not patient else _once_more(incident, policy)
    return None if seen.now - since >= IDLE_SECONDS else _once_more(incident, policy)


def _once_more(incident: Incident, policy: Policy) -> Decision:
    reason = f"No Kafka pod is on {incident.node_name}: it is looked at once more."
    return stay(incident, policy, reason)


# Actions that are remembered by when they were done last, and those that undo one.
_TIMES: Mapping[type[object], str] = {
    Heartbeat: "heartbeat_at",
    TaintOutOfService: "tainted_at",
    MoveLeaders: "leaders_moved_at",
}
_UNDONE: Mapping[type[object], str] = {Untaint: "tainted_at", RestoreLeaders: "leaders_moved_at"}


def settle(incident: Incident, decision: Decision, now: float, *, actor: str = "tick") -> Incident:
    """Record that a decision was carried out.

    Raises ValueError for a transition DESIGN does not allow.
    """
    if decision.state is not incident.state and decision.state not in ALLOWED[incident.state]:
        raise ValueError(f"Incident {incident.id} may not go {incident.state} -> {decision.state}.")
    entry = Transition(now, decision.state, actor, decision.reason)
    moved = decision.state is not incident.state
    delay = decision.delay_seconds
    acted = _remember_actions(incident, decision, now)
    if not moved and decision.reason != incident.reason:
        acted = acted.with_note(now, actor, decision.reason)
    return replace(
        acted,
        state=decision.state,
        reason=decision.reason,
        transitions=(*incident.transitions, entry) if moved else incident.transitions,
        pages=incident.pages + tuple(a.key for a in decision.actions if isinstance(a, Page)),
        replacement=_replacement(incident, decision, now),
        expects_return=incident.expects_return and not decision.without_replacement,
        surge_to=incident.surge_to if decision.surge_to is None else decision.surge_to,
        in_place=_in_place(acted, decision),
        turn_due_at=decision.turn_due_at,
        lost_at=incident.lost_at or (now if decision.lost else None),
        forwarded=_found_forwarded(acted, decision),
        next_tick_at=None if delay is None else now + delay,
    )


def _replacement(incident: Incident, decision: Decision, now: float) -> Replacement | None:
    found = decision.replacement
    if found is None or found == incident.replacement_node:
        return incident.replacement
    return Replacement(node=found, ready_at=now)


def _in_place(acted: Incident, decision: Decision) -> InPlace | None:
    """Keep why a root volume is not replaced after all; the first reason stands."""
    why, place = decision.not_in_place, acted.in_place
    if place is None or why is None or place.refusal is not None:
        return place
    return replace(place, refusal=why)


def note_refusal(incident: Incident, words: str | None, now: float) -> Incident:
    """Keep what was answered where something was asked for and refused; None: nothing was.

    By EC2, about the root volume, for as long as that is to be replaced in place; else by the
    group that was asked to terminate the instance.
    """
    if words is None:
        return incident
    place = incident.in_place
    if place is not None and place.refusal is None:
        return replace(incident, in_place=replace(place, refusal=words))
    before = incident.refusal
    refusal = GroupRefusal(since=before.since if before else now, words=words)
    return replace(incident, refusal=refusal)


def _found_forwarded(acted: Incident, decision: Decision) -> Forwarding | None:
    """Count a drain that an invocation has sent and not lived to record."""
    at = decision.forwarded_at
    return acted.forwarded if at is None else _forwarding_at(acted.forwarded, at)


def _forwarding_at(before: Forwarding | None, at: float) -> Forwarding:
    return Forwarding(first_at=at, last_at=at) if before is None else before.again(at)


def _remember_actions(incident: Incident, decision: Decision, now: float) -> Incident:
    """Remember the actions that later decisions ask about."""
    for action in decision.actions:
        incident = replace(incident, **_remembered_fields(incident, action, now))
        if incident.in_place is not None and isinstance(action, ReplaceRoot | Uncordon):
            incident = replace(incident, in_place=_in_place_after(incident.in_place, action, now))
    return incident


def _remembered_fields(incident: Incident, action: Action, now: float) -> dict[str, Any]:
    """Return the fields in which an action is remembered."""
    if isinstance(action, ForwardDrain):
        return {"forwarded": _forwarding_at(incident.forwarded, now)}
    if isinstance(action, CompleteHook):
        return {"completed_at": incident.completed_at or now}
    if isinstance(action, TerminateInGroup):
        return {} if action.instance_id else {"terminate_asked_at": _asked_at(incident, now)}
    if isinstance(action, KeepSpare):
        return {"spare": action.node}
    if isinstance(action, FreeSpare):
        return {"spare": None} if action.node == incident.spare else {}
    done, undone = _TIMES.get(type(action)), _UNDONE.get(type(action))
    return {done: now} if done else {undone: None} if undone else {}


def _asked_at(incident: Incident, now: float) -> float:
    """Return when a group was asked to terminate; of one that accepted, the first time."""
    before, said = incident.terminate_asked_at, incident.release
    again = said is not None and before is not None and said.at > before
    kept = before is not None and incident.refusal is None and not again
    return before if kept and before is not None else now


def _in_place_after(place: InPlace, action: ReplaceRoot | Uncordon, now: float) -> InPlace:
    if isinstance(action, Uncordon):
        return replace(place, returned_at=place.returned_at or now)
    if action.trial:
        return replace(place, tried_at=now)
    return replace(place, asked_at=place.asked_at or now)


# EC2's words for a machine that has not ended yet.
ON_ITS_WAY_OUT = frozenset({"stopping", "shutting-down"})
# Auto Scaling's names for an instance that stands in its terminating hooks.
WAITING = "Terminating:Wait"
# What a termination through the group follows, and then governs.
_KINDS = tuple(Kind)
_BEFORE = frozenset(_KINDS[: _KINDS.index(Kind.ASG_TERMINATE)]) - ISSUES


def learn(incident: Incident, seen: Observation) -> Incident:
    """Add what a reading shows; who stood on the node is settled once the drain is forwarded."""
    if wanted_kept(incident, seen):
        incident = replace(incident, kept_at=seen.now)
    if seen.blind:
        # Whatever was seen to last before is not known to have lasted.
        since = incident.blind_since or seen.now
        return replace(incident, blind_since=since, idle_since=None, broker_back_at=None)
    ending = seen.instance is not None and seen.instance.state in ON_ITS_WAY_OUT
    incident = replace(
        incident,
        blind_since=None,
        doubted_since=_doubted_since(incident, seen),
        ending_since=(incident.ending_since or seen.now) if ending else None,
    )
    if seen.lifecycle_state == WAITING and not incident.hooks:
        # The group has begun and its announcement is late, or lost: the loop must keep the hooks.
        incident = replace(
            incident,
            hooks={DRAIN_HOOK: None, GATE_HOOK: None},
            kind=Kind.ASG_TERMINATE if incident.kind in _BEFORE else incident.kind,
            announced_at=seen.now,
        )
    if _is_undrained(incident):
        incident = _out_of_reach(_with_place(incident, seen), seen)
    elif incident.node_id is None:
        # A Kafka pod that came to an idle node while its drain was on the way is drained with it.
        incident = _with_kafka_pod(incident, seen)
    incident = _root_noted(note_disruption(_idle_noted(incident, seen), seen), seen)
    if incident.node_id is not None and incident.state is State.GATING:
        incident = _return_noted(incident, seen)
    return _lifecycle_noted(incident, seen)


def wanted_kept(incident: Incident, seen: Observation) -> bool:
    """Say whether a pause, a person or a frozen zone wants the instance kept for now."""
    held = incident.held_until is not None and seen.now < incident.held_until
    return held or bool(seen.paused) or seen.freeze(incident.zone) is not None


def _doubted_since(incident: Incident, seen: Observation) -> float | None:
    """Return since when a reading of Kafka or of its operator is not whole.

    Not to ask Kafka changes nothing.
    """
    doubts = seen.kafka is not None and seen.kafka.doubts
    if seen.kafka_silent or doubts or isinstance(seen.operator, Unknown):
        return incident.doubted_since or seen.now
    return incident.doubted_since if seen.kafka is None else None


def _is_undrained(incident: Incident) -> bool:
    gone = {State.DRAINING, State.GATING}
    return incident.forwarded is None and incident.state not in gone


def _out_of_reach(incident: Incident, seen: Observation) -> Incident:
    """Note that the group terminates nothing where it has the instance: Standby, or not at all."""
    waits = incident.state is State.HOLDING and not incident.hooks and seen.instance is not None
    state = seen.lifecycle_state
    if not waits or (state or "").startswith(("InService", "Terminating")):
        return incident
    return note_refusal(
        incident, f"it has the instance {state or 'no longer: it was detached'}", seen.now
    )


def _with_place(incident: Incident, seen: Observation) -> Incident:
    node = seen.node_of(incident.instance_id)
    instance, claim = seen.instance, claim_of(incident, seen)
    # A machine that died takes its Node along; its NodeClaim stands for a while.
    place = node or claim
    name = node.name if node else incident.node_name or (claim.node_name if claim else None)
    if name is None and instance is not None and seen.pod_on(instance.private_dns_name):
        name = instance.private_dns_name  # Its Node is deleted, and Kafka runs there all the same.
    zone = place.zone if place else None
    incident = replace(
        incident,
        group=incident.group or (instance.group if instance else None),
        zone=incident.zone or zone or (instance.zone if instance else None),
        pool=incident.pool or (place.pool if place else None),
        node_name=name,
    )
    return _with_kafka_pod(incident, seen)


def _with_kafka_pod(incident: Incident, seen: Observation) -> Incident:
    """Add the Kafka pod that is on the node, if one is."""
    pod = seen.pod_on(incident.node_name)
    if pod is None or not pod_there(incident, pod, seen):
        return incident
    return replace(incident, pod_name=pod.name, node_id=pod.node_id, role=pod.role)


def _idle_noted(incident: Incident, seen: Observation) -> Incident:
    """Keep since when nothing has spoken for Kafka on the node."""
    if incident.node_id is not None or doubt(incident, seen) is not None:
        return replace(incident, idle_since=None)
    return replace(incident, idle_since=incident.idle_since or seen.now)


def _root_noted(incident: Incident, seen: Observation) -> Incident:
    """Keep which boot the machine was in before, and what EC2 says of its new root volume."""
    place, node = incident.in_place, seen.node_named(incident.node_name)
    if place is None:
        return incident
    if place.asked_at is None and seen.root_task is None and node is not None:
        place = replace(place, boot_id=node.boot_id)
    if seen.root_task is not None:
        # Of an invocation, too, that asked for it and did not live to record that.
        place = replace(
            place,
            asked_at=place.asked_at or seen.now,
            task_id=seen.root_task.id,
            task_state=seen.root_task.state,
        )
    return replace(incident, in_place=place)


def _return_noted(incident: Incident, seen: Observation) -> Incident:
    """Keep since when every reading has shown the broker back; one that does not starts again."""
    if seen.kafka is None or incident.node_id is None:
        # Silence proves nothing, neither that it is away nor that it stayed: the hold begins anew.
        return replace(incident, broker_back_at=None)
    pod = seen.pod_named(incident.pod_name)
    moved = pod is not None and not pod_there(incident, pod, seen)
    place = incident.in_place
    same = evicting(incident) or (place is not None and place.returned_at is not None)
    settled = pod is not None and pod.ready and (moved or same)
    if not settled or not check_returned(incident.node_id, seen.kafka).allowed:
        return replace(incident, broker_back_at=None)
    return replace(incident, broker_back_at=incident.broker_back_at or seen.now)


def _lifecycle_noted(incident: Incident, seen: Observation) -> Incident:
    """Keep where the broker stands in its life, and note every change in the timeline.

    A reading that cannot tell (no quorum, or Kafka not asked and nobody told to stop) changes
    nothing, and that a broker is online at first says nothing new.
    """
    if incident.node_id is None or incident.role == Role.CONTROLLER:
        return incident
    found = lifecycle(_signs(incident, incident.node_id, seen))
    before, after = incident.lifecycle, found.state.value
    if found.state is Lifecycle.UNKNOWN or before == after:
        return incident
    told = f"{found.reason[:-1]}; it was {before}." if before else found.reason
    silent = before is None and found.state is Lifecycle.ONLINE
    known = replace(incident, lifecycle=after)
    said = " ".join((told, *found.disagreements))
    return known if silent else known.with_note(seen.now, "tick", said)


def _signs(incident: Incident, broker_id: int, seen: Observation) -> BrokerSigns:
    """Gather what Kafka says, where it was asked, and what the broker's pod does."""
    pod = seen.pod_named(incident.pod_name)
    signs = BrokerSigns(
        broker_id=broker_id,
        told_to_stop=None if pod is None else pod.stopping,
        process=None if incident.pod_name is None else _runs(incident, pod, seen),
    )
    view = seen.kafka
    if view is None:
        return signs
    answers = not view.stale
    return replace(
        signs,
        quorum_answers=answers,
        described=broker_id in view.brokers if answers else None,
        is_fenced=broker_id in view.fenced if answers and broker_id in view.brokers else None,
    )


def _runs(incident: Incident, pod: PodView | None, seen: Observation) -> bool | None:
    """Say whether the broker's process runs, as far as its pod shows; None: it may."""
    if pod is None or pod.node_name is None:
        return False
    if incident.lost_at is not None and pod_there(incident, pod, seen):
        return False  # its machine has ended, whatever the pod's status still says
    return True if pod.ready else None
