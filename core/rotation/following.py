"""Follows the nodes that are away: leaving, returning, done, or late.

    leaving    its incident is open: replacement, consent, drain, gate
    returning  its instance was let go; until every post-condition holds
    done

core.rotation.progress asks `carry` on every turn on which the run has nodes in hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from core.availability.consent import check_returned, is_back, outsider_missing
from core.events import Kind
from core.ground.words import id_list
from core.health.pods import is_hopeless
from core.incidents.actions import Page
from core.incidents.observation import Policy
from core.incidents.record import Incident, State
from core.incidents.replacement import causes, joined
from core.rotation.estimate import RunObservation, measure_pace
from core.rotation.run_record import (
    ACTOR,
    Begin,
    CallOff,
    Elect,
    NodeTurn,
    Phase,
    Run,
    RunAction,
    RunState,
    RunStep,
    again,
    note_run,
    stop_for_person,
)
from core.views import ClusterView, PartitionView

# A pod without a node, or whose volume is still attached elsewhere, may be on its way for minutes
# (Strimzi's operation timeout).
STUCK_SECONDS = 300.0
# A thousand partitions are led again within six turns.
MORE_TIMES = 4


def carry(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Follow the nodes that are away; a party's absence bears no other replica's."""
    broken_off = _broken_off(run, seen)
    if broken_off:
        return broken_off
    actions: list[RunAction] = []
    for turn in run.open_turns:
        step = _follow(run, measure_pace(turn, seen), seen, policy)
        run, actions = step.run, [*actions, *step.actions]
        if run.state is not RunState.RUNNING:
            # A run that stops takes nothing further, and its call waits for nothing that may fail.
            told = (each for each in actions if isinstance(each, Page | CallOff))
            return replace(step, actions=tuple(told))
    done = not run.open_turns
    return again(run, policy, *actions, delay=0.0 if done else None)


def _broken_off(run: Run, seen: RunObservation) -> RunStep | None:
    """Stop a run at once when a replica outside of its party has left an ISR.

    There was none when the party began (core.rotation.parallel). Who has not left yet is called
    off; who has comes back by its own incident, whatever becomes of the run. Once all are back they
    have given the lease back, too, and whoever leaves next is beside nobody.
    """
    party = frozenset(node_id for turn in run.open_turns for node_id in turn.party)
    if not party or run.abort_asked_by or seen.kafka is None or seen.kafka.stale:
        return None
    if all(_whole_again(turn, seen, seen.kafka) for turn in run.open_turns):
        return None
    missing = outsider_missing(party, seen.kafka)
    if missing is None:
        return None
    stays = [t.node_id for t in run.open_turns if _is_unhooked(t, seen)]
    comes = [t.node_id for t in run.open_turns if t.node_id not in stays]
    said = f"{missing} No other broker of {run.open_turns[0].zone} leaves."
    if stays:
        said += f" Called off, and kept: {id_list(stays)}."
    if comes:
        said += f" Coming back by their own incidents: {id_list(comes)}."
    step = stop_for_person(run, run.open_turns[0], said, seen.now, "outsider")
    return replace(step, actions=(*map(CallOff, stays), *step.actions))


def _whole_again(turn: NodeTurn, seen: RunObservation, kafka: ClusterView) -> bool:
    """Say whether a node's incident is over and its broker in every ISR."""
    incident = seen.incidents.get(turn.node_id)
    over = incident is not None and not incident.open
    return over and check_returned(turn.node_id, kafka).allowed


def _is_unhooked(turn: NodeTurn, seen: RunObservation) -> bool:
    incident = seen.incidents.get(turn.node_id)
    return incident is not None and incident.open and not _is_leaving(incident)


def _is_leaving(incident: Incident) -> bool:
    """Say whether a node has left, or its instance stands in hooks."""
    drained = incident.state in {State.DRAINING, State.GATING}
    return incident.is_hooked or (incident.in_place is not None and drained)


def _follow(run: Run, turn: NodeTurn, seen: RunObservation, policy: Policy) -> RunStep:
    incident = seen.incidents.get(turn.node_id)
    if incident is None:
        # Dying between this record and the incident leaves a node that nobody has begun with.
        step = _wait_or_stop(run, turn, turn.reason, seen.now)
        return replace(step, actions=(*step.actions, Begin(turn.node_id)))
    found = incident.replacement
    turn = replace(
        turn, incident_id=incident.id, machine_at=None if found is None else found.ready_at
    )
    if turn.phase is Phase.LEAVING:
        return _leaving(run, turn, incident, seen)
    return _returning(run, turn, seen, policy)


def _leaving(run: Run, turn: NodeTurn, incident: Incident, seen: RunObservation) -> RunStep:
    now = seen.now
    if not incident.open:
        return _over(run, turn, incident, now)
    if incident.kind is Kind.SCHEDULED_CHANGE:
        # Called off, and AWS takes the instance all the same: its schedule has the incident now.
        return RunStep(run=run.replace_turn(_not_begun(turn)))
    if run.abort_asked_by and not _is_leaving(incident) and not incident.called_off:
        return RunStep(run=run.replace_turn(turn), actions=(CallOff(turn.node_id),))
    # Its pod waits for the boot of its own machine, which core.incidents.in_place watches.
    place = incident.in_place
    boots = place is not None and place.returned_at is None
    drained = incident.state is State.GATING and not boots
    turn, stuck = _stuck_since(turn, seen, drained=drained)
    if stuck:
        return stop_for_person(run, turn, stuck, now, f"stuck:{turn.node_id}")
    return _wait_or_stop(run, turn, incident.reason, now)


def _over(run: Run, turn: NodeTurn, incident: Incident, now: float) -> RunStep:
    """Go on with a node whose incident has ended; in another way than it was meant to, stop."""
    place = incident.in_place
    stayed = place is not None and incident.state is State.RIDDEN_THROUGH
    if place is not None and stayed and not place.done:
        return _fall_back_to_replacement(run, turn, place.refusal or incident.reason, now)
    if incident.state is State.RELEASED or stayed:
        back = replace(
            turn,
            phase=Phase.RETURNING,
            released_at=incident.entered_at,
            back_since=incident.broker_back_at,
            stuck_since=None,
            reason=incident.reason,
        )
        return RunStep(run=run.replace_turn(back))
    if incident.called_off and incident.state is State.CANCELLED:
        return RunStep(run=run.replace_turn(_not_begun(turn)))
    failed = replace(turn, phase=Phase.FAILED)
    reason = f"Incident {incident.id} ended {incident.state.value}: {incident.reason}"
    return stop_for_person(run, failed, reason, now, f"failed:{turn.node_id}:{turn.attempt}")


def _not_begun(turn: NodeTurn) -> NodeTurn:
    """Return a turn that the run has called off itself: its next incident is another one."""
    return replace(
        turn,
        phase=Phase.WAITING,
        attempt=turn.attempt + 1,
        incident_id=None,
        reason="Called off.",
        since=None,
    )


def _fall_back_to_replacement(run: Run, turn: NodeTurn, why: str, now: float) -> RunStep:
    """Have a node that is back with its old root volume get another instance, at its next turn."""
    said = f"Node {turn.node_id} gets another instance, for its root volume was not replaced: {why}"
    waits = replace(
        turn,
        phase=Phase.WAITING,
        attempt=turn.attempt + 1,
        incident_id=None,
        image_id=None,
        by_replacement=why,
        reason=said,
        since=None,
        began_at=None,
    )
    return RunStep(run=note_run(run.replace_turn(waits), ACTOR, said, now))


def _stuck_since(turn: NodeTurn, seen: RunObservation, *, drained: bool) -> tuple[NodeTurn, str]:
    """Say whether a pod on its way does not start, and remember since when it looks so."""
    pod = seen.pod_of(turn.node_id)
    if not drained or pod is None or not pod.trouble:
        return replace(turn, stuck_since=None), ""
    since = turn.stuck_since or seen.now
    turn = replace(turn, stuck_since=since)
    if not is_hopeless(pod.trouble) and seen.now - since < STUCK_SECONDS:
        return turn, ""
    why = "; ".join(causes(pod, seen.node_of(pod.node_id)))
    return turn, f"Pod {pod.name} does not start: {why}, for {seen.now - since:.0f} s."


def _wait_or_stop(run: Run, turn: NodeTurn, reason: str, now: float) -> RunStep:
    since = turn.since or turn.began_at or now
    run = run.replace_turn(replace(turn, reason=reason))
    if now - since <= run.options.deadline_seconds:
        return RunStep(run=run)
    late = (
        f"Node {turn.node_id} is not back {now - since:.0f} s after its turn began; the deadline "
        f"is {run.options.deadline_seconds:.0f} s. {reason}"
    )
    return stop_for_person(run, turn, late, now, f"deadline:{turn.node_id}")


def _returning(run: Run, turn: NodeTurn, seen: RunObservation, policy: Policy) -> RunStep:
    """Hold the run until the node is whole again: Ready with its gates, in sync, leading."""
    if seen.kafka is not None and not check_returned(turn.node_id, seen.kafka).allowed:
        turn = replace(turn, back_since=None)
    elif seen.kafka is not None and turn.back_since is None:
        turn = replace(turn, back_since=seen.now)
    missing = next(_missing(turn, seen, policy), None)
    if missing:
        return _wait_or_stop(run, turn, missing, seen.now)
    idle = () if seen.kafka is None else _idle_preferences(turn.node_id, seen.kafka)
    if seen.kafka is not None and idle:
        reason = f"Broker {turn.node_id} is to lead {len(idle)} partitions again."
        step = _wait_or_stop(run, turn, reason, seen.now)
        next_ = idle[: _led_next(turn.node_id, seen.kafka)]
        return replace(step, actions=(*step.actions, Elect(next_)))
    took = seen.now - (turn.began_at or seen.now)
    node = seen.node_of(turn.node_id)
    where = "" if node is None else f" on {node.instance_id}"
    said = f"{turn.role.capitalize()} {turn.node_id} is back{where} after {took:.0f} s."
    done = replace(turn, phase=Phase.DONE, done_at=seen.now, reason=said)
    return RunStep(run=note_run(run.replace_turn(done), ACTOR, said, seen.now))


def _missing(turn: NodeTurn, seen: RunObservation, policy: Policy) -> Iterator[str]:
    pod, node = seen.pod_of(turn.node_id), seen.node_of(turn.node_id)
    if pod is None or not pod.ready:
        # Ready includes the load balancer's readiness gates.
        why = "" if pod is None else joined(causes(pod, node))
        yield f"Pod {turn.pod} is not Ready, or a readiness gate of it is not{why}."
    elif node is None or not node.ready:
        yield f"The node of pod {turn.pod} is not Ready."
    if seen.kafka is None:
        yield seen.kafka_silence
        return
    back = is_back(
        turn.node_id,
        seen.kafka,
        back_since=turn.back_since,
        now=seen.now,
        hold_seconds=policy.post_condition_hold_seconds,
    )
    if not back.allowed:
        yield back.reason


def _led_next(node_id: int, kafka: ClusterView) -> int:
    """Return how many partitions more a broker that has just started is to lead.

    Its first requests run in Java that is not compiled yet: one partition's producers meet them,
    and then four times as many as it leads.
    """
    return max(1, MORE_TIMES * sum(p.leader == node_id for p in kafka.partitions))


def _idle_preferences(node_id: int, kafka: ClusterView) -> tuple[tuple[str, int], ...]:
    """Return what a broker in sync is preferred for and does not lead."""

    def idle(partition: PartitionView) -> bool:
        preferred = partition.replicas[:1] == (node_id,)
        return preferred and partition.leader != node_id and node_id in partition.isr

    return tuple((p.topic, p.partition) for p in kafka.partitions if idle(p))
