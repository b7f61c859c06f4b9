"""Finds the node that takes over, and decides what is asked of the group and of the gate.

A planned incident has its group want one instance more, and terminates its own through the group,
which then wants one less. Where it ends otherwise (called off, ignored, terminated by somebody
else, lost) the group is left with a machine for nobody. What has been launched already would be
taken at random by a group that wants less, the broker's own machine as well as the idle one: so the
idle one is terminated by its name, and the group only wants less where nothing was launched yet. A
group that refuses to terminate is noted with its own words (core.incidents.learn.note_refusal) and
asked again slowly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from core.availability.consent import is_back
from core.ground.errors import Conflict
from core.ground.fields import Unknown
from core.ground.naming import managed_tag
from core.ground.placement import barrier, shortage
from core.ground.window import clock
from core.incidents.actions import (
    LATE_REPLACEMENT_SECONDS,
    Action,
    Decision,
    DropLease,
    FreeSpare,
    KeepSpare,
    Page,
    SetDesired,
    TakeLease,
    TerminateInGroup,
    asked_for,
    stay,
)
from core.incidents.learn import attached_there, pod_there
from core.incidents.observation import (
    DO_NOT_DISRUPT,
    NodeClaim,
    NodeView,
    Observation,
    PodView,
    Policy,
)
from core.incidents.record import Incident, State

_WAITS_FOR_POD = frozenset({State.REPLACING, State.HOLDING, State.DRAINING})


def replacement_for(incident: Incident, seen: Observation) -> NodeView | None:
    """Return an idle node of the same zone and pool that can take the pod and its volumes now."""
    joining, pod = _joining(seen), seen.pod_named(incident.pod_name)
    able = [
        node
        for node in _idle(incident, seen)
        if node.instance_id not in joining and unfit(node, pod, seen) is None
    ]
    able.sort(key=lambda node: (node.name != incident.replacement_node, node.name))
    return able[0] if able else None


def unfit(node: NodeView, pod: PodView | None, seen: Observation) -> str | None:
    """Return why a node cannot take a pod now, as a predicate of the node; None: it can.

    What is not known of it speaks against it. Of a pod that is not there nothing is known to ask.
    """
    return barred(node, pod) or (None if pod is None else _lacking(node, pod, seen))


def barred(node: NodeView, pod: PodView | None) -> str | None:
    """Return why a pod may not start on a node whatever room it has.

    A node whose CSINode does not list the EBS driver would leave the pod unable to mount, and one
    that its monitoring agent calls sick is no better than the one that leaves.
    """
    if not node.ready:
        return f"is not Ready yet{f' ({node.unready_why})' if node.unready_why else ''}"
    if not node.schedulable:
        return "is cordoned, and takes no pods"
    if node.sick:
        return (
            f"reports {', '.join(sorted(node.sick))} as False: restart its node monitoring agent, "
            f"and end the instance if it reports the same again"
        )
    if not node.csi_ready:
        return "is not registered with its EBS driver yet"
    said = pod and barrier(node.name, node.labels, node.taints, pod.needs.wants)
    return f"is Ready and {said}; `kubectl describe node {node.name}` shows it" if said else None


def _lacking(node: NodeView, pod: PodView, seen: Observation) -> str | None:
    if not pod.needs.requests:
        return None
    tenants = seen.tenants.get(node.name, Unknown("they were not listed"))
    if isinstance(tenants, Unknown):
        return f"is Ready, and what its pods request is not known: {tenants.why.rstrip('.')}"
    attached = len(seen.attachments.get(node.name, ()))
    said = shortage(pod.needs, node.allocatable, tenants, attached)
    return (
        f"is Ready and {said}; `kubectl describe node {node.name}` lists what takes it"
        if said
        else None
    )


def places(incident: Incident, seen: Observation) -> Iterator[NodeView]:
    """Yield the Ready nodes of the same zone and pool that run no Kafka pod, its own included."""
    busy = seen.busy
    for node in seen.nodes:
        same = (node.zone, node.pool) == (incident.zone, incident.pool)
        if same and node.ready and node.name not in busy:
            yield node


def anybody_idle(incident: Incident, seen: Observation) -> NodeView | None:
    """Return an idle node that the group has and nobody awaits, able to serve or not.

    One that is not Ready and about to be given up is idle for good: the group would replace it.
    """
    dying = (node for node in seen.nodes if node.instance_id in seen.leaving and not node.ready)
    busy, staying = seen.busy, seen.staying
    found = [
        node
        for node in (*_idle(incident, seen), *dying)
        if node.spare_for not in seen.to_be_placed
        and node.name not in busy
        and node.instance_id in staying
    ]
    return min(found, key=lambda node: (not node.ready, node.name), default=None)


def _joining(seen: Observation) -> frozenset[str | None]:
    """Return the instances that Karpenter has not taken for nodes of its own yet, or not any more.

    One that does not become that in time is ended, whoever runs there.
    """
    return frozenset(claim.instance_id for claim in seen.claims if not claim.serves)


def _idle(incident: Incident, seen: Observation) -> list[NodeView]:
    """Return the nodes of the same zone and pool that stay, run no Kafka pod and await no other."""
    busy, staying = seen.busy, seen.staying
    passing = {claim.instance_id for claim in seen.claims if claim.leaves}
    return [
        node
        for node in seen.nodes
        if (node.zone, node.pool) == (incident.zone, incident.pool)
        and node.name not in busy
        and node.instance_id not in {None, incident.instance_id, *seen.leaving, *passing}
        and node.spare_for not in seen.to_be_placed
        and (seen.group is None or node.instance_id in staying)
    ]


def spoken_for(seen: Observation) -> int:
    """Return how many of the group's instances run a Kafka pod, or are others' replacements.

    An incident that asked its group for room counts for one, from then on until its pod runs there.
    """
    if seen.group is None:
        return 0
    busy, staying = seen.busy, seen.staying
    held = {
        node.instance_id
        for node in seen.nodes
        if node.instance_id in staying
        and (node.name in busy or node.spare_for in seen.to_be_placed)
    }
    return len(held) + len(seen.asking - {node.spare_for for node in seen.nodes})


def has_room(incident: Incident, seen: Observation) -> bool:
    """Say whether the instance's group wants more than it has Kafka pods, the incident's counted.

    A group that retains the instance has replaced it already, and wants none for it any more.
    """
    if seen.group is None:
        return True
    busy, counted = seen.busy, seen.staying | {incident.instance_id}
    occupied = [n for n in seen.nodes if n.name in busy and n.instance_id in counted]
    return seen.group.desired > len(occupied)


def nowhere_to_go(incident: Incident) -> str:
    """Say of a pod without a place whether it had one that is gone, or waits for its first."""
    if incident.replacement is not None:
        return f"Replacement {incident.replacement.node} can no longer take the pod."
    return f"No other node of {incident.zone} can take {incident.pod_name} yet."


def none_will_come(incident: Incident, seen: Observation) -> bool:
    """Say whether this is a scale-in: the group wants no more than what is busy already."""
    if seen.group is None:
        return False
    busy = seen.busy
    occupied = {node.instance_id for node in seen.nodes if node.name in busy}
    staying = seen.staying - {incident.instance_id}
    return seen.group.desired <= len(staying) and staying <= occupied


def is_own_group(seen: Observation) -> bool:
    """Say whether the instance's group is one of this project's, which may be asked to grow."""
    tags = {} if seen.instance is None else seen.instance.tags
    return any(key.startswith(managed_tag("")) for key in tags)


def what_is_coming(incident: Incident, seen: Observation) -> str:
    """Return what the wait for a replacement is a wait for, to end a sentence."""
    pod = seen.pod_named(incident.pod_name)
    left_alone = seen.claims and pod is not None and (pod.undisturbed_until or 0.0) > seen.now
    if pod is not None and left_alone:
        return (
            f": Karpenter makes no room for {pod.name} and does not evict it while it says "
            f"{DO_NOT_DISRUPT}; take that off"
        )
    joining = _joining(seen)
    for node in _idle(incident, seen):
        if node.instance_id in joining:
            continue
        lacking = unfit(node, pod, seen)
        if lacking is not None:
            return f": {node.name} {lacking}"
    launched = coming(seen.claims, incident.zone, incident.pool)
    if launched is not None:
        return f": {launched}"
    return "" if seen.group is None else f": {seen.group.name} is launching one"


def spare_kept(incident: Incident, seen: Observation, state: State) -> tuple[Action, ...]:
    """Keep the idle node that this incident waits for, and no other, from Cluster Autoscaler.

    It is kept from its first sign on: an idle node counts as unneeded whether or not it is Ready.
    """
    place = incident.in_place
    moves = place is None or place.refusal is not None
    waits = state in _WAITS_FOR_POD and incident.node_id is not None and incident.expects_return
    waits = waits and moves
    idle = sorted(_idle(incident, seen), key=lambda n: (n.name != incident.spare, n.name))
    wanted = (replacement_for(incident, seen) or next(iter(idle), None)) if waits else None
    landed = not waits and state is State.GATING
    actions: list[Action] = []
    if wanted is not None and wanted.spare_for != incident.id:
        actions.append(KeepSpare(wanted.name))
    for node in seen.nodes:
        # One that the pod is about to start on stays kept until the incident is over.
        stale = node.spare_for == incident.id and node is not wanted and not landed
        if stale and not (waits and wanted is None):
            actions.append(FreeSpare(node.name))
    return tuple(actions)


# Who stays retained may yet be released, and needs its replacement then.
_OVER = frozenset({State.CANCELLED, State.RELEASED, State.LOST, State.RIDDEN_THROUGH})


def room_return(incident: Incident, seen: Observation, state: State) -> tuple[Action, ...]:
    """Return what gives the room back when an incident ends in a state; (): there is none."""
    lowered = incident.terminate_asked_at is not None and incident.refusal is None
    if seen.group is None or lowered or state not in _OVER or not is_unneeded(incident, seen):
        return ()
    if _homeless(seen):
        return ()  # It may be about to start on the idle machine.
    idle = replacement_for(incident, seen) or anybody_idle(incident, seen)
    instance_id = _instance_without_node(incident, seen) if idle is None else idle.instance_id
    if instance_id is not None:
        return (TerminateInGroup(decrement=True, instance_id=instance_id),)
    wanted = max(spoken_for(seen), len(seen.staying))
    return (SetDesired(wanted),) if wanted < seen.group.desired else ()


def is_unneeded(incident: Incident, seen: Observation) -> bool:
    """Say whether the group wants more than anybody needs, since the incident asked it to."""
    if incident.surge_to is None or seen.group is None:
        return False
    return seen.group.desired > spoken_for(seen)


def is_unsettled(seen: Observation) -> bool:
    """Say whether the group still launches a machine, or a pod may start on one that is idle."""
    states = () if seen.group is None else seen.group.instances.values()
    return any(state.startswith("Pending") for state in states) or _homeless(seen)


def _homeless(seen: Observation) -> bool:
    return any(pod.node_name is None for pod in seen.pods)


def _instance_without_node(incident: Incident, seen: Observation) -> str | None:
    """Return an instance of the group that is no Node yet, so that nothing can run there."""
    if seen.group is None:
        return None
    known = {node.instance_id for node in seen.nodes} | {incident.instance_id} | seen.leaving
    serving = sorted(i for i, state in seen.group.instances.items() if state == "InService")
    return next((i for i in serving if i not in known), None)


def why_unready(name: str | None, seen: Observation) -> str:
    """Return why a pod is not Ready, to go after that it is not; "": nothing says so."""
    pod = seen.pod_named(name)
    if pod is None:
        return ""
    return joined(causes(pod, seen.node_named(pod.node_name), seen.claim_troubles))


def causes(pod: PodView, node: NodeView | None, claims: Iterable[str] = ()) -> Iterator[str]:
    """Yield each cause as a clause, the pod's own first."""
    if pod.cause or pod.trouble:
        yield pod.cause or pod.trouble
    yield from claims
    if node is not None:
        # It is there already, so a cordon is in nobody's way.
        said = barred(replace(node, schedulable=True), None)
        if said:
            yield f"{node.name} {said}"


def joined(told: Iterable[str]) -> str:
    said = "; ".join(told)
    return f": {said}" if said else ""


def still_missing(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return what the gate still waits for, or None when the instance may go."""
    away = _still_away(incident, seen, policy) if incident.expects_return else None
    return _still_held(incident, seen, policy, away) or away


def is_returning(incident: Incident, seen: Observation, policy: Policy) -> bool:
    """Say whether the broker is back, and only has to stay so for a while: it is not given up.

    Each look that sees nothing starts that while again.
    """
    back = incident.expects_return and incident.broker_back_at is not None
    return back and _still_held(incident, seen, policy, None) is None


def _still_held(
    incident: Incident, seen: Observation, policy: Policy, away: str | None
) -> str | None:
    """Return what of the broker's the old instance still has.

    A broker that is back has its volumes. Where EC2 has nothing attached either, what Kubernetes
    still notes is another claim's.
    """
    pod = seen.pod_named(incident.pod_name)
    if pod is not None and pod.ready and asked_for(incident, policy):
        # Perhaps on its own node again, where a drainer thought better of it.
        return None
    if pod is not None and pod_there(incident, pod, seen):
        return f"Pod {pod.name} is still on {incident.node_name}."
    attached = attached_there(incident, seen)
    if attached and (seen.volumes or away is not None):
        held = f"Volume {attached[0]} is still attached to {incident.node_name}."
        return held if seen.volumes or away is None else f"{held} {away}"
    if seen.volumes:
        return f"EC2 has not yet detached {seen.volumes[0]} from {incident.instance_id}."
    return None


def _still_away(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    pod = seen.pod_named(incident.pod_name)
    if pod is None or not pod.ready:
        why = why_unready(incident.pod_name, seen)
        return f"Pod {incident.pod_name} is not Ready on another node yet{why}."
    home = seen.node_named(pod.node_name)
    if home is not None and not (home.ready and home.csi_ready):
        return f"{home.name}, where {pod.name} runs, is not Ready with its EBS driver."
    if policy.gate == "ready":
        return None
    return not_back(incident, seen, policy)


def not_back(incident: Incident, seen: Observation, policy: Policy) -> str | None:
    """Return what Kafka still lacks of the broker, or None when it is back for good."""
    if seen.kafka is None or incident.node_id is None:
        return seen.kafka_silence
    verdict = is_back(
        incident.node_id,
        seen.kafka,
        back_since=incident.broker_back_at,
        now=seen.now,
        hold_seconds=policy.post_condition_hold_seconds,
    )
    return None if verdict.allowed else verdict.reason


# What a condition says that nobody has come to yet.
_UNTRIED = frozenset({"", "Unknown", "AwaitingReconciliation"})


def coming(claims: Iterable[NodeClaim], zone: str | None, pool: str | None) -> str | None:
    """Return what Karpenter launches for a pool in a zone, to end a sentence; None: nothing."""
    # A claim has no zone before it is launched, and its pool's zone is its NodePool's.
    for claim in claims:
        if claim.pool != pool or claim.leaves or claim.zone not in {None, zone}:
            continue
        if claim.serves:
            continue
        launched = claim.conditions.get("Launched")
        tried = launched is not None and launched.reason not in _UNTRIED
        if launched is not None and launched.holds is not True and tried:
            said = launched.message or launched.reason
            return f"Karpenter cannot launch NodeClaim {claim.name}: {said.rstrip('.')}"
        return f"NodeClaim {claim.name} is not initialized yet"
    return None


# Auto Scaling shows a termination within seconds of accepting it.
GROUP_SECONDS = 300.0
# How often an unanswered launch is looked at again: twice as long each time, up to SQS's longest.
LONGEST_BACKOFF_SECONDS = 900.0


def decide_awaiting_node(
    incident: Incident, seen: Observation, policy: Policy, *actions: Action
) -> Decision:
    """Wait for a node that was asked for; call a person when none comes, and look less often."""
    failure = incident.launch_failure
    pool = (
        "a pool that its Node does not name" if incident.pool is None else f"pool {incident.pool}"
    )
    what = f"{incident.node_name} waits for a replacement in {pool} of"
    if failure is not None:
        reason = (
            f"{what} {incident.zone}, and AWS launches none since {clock(failure.since)}: "
            f"{failure.cause.rstrip('.')}. The old node is kept."
        )
        lasts = max(seen.now - failure.since, policy.tick_interval_seconds)
        backoff = min(lasts, LONGEST_BACKOFF_SECONDS)
        return stay(incident, policy, reason, *actions, Page("no_capacity", reason), delay=backoff)
    reason = f"{what} {incident.zone}{what_is_coming(incident, seen)}."
    waited = seen.now - incident.entered_at
    if waited > LATE_REPLACEMENT_SECONDS:
        page = Page("late_replacement", f"{reason.rstrip('.')}, for {waited / 60:.0f} min.")
        return stay(incident, policy, reason, *actions, page)
    return stay(incident, policy, reason, *actions)


# Auto Scaling announces a termination within half a minute; a group that is busy says no for one.
GROUP_PATIENCE_SECONDS = 120.0
# Afterwards it is asked again as often as that: somebody may have changed the group.
ASKED_AGAIN_SECONDS = 600.0


def terminate_through_group(
    incident: Incident, seen: Observation, policy: Policy, reason: str
) -> Decision:
    """Terminate the instance through its group: the hooks then hold it, and the drain follows."""
    if seen.paused:
        return stay(incident, policy, seen.paused, DropLease())
    kept = _wait_for_group(incident, seen, policy)
    if kept:
        return kept
    accepted = _accepted_at(incident, seen)
    if accepted is not None:
        late = seen.now - accepted > GROUP_SECONDS
        said = f"{reason} Its group has accepted the termination, and has it in service still."
        return stay(incident, policy, said, DropLease() if late else TakeLease())
    leased = () if incident.node_id is None else (TakeLease(),)
    # What an incident has written down it may not have asked the group for yet.
    raised = incident.surge_to is not None and has_room(incident, seen)
    if _is_out_of_service(incident, seen):
        return _tell_out_of_service(incident, seen, policy, reason)
    if seen.lifecycle_state not in {"InService", "Terminating:Retained"}:
        # Asked already; a second time would lower the desired capacity twice.
        return stay(incident, policy, f"{reason} Its hooks are about to stand.", *leased)
    return stay(
        incident,
        policy,
        f"{reason} It is terminated through its group.",
        *leased,
        TerminateInGroup(decrement=raised and not _is_below_minimum(incident)),
    )


def _accepted_at(incident: Incident, seen: Observation) -> float | None:
    """Return when the group accepted a termination that it does not show; None: it is asked.

    Asked again, it would lower its desired capacity again. A person's word has it asked once more.
    """
    asked = incident.terminate_asked_at
    said = incident.release is not None and asked is not None and incident.release.at > asked
    silent = seen.lifecycle_state == "InService" and incident.refusal is None
    return asked if silent and not said else None


def _wait_for_group(incident: Incident, seen: Observation, policy: Policy) -> Decision | None:
    """Give the lease back, call a person and look again slowly, once a group has refused for long.

    None: it has not, or is to be asked again now.
    """
    refusal = incident.refusal
    elsewhere = seen.lifecycle_state not in {"InService", "Terminating:Retained"}
    # Hooks that were announced in an earlier round hold nobody there.
    if refusal is None or (incident.is_hooked and elsewhere):
        return None
    patient = seen.now - refusal.since <= GROUP_PATIENCE_SECONDS
    asked = seen.now - (incident.terminate_asked_at or refusal.since) < ASKED_AGAIN_SECONDS
    if not elsewhere and (patient or not asked):
        return None
    reason = (
        f"Group {incident.group or 'of none'} does not terminate instance {incident.instance_id}: "
        f"{refusal.words.rstrip('.')}. {_remedy(incident, seen)}"
    )
    page = () if patient else (Page("group_refuses", reason),)
    delay = policy.tick_interval_seconds if patient else ASKED_AGAIN_SECONDS
    return stay(incident, policy, reason, *page, DropLease(), delay=delay)


def _is_out_of_service(incident: Incident, seen: Observation) -> bool:
    """Say whether no group would terminate the instance, nor was asked to: no hooks ever stand."""
    asked = incident.terminate_asked_at is not None or incident.is_hooked
    return not asked and not (seen.lifecycle_state or "").startswith(("InService", "Terminating"))


def _tell_out_of_service(
    incident: Incident, seen: Observation, policy: Policy, reason: str
) -> Decision:
    """Call a person for an idle instance out of service, unless who brings its successor ends it.

    One that a broker waits on counts as refused before (core.incidents.learn).
    """
    state = seen.lifecycle_state
    where = "in no Auto Scaling group" if state is None else f"{state} in its group"
    said = f"{reason} Instance {incident.instance_id} is {where}, so nothing here terminates it."
    if asked_for(incident, policy) or (state or "").startswith("Pending"):
        return stay(incident, policy, said)
    return stay(incident, policy, said, Page("no_group", f"{said} {_remedy(incident, seen)}"))


def _is_below_minimum(incident: Incident) -> bool:
    """Say whether the group refused to become smaller than its minimum; it may be asked not to."""
    return incident.refusal is not None and _names_minimum(incident.refusal.words)


def own_refusal(incident: Incident, instance_id: str, words: str | None) -> str | None:
    """Return why a group does not end the incident's own instance; None: it does, or never will.

    Raises Conflict where it does not end an idle one now: once its incident is over, nobody would
    come back to it. A group that wants the machine, or has it no longer, is taken at its word.
    """
    if words is None or instance_id == incident.instance_id:
        return words
    if _names_minimum(words) or "not found" in words.lower():
        return None
    raise Conflict(f"Its group does not terminate idle {instance_id}: {words}")


def _names_minimum(words: str) -> bool:
    return any(name in words.lower() for name in ("minsize", "min size"))


def _remedy(incident: Incident, seen: Observation) -> str:
    state = seen.lifecycle_state
    if state is None and incident.node_id is None:
        return "Attach it to its group again, or terminate it by hand."
    if state is None:
        return "Attach it to its group again, or move its broker by hand."
    if "Standby" in state:
        return "Put it in service again (aws autoscaling exit-standby)."
    if _is_below_minimum(incident):
        return "Lower the group's minimum size."
    return "See the group's activities; Stillwater asks again every 10 min."
