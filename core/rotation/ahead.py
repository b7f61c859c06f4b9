"""Has the next nodes' machines made ready while the last ones come back.

A machine takes minutes to boot and join, a broker minutes to come back, and neither needs the
other. So once whoever is away has begun to leave, the incidents of those behind it are opened for
their replacements alone (`Incident.ahead`): their groups get room, and nothing of theirs leaves
before the run has come to them (core.incidents.planned). One node's turn ahead, or one party's: a
second would save less and keep another machine idle.

core.rotation.progress adds this to each of its steps. What a run no longer wants is called off with
it, and ends by itself where a run has died.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from core.availability.consent import breaks
from core.incidents.observation import Policy
from core.incidents.record import State
from core.rotation.hours import wait_of
from core.rotation.observation import RunObservation
from core.rotation.order import in_order
from core.rotation.parallel import go_alike
from core.rotation.preconditions import of_machines
from core.rotation.run_record import NodeTurn, Options, Phase, Run, RunState, note_run
from core.rotation.step import ACTOR, CallOff, MakeReady, RunStep
from core.views import ClusterView, id_list

_BEGUN = frozenset({State.DRAINING, State.GATING})


def machines_come_ahead(options: Options, policy: Policy) -> bool:
    """Say whether a run may have machines made ready: Karpenter's come when it disrupts a node."""
    return policy.drain_route != "asked" and not options.in_place


def with_machines_ahead(step: RunStep, seen: RunObservation, policy: Policy) -> RunStep:
    """Add to a step the machines it has made ready, or those it calls off."""
    run = step.run
    if run.state is not RunState.RUNNING or run.pause_asked_by or run.abort_asked_by:
        called = (CallOff(n) for n in seen.ahead if run.turn_of(n).phase is Phase.WAITING)
        return replace(step, actions=(*step.actions, *called))
    chosen = _next(run, seen, policy)
    if not chosen:
        return step
    ids, away = ([t.node_id for t in turns] for turns in (chosen, run.in_hand))
    comes = "comes" if len(away) == 1 else "come"
    said = f"Room for {_node_names(ids)} is made while {_node_names(away)} {comes} back."
    for turn in chosen:
        run = run.with_turn(replace(turn, ahead=True, reason=said))
    run = note_run(run, ACTOR, said, seen.now, quiet=True)
    wanted = (MakeReady(turn.node_id) for turn in chosen)
    return replace(step, run=run, actions=(*step.actions, *wanted))


def _node_names(ids: list[int]) -> str:
    return f"node{'' if len(ids) == 1 else 's'} {id_list(sorted(ids))}"


def _next(run: Run, seen: RunObservation, policy: Policy) -> list[NodeTurn]:
    """Return those whose turn follows, once nothing keeps back whoever is away; [] before."""
    begun = run.in_hand and all(_has_begun(turn, seen) for turn in run.in_hand)
    asked = seen.ahead or any(turn.ahead for turn in run.waiting)
    if not begun or asked or not machines_come_ahead(run.options, policy):
        return []
    leader = None if seen.kafka is None else seen.kafka.quorum_leader
    open_now = [
        turn for turn in run.waiting if wait_of(turn, seen.now, run.options, policy) is None
    ]
    chosen: list[NodeTurn] = []
    for turn in in_order(open_now, seen.pods, leader):
        if chosen and not _of_one_party(turn, chosen, seen.kafka, policy):
            continue
        if next(_against(turn, seen, chosen, policy), None) is None:
            chosen.append(turn)
        elif not chosen:
            break  # Who is behind it has its turn after it.
        if len(chosen) == run.options.at_once:
            break
    return chosen


def _of_one_party(
    turn: NodeTurn, others: Sequence[NodeTurn], kafka: ClusterView | None, policy: Policy
) -> bool:
    """Say whether a node goes together with others, once whoever is away now is in sync again."""
    if kafka is None or not go_alike(others[0], turn):
        return False
    together = {turn.node_id, *(other.node_id for other in others)}
    held = (replace(p, isr=p.replicas) for p in kafka.held_by(turn.node_id))
    return not any(breaks(together, p, policy.isr_margin) for p in held)


def _has_begun(turn: NodeTurn, seen: RunObservation) -> bool:
    """Say whether a node that is away has left: before, it may wait for long."""
    incident = seen.incidents.get(turn.node_id)
    leaving = incident is not None and incident.state in _BEGUN
    return turn.phase is Phase.RETURNING or leaving


def _against(
    turn: NodeTurn, seen: RunObservation, beside: list[NodeTurn], policy: Policy
) -> Iterator[str]:
    """Yield why no machine is made ready for a node now: its turn may still come in another way."""
    home = seen.node_of(turn.node_id)
    if home is None or home.instance_id != turn.instance_id:
        yield f"Node {turn.node_id} is not on instance {turn.instance_id}."
    if turn.image_id is not None or seen.claim_of(turn.instance_id) is not None:
        yield f"Node {turn.node_id} gets no machine of its group."
    yield from of_machines(turn, seen, {each.node_id for each in beside}, policy)
