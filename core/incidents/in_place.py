"""Decides about an instance that stays and gets a new root volume, in the place of a new instance.

    replacing  no machine is awaited: what speaks against it in place is found before anybody leaves
    holding    consent, the lease, EC2's dry run; others lead; the node is cordoned and drained
    gating     EC2 is asked once, the machine boots, its node takes pods again, its broker is back
    ridden_through  the instance has stayed: with the new root volume, or with the old one

Before the drain whatever speaks against it makes it an ordinary replacement by the same incident.
After it and before EC2 is asked, and where its task fails with the old volume still attached, the
node takes its pod back as it is; the run then replaces the instance (core.rotation.following). From
the request on nothing is taken back: the machine is waited for, with the lease, and a person is
called when it is late. Hooks, a two-minute warning or the machine's end make it what they always
do (`stays`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from core.availability.consent import outsider_missing
from core.availability.lease import members
from core.ground.window import clock
from core.incidents.actions import (
    Action,
    Cordon,
    Decision,
    DropLease,
    ForwardDrain,
    Page,
    ReplaceRoot,
    TakeLease,
    Uncordon,
    go,
    lease_renewal,
    retain,
    stay,
)
from core.incidents.consenting import party_waits
from core.incidents.learn import pod_there
from core.incidents.observation import ENDING, STOPPED, NodeView, Observation, Policy
from core.incidents.record import Incident, InPlace, State
from core.incidents.replacement import barred, not_back, unfit, why_unready

# EC2 shows a task it has taken within seconds; asked again under the same key it makes no other.
SHOWN_SECONDS = 30.0
# So long a reading of Kafka is waited for before the old root volume boots the broker again.
UNREAD_SECONDS = 120.0
# EC2 boots a machine whose task failed; so long its Node may be that of the boot before.
BOOTS_SECONDS = 180.0
# A volume is made of a snapshot in seconds, and a machine boots in a minute or two.
LATE_SECONDS = 600.0
_DETACHED = frozenset({"failing-detached", "failed-detached"})
# Routes on which a drain is ours to begin.
DRAINED_BY_US = frozenset({"held", "evict"})


def is_wanted(incident: Incident, policy: Policy) -> bool:
    """Say whether a node that has not left yet is to stay and get a new root volume."""
    place = incident.in_place
    if place is None or place.refusal is not None:
        return False
    ours = policy.drain_route in DRAINED_BY_US
    return ours and not (incident.is_hooked or incident.release is not None)


def stays(incident: Incident, seen: Observation) -> bool:
    """Say whether a node that was drained takes its own pod back: its instance stays, and runs.

    Hooks that find the pod at home again are another matter, and another round's: this one ends
    with the broker whole, as it was to.
    """
    opened = incident.in_place is not None and incident.in_place.returned_at is not None
    at_home = opened and pod_there(incident, seen.pod_named(incident.pod_name), seen)
    moves = incident.is_hooked and not at_home
    leaves = moves or incident.urgent or incident.lost_at is not None
    return incident.in_place is not None and not leaves and seen.ec2_state not in ENDING | STOPPED


def replacing(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Go on without another machine; None: one is awaited after all."""
    if not is_wanted(incident, policy):
        return None
    unfit = next(_unfit(incident, seen), None)
    if unfit is not None:
        reason = f"{unfit} Its instance is replaced."
        return replace(stay(incident, policy, reason, delay=0.0), not_in_place=unfit)
    reason = f"Instance {incident.instance_id} stays: only its root volume is replaced."
    return go(State.HOLDING, reason)


def leave(incident: Incident, seen: Observation, policy: Policy, reason: str) -> Decision:
    """Take the steps from the lease to the drain; each is seen before the next."""
    place = _place(incident)
    unfit = next(_unfit(incident, seen), None)
    if unfit is not None:
        said = f"{unfit} Its instance is replaced."
        return replace(stay(incident, policy, said, DropLease(), delay=0.0), not_in_place=unfit)
    if place.tried_at is None:
        said = f"{reason} Stillwater asks EC2 whether it would replace the root volume."
        trial = ReplaceRoot(place.image_id, trial=True)
        return stay(incident, policy, said, TakeLease(), trial, delay=0.0)
    waits = party_waits(incident, seen, policy, reason)
    if waits is not None:
        return waits
    # Cordoned first: made anew, its pod would start on the very machine that is about to reboot.
    cordon = Cordon(incident.node_name or "")
    return go(State.DRAINING, reason, TakeLease(), cordon, ForwardDrain())


def gating(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Follow the machine from the request to the broker's return."""
    place = _place(incident)
    if incident.let_go_by is not None:
        reason = f"{incident.let_go_by} lets node {incident.node_name} go on as it is."
        return go(State.RIDDEN_THROUGH, reason, DropLease())
    if seen.now - incident.entered_at > policy.post_condition_wait_seconds:
        waited = f"{seen.now - incident.entered_at:.0f} s after the pod left"
        return retain(incident, "not_back", f"{incident.reason.rstrip('.')}, {waited}.")
    if place.over:
        return _taken_back(incident, seen, policy)
    if place.asked_at is None:
        return _ask(incident, seen, policy)
    return _waited_for(incident, seen, policy)


def tidying_actions(
    incident: Incident, seen: Observation, decision: Decision
) -> tuple[Action, ...]:
    """Let a node take pods again that was cordoned for a drain which is not on its way."""
    going = decision.state in {State.DRAINING, State.GATING}
    cordoned = (n for n in seen.nodes if n.cordoned_for == incident.id and not n.schedulable)
    if incident.in_place is None or going:
        return ()
    return tuple(Uncordon(node.name) for node in cordoned)


def _place(incident: Incident) -> InPlace:
    if incident.in_place is None:
        raise ValueError(f"Incident {incident.id} replaces no root volume.")
    return incident.in_place


def _unfit(incident: Incident, seen: Observation) -> Iterator[str]:
    """Yield what speaks against it in place, as far as the node itself shows it."""
    node = seen.node_named(incident.node_name)
    if node is None or not node.ready:
        yield f"Node {incident.node_name} is not Ready, so a boot may not bring it back."
        return
    if node.boot_id is None:
        yield f"Node {node.name} has no boot id, so its next boot would not show."
    elsewhere = node.cordoned_for != incident.id
    if not node.schedulable and elsewhere:
        yield f"A person has cordoned {node.name}, and Stillwater keeps that cordon."
    if incident.taken_at is not None:
        yield f"AWS takes instance {incident.instance_id} at {clock(incident.taken_at)}."
    if seen.group is not None and seen.lifecycle_state != "InService":
        state = seen.lifecycle_state or "not"
        yield f"{seen.group.name} has instance {incident.instance_id} {state}."


def _ask(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Have EC2 replace the root volume, unless the broker is wanted back at once."""
    against = _wanted_back(incident, seen) or _occupation(incident, seen)
    if against is not None:
        said = f"{against} {incident.node_name} takes its pod back with its old root volume."
        return replace(
            stay(incident, policy, said, *lease_renewal(incident), delay=0.0), not_in_place=against
        )
    if seen.kafka is None or seen.kafka.stale or seen.kafka.doubts:
        reason = f"Nothing is replaced without a whole reading of Kafka. {_silence(seen)}"
        return stay(incident, policy, reason, *lease_renewal(incident))
    image = _place(incident).image_id
    reason = f"EC2 replaces the root volume of {incident.instance_id} with {image}."
    return stay(incident, policy, reason, *lease_renewal(incident), ReplaceRoot(image))


def _occupation(incident: Incident, seen: Observation) -> str | None:
    """Say that somebody took the cordon off: a Kafka pod runs there, or may at any moment."""
    node = seen.node_named(incident.node_name)
    pod = seen.pod_on(incident.node_name)
    if pod is not None:
        return f"Pod {pod.name} runs on {incident.node_name}, which a person has uncordoned."
    if node is not None and node.schedulable:
        return f"A person has uncordoned {node.name}, so that a pod may start there."
    return None


def _wanted_back(incident: Incident, seen: Observation) -> str | None:
    """Say why the broker should return rather than stay away for the length of a boot."""
    if incident.called_off:
        return "A person called the rotation off."
    if seen.paused:
        return seen.paused
    freeze = seen.freeze(incident.zone)
    if freeze is not None:
        return freeze.sentence
    if seen.kafka is None or seen.kafka.stale or seen.kafka.doubts:
        if seen.now - incident.entered_at <= UNREAD_SECONDS:
            return None
        return f"Kafka gives no whole reading for {UNREAD_SECONDS:.0f} s. {_silence(seen)}"
    alone = frozenset[int]() if incident.node_id is None else frozenset({incident.node_id})
    return outsider_missing(members(incident.party) | alone, seen.kafka)


def _silence(seen: Observation) -> str:
    if seen.kafka is None:
        return seen.kafka_silence
    return seen.kafka.doubt or "The quorum does not answer."


def _waited_for(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait for EC2, then for the machine, then for the broker; a person hears when it is late."""
    place = _place(incident)
    asked_at = place.asked_at or seen.now
    node = seen.node_named(incident.node_name)
    if place.task_state in _DETACHED:
        reason = (
            f"EC2 has detached the root volume of instance {incident.instance_id} and attached no "
            f"other ({place.task_state}): it does not boot. Terminate it through its group."
        )
        return stay(
            incident, policy, reason, Page("root_detached", reason), *lease_renewal(incident)
        )
    if place.task_id is None and seen.now - asked_at > SHOWN_SECONDS:
        reason = f"EC2 shows no task for {incident.instance_id}: λ tick asks for it again."
        return stay(
            incident,
            policy,
            reason,
            *lease_renewal(incident),
            ReplaceRoot(place.image_id),
            *_late_pages(incident, seen, reason),
        )
    if place.task_state != "succeeded":
        told = place.task_state or "asked for"
        reason = f"EC2 replaces the root volume of {incident.instance_id}: {told}."
        return _patiently(incident, seen, policy, reason)
    if node is None or node.boot_id in {None, place.boot_id}:
        reason = f"{incident.node_name} has not joined again with its new root volume."
        return _patiently(incident, seen, policy, reason)
    missing = _unfit_again(incident, seen, node)
    if missing is not None:
        return _patiently(incident, seen, policy, missing)
    return _home(incident, seen, policy, node)


def _taken_back(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Wait until the node takes its pod back with the root volume that it has."""
    place = _place(incident)
    why = place.refusal or f"EC2's task {place.task_id} failed, and the old root volume stays."
    node = seen.node_named(incident.node_name)
    missing = "It has no Node." if node is None else _unfit_again(incident, seen, node)
    asked_for = seen.now - (place.asked_at or seen.now)
    if missing is None and node is not None and place.task_state == "failed":
        same = node.boot_id in {None, place.boot_id} and place.returned_at is None
        missing = f"{node.name} may still boot." if same and asked_for < BOOTS_SECONDS else None
    if node is None or missing is not None:
        return replace(_patiently(incident, seen, policy, f"{why} {missing}"), not_in_place=why)
    return replace(_home(incident, seen, policy, node), not_in_place=why)


def _home(incident: Incident, seen: Observation, policy: Policy, node: NodeView) -> Decision:
    """Let the node take its pod, and wait until the broker is back for good."""
    place = _place(incident)
    opening = () if place.returned_at is not None else (Uncordon(node.name),)
    missing = None if not opening else f"{node.name} takes pods again."
    pod = seen.pod_named(incident.pod_name)
    if missing is None and (pod is None or not pod.ready):
        missing = f"Pod {incident.pod_name} is not Ready yet{why_unready(incident.pod_name, seen)}."
    missing = missing or (None if policy.gate == "ready" else not_back(incident, seen, policy))
    if missing is not None:
        return _patiently(incident, seen, policy, missing, *opening)
    with_what = f"root volume {place.image_id}" if place.done else "the root volume it had"
    reason = f"Kafka node {incident.node_id} is back on {node.name} with {with_what}."
    ended = _drain_ended(incident, policy)
    if not ended:
        # The lease stands until the message can do nothing more (core.incidents.consenting).
        reason += " The termination handler may receive its drain again; no other node leaves."
    return go(State.RIDDEN_THROUGH, reason, DropLease(ended=ended))


def _drain_ended(incident: Incident, policy: Policy) -> bool:
    """Say whether nobody can be given its drain any more, though its instance stays.

    One message was sent, and its handler has said that it is done: it deletes it then. A second
    one, of an invocation that died over the first, is handled anew by a handler that restarts.
    """
    if policy.drain_route == "evict":
        return True
    sent = incident.forwarded
    return sent is not None and sent.times == 1 and sent.reported_at is not None


def _patiently(
    incident: Incident, seen: Observation, policy: Policy, reason: str, *actions: Action
) -> Decision:
    late = _late_pages(incident, seen, reason)
    return stay(incident, policy, reason, *late, *lease_renewal(incident), *actions)


def _late_pages(incident: Incident, seen: Observation, reason: str) -> tuple[Action, ...]:
    waited = seen.now - incident.entered_at
    if waited <= LATE_SECONDS:
        return ()
    said = f"{reason.rstrip('.')}, {waited:.0f} s after its pod left; no other node leaves."
    return (Page("machine_late", said),)


def _unfit_again(incident: Incident, seen: Observation, node: NodeView) -> str | None:
    """Return why a machine cannot take its pod back yet, the cordon of this incident apart."""
    opened, pod = replace(node, schedulable=True), seen.pod_named(incident.pod_name)
    there = pod_there(incident, pod, seen)
    said = barred(opened, pod) if there else unfit(opened, pod, seen)
    return said and f"{node.name} {said}."
