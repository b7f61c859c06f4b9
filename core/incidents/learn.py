"""Adds what readings show to an incident: where its instance stood, how its broker does, since when
it is back.

handlers.tick calls `learn` between observing and deciding; a blind reading teaches nothing.
"""

from __future__ import annotations

from dataclasses import replace

from core.availability.presence import check_returned
from core.events import Kind
from core.events.announcements import ISSUES
from core.health.lifecycle import BrokerSigns, Lifecycle, lifecycle
from core.health.node import Role
from core.incidents.decisions import evicting
from core.incidents.disrupted import claim_of, note_disruption
from core.incidents.idle import doubt
from core.incidents.observation import Observation, PodView
from core.incidents.record import Incident, State
from core.incidents.settling import note_refusal
from core.incidents.whereabouts import pod_there
from core.naming import DRAIN_HOOK, GATE_HOOK
from core.unknown import Unknown

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
