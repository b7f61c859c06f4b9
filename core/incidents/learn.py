"""Adds what readings show to an incident: where its instance stands, how its broker does.

handlers.tick calls `learn` between observing and deciding; a blind reading teaches nothing. A Node
is called by its machine's address, which the next machine may get, so its name alone never says
what is on the incident's own machine; and one reading never says that a node runs no Kafka, for a
pod that its operator restarts has no node for a second.

What Karpenter does to a node is learnt of its NodeClaim:

    marked    condition DisruptionReason: drift or consolidation, its replacement awaited first
    deleted   every other reason begins here, and no way leads back
    deadline  so long before it as a pod takes to stop, Karpenter deletes it, whatever budgets say

Source: sigs.k8s.io/karpenter 1.14.1 (pkg/controllers/disruption, nodeclaim/expiration, node/health,
node/termination). An interruption and a person's `kubectl delete` leave the same claim behind, so
that neither is guessed: EC2 is asked, and what stays unknown is taken for the worst.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.availability.consent import check_returned
from core.events import Kind
from core.events.announcements import ISSUES
from core.ground.fields import Unknown
from core.ground.naming import DRAIN_HOOK, GATE_HOOK
from core.ground.window import clock
from core.health.kafka import BrokerSigns, Lifecycle, lifecycle
from core.health.node import Role
from core.incidents.observation import (
    DEADLINE_ANNOTATION,
    DO_NOT_DISRUPT,
    NodeClaim,
    Observation,
    PodView,
    StatusView,
)
from core.incidents.record import Drainer, GroupRefusal, Incident, Reason, State, disrupted_for

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
    if incident.forwarded is None and incident.state not in {State.DRAINING, State.GATING}:
        incident = _out_of_reach(_add_place(incident, seen), seen)
    elif incident.node_id is None:
        # A Kafka pod that came to an idle node while its drain was on the way is drained with it.
        incident = _add_kafka_pod(incident, seen)
    incident = _root_noted(note_disruption(_idle_noted(incident, seen), seen), seen)
    if incident.node_id is not None and incident.state is State.GATING:
        incident = _return_noted(incident, seen)
    return _lifecycle_noted(incident, seen)


def wanted_kept(incident: Incident, seen: Observation) -> bool:
    """Say whether a pause, a person or a frozen zone wants the instance kept for now."""
    held, frozen = incident.held_to(seen.now), seen.freeze(incident.zone)
    return bool(held or seen.paused or frozen)


def _doubted_since(incident: Incident, seen: Observation) -> float | None:
    """Return since when a reading of Kafka or of its operator is not whole.

    Not to ask Kafka changes nothing.
    """
    doubts = seen.kafka is not None and seen.kafka.doubts
    if seen.kafka_silent or doubts or isinstance(seen.operator, Unknown):
        return incident.doubted_since or seen.now
    return incident.doubted_since if seen.kafka is None else None


def _out_of_reach(incident: Incident, seen: Observation) -> Incident:
    """Note that the group terminates nothing where it has the instance: Standby, or not at all."""
    waits = incident.state is State.HOLDING and not incident.hooks and seen.instance is not None
    state = seen.lifecycle_state
    if not waits or (state or "").startswith(("InService", "Terminating")):
        return incident
    return note_refusal(
        incident, f"it has the instance {state or 'no longer: it was detached'}", seen.now
    )


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


def _add_place(incident: Incident, seen: Observation) -> Incident:
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
    return _add_kafka_pod(incident, seen)


def _add_kafka_pod(incident: Incident, seen: Observation) -> Incident:
    own = seen.pod_named(incident.pod_name)
    pod = own if pod_there(incident, own, seen) else seen.pod_on(incident.node_name)
    if pod is None or not pod_there(incident, pod, seen):
        return incident
    return replace(incident, pod_name=pod.name, node_id=pod.node_id, role=pod.role)


def pod_there(incident: Incident, pod: PodView | None, seen: Observation) -> bool:
    """Say whether a pod is on the incident's own machine."""
    at = None if pod is None else pod.node_name
    return at is not None and at == incident.node_name and not _is_anothers(at, incident, seen)


def attached_there(
    incident: Incident, seen: Observation, name: str | None = None
) -> tuple[str, ...]:
    """Return the volumes that Kubernetes has attached to the incident's own machine.

    `name` is the one of its Node, where the incident never learned it.
    """
    node_name = name or incident.node_name or ""
    return () if _is_anothers(node_name, incident, seen) else seen.attachments.get(node_name, ())


def _is_anothers(node_name: str, incident: Incident, seen: Observation) -> bool:
    node = seen.node_named(node_name)
    return node is not None and node.instance_id not in {None, incident.instance_id}


IDLE_SECONDS = 30.0
# An operator's restart is over by then; a pod that still has no node does not come from here.
IDLE_PATIENCE_SECONDS = 300.0


def _idle_noted(incident: Incident, seen: Observation) -> Incident:
    """Keep since when nothing has spoken for Kafka on the node."""
    if incident.node_id is not None or doubt(incident, seen) is not None:
        return replace(incident, idle_since=None)
    return replace(incident, idle_since=incident.idle_since or seen.now)


def doubt(incident: Incident, seen: Observation, *, patient: bool = True) -> str | None:
    """Return what speaks against a node being idle though no Kafka pod is on it; None: nothing."""
    # EC2's word counts where the node never joined, or is deleted.
    dns_name = "" if seen.instance is None else seen.instance.private_dns_name
    where = incident.node_name or dns_name or incident.instance_id
    volumes = attached_there(incident, seen, where)
    if volumes:
        return f"No Kafka pod is on {where}, and volume {volumes[0]} is attached there"
    homeless = next((pod.name for pod in seen.pods if pod.node_name is None), None)
    if patient and homeless is not None:
        return f"No Kafka pod is on {where}, and {homeless} has no node at the moment"
    return None


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
    same = incident.is_evicted or (place is not None and place.returned_at is not None)
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
    return known if silent else known.add_note(seen.now, "tick", said)


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


KARPENTER = "Karpenter"


def claim_of(incident: Incident, seen: Observation) -> NodeClaim | None:
    """Return the NodeClaim of an incident's instance."""
    return next((c for c in seen.claims if c.instance_id == incident.instance_id), None)


def karpenter_disruption(incident: Incident, seen: Observation) -> Disruption | None:
    """Return what Karpenter does to the incident's node at this moment."""
    claim = claim_of(incident, seen)
    rotated = incident.kind is Kind.ROTATION
    return None if claim is None else disruption_of(claim, seen.now, rotated=rotated)


def note_disruption(incident: Incident, seen: Observation) -> Incident:
    """Keep why Karpenter ends the node and from when on it asks no budget, and tell of each once.

    A reason that is known stays: the sweep has asked EC2, too, and a claim alone says less. A
    deadline only comes nearer.
    """
    found = karpenter_disruption(incident, seen)
    if found is None:
        return incident
    told = disrupted_for(incident.disruption, found.reason.value)
    ends = [at for at in (told.forced_at, _forced_at(incident, found, seen)) if at is not None]
    told = replace(told, forced_at=min(ends, default=None))
    drainer = incident.drainer or Drainer(name=KARPENTER)
    known = replace(incident, drainer=drainer, disruption=told)
    if told == incident.disruption:
        return known
    return known.add_note(seen.now, "tick", found.sentence)


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


def forced_soon(incident: Incident, now: float, margin_seconds: float) -> bool:
    """Say whether the node's drainer stops asking budgets within a margin, or has."""
    at = None if incident.disruption is None else incident.disruption.forced_at
    return at is not None and now >= at - margin_seconds


# A repair writes its deadline a moment before it deletes the claim.
AT_ONCE_SECONDS = 60.0
_MARKED: Mapping[str, Reason] = {
    "Drifted": Reason.DRIFT,
    "Underutilized": Reason.CONSOLIDATION,
    "Empty": Reason.CONSOLIDATION,
}
_TOLD: Mapping[Reason, str] = {
    Reason.INTERRUPTION: "AWS takes its instance",
    Reason.EXPIRY: "it is older than its expireAfter",
    Reason.DRIFT: "it has drifted from its NodePool",
    Reason.CONSOLIDATION: "its pods are to fit elsewhere",
    Reason.REPAIR: "Karpenter's node repair ends it without asking a budget",
    Reason.ROTATION: "a rotation has asked for that",
    Reason.UNTOLD: "nothing says why: a person, or a warning that Karpenter alone has heard",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """What Karpenter does to a node, and why."""

    claim: str  # its NodeClaim
    reason: Reason
    begun: bool  # the claim is deleted: Karpenter goes on until the node has ended
    # Epoch seconds by which pods have stopped, evicted or deleted; None: Karpenter waits.
    deadline: float | None
    sentence: str


def disruption_of(
    claim: NodeClaim, now: float, status: StatusView | None = None, *, rotated: bool = False
) -> Disruption | None:
    """Say what Karpenter does to a claim's node; None: nothing, as far as the claim shows.

    `status` is EC2's word about its instance, where it was asked; `rotated`: a run of ours has
    come to it, which is the reason where the claim shows no other.
    """
    if not claim.leaves:
        return None
    reason = _reason(claim, status)
    if rotated and reason is Reason.UNTOLD:
        reason = Reason.ROTATION
    begun = claim.deleted or claim.says("InstanceTerminating")
    deadline = _deadline(claim, now) if begun else None
    return Disruption(
        claim=claim.name,
        reason=reason,
        begun=begun,
        deadline=deadline,
        sentence=_sentence(claim, reason, deadline, begun=begun),
    )


def _reason(claim: NodeClaim, status: StatusView | None) -> Reason:
    """Name the reason that the claim bears out by itself, else the one that EC2 does."""
    if claim.says("DisruptionReason"):
        return _MARKED.get(claim.conditions["DisruptionReason"].reason, Reason.UNTOLD)
    if _is_immediate(claim):
        return Reason.REPAIR
    if status is not None and any(not event.over for event in status.events):
        return Reason.INTERRUPTION
    born, age = claim.created_at, claim.expire_after_seconds
    if born is not None and age is not None and claim.deleted_at is not None:
        return Reason.EXPIRY if claim.deleted_at - born >= age else Reason.UNTOLD
    return Reason.UNTOLD


def _is_immediate(claim: NodeClaim) -> bool:
    """Say whether the deadline was set to the deletion itself, as a repair does."""
    if claim.deadline is None or claim.deleted_at is None:
        return False
    given = claim.deadline - claim.deleted_at
    return given <= AT_ONCE_SECONDS and given < (claim.grace_seconds or AT_ONCE_SECONDS)


def _deadline(claim: NodeClaim, now: float) -> float | None:
    """Return when Karpenter asks no budget any more; what cannot be read is taken for now."""
    if claim.deadline is not None:
        return claim.deadline
    if claim.says("InstanceTerminating"):
        return now
    if {DEADLINE_ANNOTATION, "terminationGracePeriod"} & set(claim.unreadable):
        return now
    if claim.grace_seconds is None:
        return None
    return now if claim.deleted_at is None else claim.deleted_at + claim.grace_seconds


def _sentence(claim: NodeClaim, reason: Reason, deadline: float | None, *, begun: bool) -> str:
    what = "ends" if begun else "is about to end"
    kept = f", {DO_NOT_DISRUPT} or not" if claim.do_not_disrupt else ""
    said = f"Karpenter {what} NodeClaim {claim.name}{kept}: {_TOLD[reason]}."
    if not begun:
        return said
    if deadline is None:
        return f"{said} Its drain has no deadline."
    by = clock(deadline)
    return (
        f"{said} It deletes pods past their disruption budgets, so that they have stopped by {by}."
    )
