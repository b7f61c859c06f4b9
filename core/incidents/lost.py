"""An instance that is gone without a drain: what it held is let go, once EC2 confirms its end.

Kubernetes keeps the pods and volumes of a node that fell silent for six minutes and longer, since
two writers on one volume destroy it. The out-of-service taint says that nobody writes any more; it
is placed when EC2 confirms the instance stopped or terminated, and never on what may still run.
A Node that was deleted first takes no taint, and its volumes would stay attached for those six
minutes: then their attachments are deleted themselves. The incident goes to the gate at once and
stays until the broker is back elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from core.availability.consent import LOST_ZONE
from core.ground.words import id_list
from core.incidents.actions import (
    Action,
    Decision,
    DropLease,
    FreezeZone,
    HookResult,
    Page,
    ReleaseAttachments,
    TaintOutOfService,
    Untaint,
    asked_for,
    complete,
    go,
    lease_renewal,
    stay,
)
from core.incidents.consenting import look_again
from core.incidents.learn import IDLE_PATIENCE_SECONDS, WAITING, attached_there, doubt, pod_there
from core.incidents.observation import Observation, Policy
from core.incidents.record import Incident, State
from core.incidents.replacement import is_returning, still_missing, why_unready

# What EC2 confirms to run nothing; an instance it has forgotten is confirmed by nobody.
CONFIRMED = frozenset({"stopped", "terminated"})
MAY_RUN = frozenset({"pending", "running"})
# By then the other losses of a zone are known, and one call stands for all.
PAGE_AFTER_SECONDS = 60.0
# A zone comes back in hours.
ZONE_DELAY_SECONDS = 60.0


def follow_others_drain(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Recognise a drain between two looks, of a machine that others drain and end.

    A pod leaves a machine that dies by itself only with its Node, minutes later.
    """
    pod = seen.pod_named(incident.pod_name)
    theirs = seen.watched or asked_for(incident, policy)
    if not theirs or incident.node_id is None or pod_there(incident, pod, seen):
        return None
    moved = pod is not None and pod.node_name is not None
    stands = seen.node_of(incident.instance_id) is not None
    if not (moved or stands or incident.is_hooked or incident.is_evicted):
        return None
    reason = f"Pod {incident.pod_name} has left {incident.node_name}, which others have drained."
    return go(State.DRAINING, reason, *lease_renewal(incident))


def decide_found(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Decide about an instance that EC2 shows as ended and nobody has drained."""
    state = seen.ec2_state
    node = seen.node_of(incident.instance_id)
    if state is None and node is not None:
        reason = (
            f"EC2 does not know instance {incident.instance_id}, and node {node.name} still stands "
            f"in Kubernetes: it is not given up, for the instance may run."
        )
        return stay(incident, policy, reason, Page("unknown_instance", reason))
    ended = f"EC2 confirms that instance {incident.instance_id} is {state or 'gone'}"
    if incident.node_id is None:
        again = look_again(incident, seen, policy)
        # A volume there may be Kafka's, whose pod went while nothing could be read.
        held = not incident.is_hooked and doubt(incident, seen, patient=False)
        if again and (held or seen.now - incident.held_since <= IDLE_PATIENCE_SECONDS):
            return again
        # A stopped one stands in its hooks still: unanswered, they would run out and retain it.
        hooks = complete(incident, HookResult.CONTINUE)
        return go(State.LOST, f"{ended}; no Kafka pod ran there.", *hooks, DropLease())
    reason = f"{ended}, and nothing had drained Kafka node {incident.node_id} from it."
    return replace(go(State.GATING, reason, *lease_renewal(incident)), lost=True)


def gating(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    """Free what the dead machine holds, and wait for its broker on another node."""
    if seen.ec2_state in MAY_RUN:
        return _runs_again(incident, seen, policy)
    if _hopeless(incident, seen):
        return _zone_lost(incident, seen, policy)
    waited = seen.now - incident.entered_at
    missing = still_missing(incident, seen, policy) or _still_tainted(incident, seen)
    if missing is None:
        where = seen.pod_named(incident.pod_name)
        home = f" on {where.node_name}" if where else ""
        return _over(incident, f"Kafka node {incident.node_id} is back{home}", ended=True)
    late = waited > PAGE_AFTER_SECONDS
    lost = (
        f"Kafka node {incident.node_id} lost instance {incident.instance_id} without a drain."
        f"{_offline_words(incident, seen)}"
    )
    pages: tuple[Action, ...] = (Page("lost", lost),) if late else ()
    if waited > policy.post_condition_wait_seconds and not is_returning(incident, seen, policy):
        given_up = f"{missing.rstrip('.')}, {waited:.0f} s after instance was lost"
        return _over(incident, given_up, *pages, Page("not_back", f"{given_up}."))
    freed = unbound(incident, seen)
    # The group has a dead instance once nothing of it is attached: that ends its Node.
    held = seen.volumes or attached_there(incident, seen)
    waits = seen.lifecycle_state == WAITING
    hooks = complete(incident, HookResult.CONTINUE) if waits and not held else ()
    return stay(incident, policy, missing, *pages, *freed, *hooks, *lease_renewal(incident))


def _offline_words(incident: Incident, seen: Observation) -> str:
    """Return what is offline without the broker, and who else has all of it (KIP-966's ELR)."""
    if seen.kafka is None or seen.kafka.doubts or incident.node_id is None:
        return ""
    offline = [p for p in seen.kafka.held_by(incident.node_id) if p.leader is None]
    if not offline:
        return ""
    # Of those in sync and those Kafka still knows to be complete, one may lead without loss.
    whole = [(p, sorted({*p.isr, *p.eligible} - {incident.node_id})) for p in offline]
    alone, others = next(((p, who) for p, who in whole if not who), whole[0])
    who = f"broker {id_list(others)} still holds all of it" if others else "only its volume has it"
    return f" {len(offline)} partitions are offline, among them {alone.name}: {who}."


def unbound(incident: Incident, seen: Observation) -> tuple[Action, ...]:
    """Return what frees the pod and volumes a confirmed dead machine still holds, if it does."""
    if seen.ec2_state not in CONFIRMED:
        return ()
    node = seen.node_of(incident.instance_id)
    if node is None:
        # Of a Node that is gone; another instance may have its name by now.
        name = incident.node_name
        left = name is not None and seen.node_named(name) is None and seen.attachments.get(name)
        return (ReleaseAttachments(name),) if name is not None and left else ()
    if node.out_of_service:
        return ()
    holds = seen.pod_on(node.name) is not None or bool(seen.attachments.get(node.name))
    return (TaintOutOfService(node.name),) if holds else ()


def _still_tainted(incident: Incident, seen: Observation) -> str | None:
    """Stay while our taint stands: an instance that is started again must not keep it."""
    node = seen.node_of(incident.instance_id)
    if node is None or not node.out_of_service or incident.tainted_at is None:
        return None
    return f"Node {node.name} still stands in Kubernetes, out of service."


def _runs_again(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    node = seen.node_of(incident.instance_id)
    if node is not None and node.out_of_service and incident.tainted_at is not None:
        reason = f"Instance {incident.instance_id} runs again: {node.name} is in service again."
        return stay(incident, policy, reason, Untaint(node.name))
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.ready:
        reason = f"Instance {incident.instance_id} runs again, and {pod.name} is Ready."
        return go(State.RIDDEN_THROUGH, reason, DropLease())
    waited = seen.now - incident.entered_at
    why = why_unready(incident.pod_name, seen)
    reason = (
        f"Instance {incident.instance_id} runs again; {incident.pod_name} is not Ready yet{why}."
    )
    if waited > policy.post_condition_wait_seconds:
        return _over(incident, reason.rstrip("."), Page("not_back", reason))
    return stay(incident, policy, reason, *lease_renewal(incident))


def _over(incident: Incident, reason: str, *actions: Action, ended: bool = False) -> Decision:
    said = f"{reason}; instance {incident.instance_id} was lost."
    hooks = complete(incident, HookResult.CONTINUE)
    return go(State.LOST, said, *actions, *hooks, DropLease(ended))


def _hopeless(incident: Incident, seen: Observation) -> bool:
    """Say whether the whole zone is lost: then nothing can start there, and nothing be moved.

    A zone is lost when none of its Kafka nodes is Ready and two or more are known to be gone. What
    anybody says of the zone does not count: a broker that is gone alone is freed all the same.
    """
    zone = incident.zone
    if zone is None:
        return False
    nodes = [node for node in seen.nodes if node.zone == zone and node.pool is not None]
    if any(node.ready for node in nodes):
        return False
    gone = {n.instance_id for n in nodes} | {i for i, where in seen.lost.items() if where == zone}
    return len(gone | {incident.instance_id}) > 1


def _zone_lost(incident: Incident, seen: Observation, policy: Policy) -> Decision:
    reason = (
        f"No Kafka node of {incident.zone} is left: its volumes cannot leave the zone, and wait."
    )
    known = any(f.zone == incident.zone and f.source == LOST_ZONE for f in seen.freezes)
    actions: tuple[Action, ...] = (
        () if known or incident.zone is None else (FreezeZone(incident.zone, reason),)
    )
    delay = max(ZONE_DELAY_SECONDS, policy.tick_interval_seconds)
    return stay(incident, policy, reason, *actions, delay=delay)
