"""Decides what a rotation run does next: one pure function, `next_step`.

    waiting    until every precondition holds, inside the maintenance window
    leaving    |
    returning  | core.rotation.following
    done

handlers.rotation.turns calls it once per turn, carries out the actions and records the run. One
node at a time, or a few of one zone that share no partition. A run never forces anything: what does
not become true within a node's deadline stops the run, and a person decides (resume, skip, abort).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from core.incidents.observation import Policy
from core.rotation.estimate import expecting
from core.rotation.following import HOPELESS, carry
from core.rotation.hours import Wait, wait_of
from core.rotation.observation import RunObservation
from core.rotation.order import in_order
from core.rotation.parallel import company
from core.rotation.preconditions import objections
from core.rotation.run_record import NodeTurn, Phase, Run, RunState, noted
from core.rotation.step import ACTOR, Begin, RunAction, RunStep, again, ended, stopped

# SQS delays a message by 15 minutes at most.
LONGEST_DELAY_SECONDS = 900.0


def next_step(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Decide the next step of a run."""
    if run.state is not RunState.RUNNING:
        return RunStep(run=run)
    if seen.blind:
        return again(noted(run, ACTOR, seen.blind, seen.now, quiet=True), policy)
    if run.in_hand:
        return carry(run, seen, policy)
    return _standing(run, seen) or _pick(run, seen, policy)


def _standing(run: Run, seen: RunObservation) -> RunStep | None:
    """End or pause a run while nobody is away: its safe point."""
    if run.abort_asked_by:
        left = len(run.waiting)
        return ended(
            run, RunState.ABORTED, f"Aborted; {left} nodes keep their instances.", seen.now
        )
    if not run.waiting:
        done = sum(t.phase is Phase.DONE for t in run.turns)
        return ended(run, RunState.DONE, f"{done} of {len(run.turns)} nodes have moved.", seen.now)
    if run.pause_asked_by:
        paused = replace(run, state=RunState.PAUSED, next_turn_at=None)
        reason = f"Paused by {run.pause_asked_by}; {len(run.waiting)} nodes are left."
        return RunStep(run=noted(paused, ACTOR, reason, seen.now))
    return None


def _pick(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Begin with whoever is first, unless something forbids it."""
    run = expecting(run, policy)
    leader = None if seen.kafka is None else seen.kafka.quorum_leader
    turn, *others = in_order(run.waiting, seen.pods, leader)
    moved = _moved(turn, seen)
    if moved:
        skipped = replace(turn, phase=Phase.SKIPPED, reason=moved, done_at=seen.now)
        return again(noted(run.with_turn(skipped), ACTOR, moved, seen.now), policy, delay=0.0)
    wait = wait_of(turn, seen.now, run.options, policy)
    if wait is not None:
        return _shut(run, turn, wait, seen.now)
    turn = replace(turn, since=turn.since or seen.now)
    stuck = next(_stuck_pods(seen), None)
    withheld = seen.kafka.doubt if seen.kafka is not None and seen.kafka.withheld else None
    if stuck or withheld:
        # Neither mends itself: a person starts the pod, or grants the right.
        key = f"stuck:{turn.node_id}" if stuck else "kafka_rights"
        return stopped(run, turn, stuck or withheld or "", seen.now, key)
    objection = next(objections(turn, seen, run.options, policy), None)
    if objection is None:
        together, left_out = company(turn, others, seen, run.options, policy)
        for said in left_out:
            run = noted(run, ACTOR, said, seen.now, quiet=True)
        return _begun(run, (turn, *together), seen)
    waited = seen.now - (turn.since or seen.now)
    if waited > run.options.deadline_seconds:
        reason = f"Node {turn.node_id} was not allowed to go for {waited:.0f} s. {objection}"
        return stopped(run, turn, reason, seen.now, f"blocked:{turn.node_id}")
    waits = run.with_turn(replace(turn, reason=objection))
    said = f"Node {turn.node_id} waits. {objection}"
    return again(noted(waits, ACTOR, said, seen.now, quiet=True), policy)


def _shut(run: Run, turn: NodeTurn, wait: Wait, now: float) -> RunStep:
    """Wait for the maintenance window; a deadline counts from then."""
    if wait.until is None:
        blocked = replace(turn, since=turn.since or now)
        return stopped(run, blocked, wait.sentence, now, f"window:{turn.node_id}")
    for other in run.waiting:
        run = run.with_turn(replace(other, since=None))
    run = run.with_turn(replace(turn, since=None, reason=wait.sentence))
    nodes = "1 node waits" if len(run.waiting) == 1 else f"{len(run.waiting)} nodes wait"
    said = f"{wait.sentence.rstrip('.')}; {nodes}."
    delay = min(wait.until - now, LONGEST_DELAY_SECONDS)
    return RunStep(run=noted(run, ACTOR, said, now, quiet=True), delay_seconds=delay)


def _begun(run: Run, turns: Iterable[NodeTurn], seen: RunObservation) -> RunStep:
    """Begin with a node, or with several that go together."""
    actions: list[RunAction] = []
    before = sum(t.phase in {Phase.DONE, Phase.SKIPPED} for t in run.turns)
    for number, turn in enumerate(turns, start=before + 1):
        what = f"{turn.role} {turn.node_id} in {turn.zone}"
        said = f"{number} of {len(run.turns)}: {what} leaves instance {turn.instance_id}."
        leaving = replace(
            turn, phase=Phase.LEAVING, since=turn.since or seen.now, began_at=seen.now, reason=said
        )
        run = noted(run.with_turn(leaving), ACTOR, said, seen.now)
        actions.append(Begin(turn.node_id))
    return RunStep(run=run, actions=tuple(actions), delay_seconds=0.0)


def _moved(turn: NodeTurn, seen: RunObservation) -> str | None:
    """Say that a node has left its instance already: AWS took it, or somebody else did."""
    pod, node = seen.pod_of(turn.node_id), seen.node_of(turn.node_id)
    if pod is None:
        return f"Node {turn.node_id} is no part of the cluster any more."
    if node is not None and node.instance_id not in {None, turn.instance_id}:
        return f"Node {turn.node_id} runs on {node.instance_id} already."
    return None


def _stuck_pods(seen: RunObservation) -> Iterator[str]:
    """Yield pods that will not start by themselves: no other node goes before they do."""
    for pod in seen.pods:
        if pod.trouble in HOPELESS or (pod.trouble and pod.node_name is None):
            yield (
                f"Pod {pod.name} does not start: {pod.trouble}. Nothing else is rotated before it "
                f"runs; see runbook KafkaRotationStuck."
            )
