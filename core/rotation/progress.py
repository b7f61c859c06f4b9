"""Decides what a rotation run does next: one pure function, `next_step`.

    waiting    until every precondition holds, inside the maintenance window
    leaving    |
    returning  | core.rotation.following
    done

handlers.rotation.turns calls it once per turn, carries out the actions and records the run. One
node at a time, or a few of one zone that share no partition. One that may not go for a minute does
not stop those behind it, and comes first again before the next. A run never forces anything: what
does not become true within a node's deadline stops the run, and a person decides (resume, skip,
abort).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from core.health.pods import is_hopeless
from core.incidents.observation import PodView, Policy
from core.incidents.unready import causes
from core.rotation.ahead import with_machines_ahead
from core.rotation.clients import for_clients
from core.rotation.estimate import expecting
from core.rotation.following import STUCK_SECONDS, carry
from core.rotation.hours import WindowWait, wait_of
from core.rotation.observation import RunObservation
from core.rotation.order import in_order
from core.rotation.parallel import company
from core.rotation.preconditions import objections
from core.rotation.refill import with_throttle
from core.rotation.run_record import NodeTurn, Options, Phase, Run, RunState, note_run
from core.rotation.settled import why_unsettled, with_counts
from core.rotation.step import (
    ACTOR,
    Begin,
    PersonCall,
    RunAction,
    RunStep,
    again,
    end_run,
    stop_for_person,
)
from core.views import id_list
from core.window import clock

# SQS delays a message by 15 minutes at most.
LONGEST_DELAY_SECONDS = 900.0
# A voter that lags or a group that settles is well again within seconds, and the order (controllers
# before brokers) is worth those.
OVERTAKEN_AFTER_SECONDS = 60.0
# As for an incident: an API server that is upgraded is away for minutes.
BLIND, BLIND_SECONDS = "blind", 900.0


def next_step(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Decide the next step of a run."""
    if run.state is not RunState.RUNNING:
        return RunStep(run=run)
    if seen.blind:
        return _unseeing(run, seen, policy)
    pages = tuple(key for key in run.pages if key != BLIND)
    run = with_counts(replace(run, blind_since=None, pages=pages), seen.kafka)
    if run.in_hand:
        step = with_throttle(carry(run, seen, policy), seen)
    else:
        step = _standing(run, seen) or _pick(run, seen, policy)
    return with_machines_ahead(step, seen, policy)


def _unseeing(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Wait until something can be read again, and call a person where that lasts."""
    since = run.blind_since or seen.now
    run = note_run(replace(run, blind_since=since), ACTOR, seen.blind, seen.now, quiet=True)
    if seen.now - since <= BLIND_SECONDS or BLIND in run.pages:
        return again(run, policy)
    said = f"Run {run.id} waits since {clock(since)}. {seen.blind}"
    return again(replace(run, pages=(*run.pages, BLIND)), policy, PersonCall(BLIND, said))


def _standing(run: Run, seen: RunObservation) -> RunStep | None:
    """End or pause a run while nobody is away: its safe point."""
    if run.abort_asked_by:
        left = len(run.waiting)
        return end_run(
            run, RunState.ABORTED, f"Aborted; {left} nodes keep their instances.", seen.now
        )
    if not run.waiting:
        done = sum(t.phase is Phase.DONE for t in run.turns)
        return end_run(
            run, RunState.DONE, f"{done} of {len(run.turns)} nodes have moved.", seen.now
        )
    if run.pause_asked_by:
        paused = replace(run, state=RunState.PAUSED, next_turn_at=None)
        reason = f"Paused by {run.pause_asked_by}; {len(run.waiting)} nodes are left."
        return RunStep(run=note_run(paused, ACTOR, reason, seen.now))
    return None


def _pick(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Begin with the first of the order who may go; who may not is asked again before the next."""
    run = expecting(run, policy)
    leader = None if seen.kafka is None else seen.kafka.quorum_leader
    ordered = in_order(run.waiting, seen.pods, leader)
    moved = _departure_sentence(ordered[0], seen)
    if moved:
        skipped = replace(ordered[0], phase=Phase.SKIPPED, reason=moved, done_at=seen.now)
        return again(note_run(run.with_turn(skipped), ACTOR, moved, seen.now), policy, delay=0.0)
    waits = [(turn, wait_of(turn, seen.now, run.options, policy)) for turn in ordered]
    in_time = [turn for turn, wait in waits if wait is None]
    if not in_time:
        return _wait_for_window(run, [(turn, wait) for turn, wait in waits if wait], seen.now)
    for turn, wait in waits:
        if wait is not None:
            run = run.with_turn(replace(turn, since=None, reason=wait.sentence))
    first = in_time[0]
    withheld_for = for_clients(run, first, seen, policy)
    if withheld_for is not None:
        return withheld_for
    stuck = next(_stuck_pods(seen), None)
    withheld = seen.kafka.doubt if seen.kafka is not None and seen.kafka.withheld else None
    if stuck or withheld:
        # Neither mends itself: a person starts the pod, or grants the right.
        first = replace(first, since=first.since or seen.now)
        key = f"stuck:{first.node_id}" if stuck else "kafka_rights"
        return stop_for_person(run, first, stuck or withheld or "", seen.now, key)
    blocked: list[tuple[NodeTurn, str]] = []
    for place, turn in enumerate(in_time, start=1):
        if not all(_overtaken(each, seen.now) for each, _ in blocked):
            break
        objection = next(_against(turn, seen, run.options, policy), why_unsettled(run))
        if objection is None:
            together, left_out = company(turn, in_time[place:], seen, run.options, policy)
            run = _passed_over(run, blocked, left_out, seen.now)
            return _begin(run, (turn, *together), seen)
        since = turn.refused_since or seen.now
        blocked.append((replace(turn, refused_since=since), objection))
    return _nobody(run, blocked, seen, policy)


def _overtaken(turn: NodeTurn, now: float) -> bool:
    """Say whether a node was refused for so long that those behind it need not wait any more."""
    return now - (turn.refused_since or now) >= OVERTAKEN_AFTER_SECONDS


def _against(
    turn: NodeTurn, seen: RunObservation, options: Options, policy: Policy
) -> Iterator[str]:
    moved = _departure_sentence(turn, seen)
    if moved:
        yield moved  # Taken off the run once it is its turn.
    if options.at_once != 1 and not turn.votes and seen.leaders_owed:
        # Counted as they are now, the others would lead too much, and a party be cut for it.
        owed = id_list(sorted(seen.leaders_owed))
        yield f"Brokers that are back ({owed}) are still to lead again what they led before."
    yield from objections(turn, seen, options, policy)


def _passed_over(
    run: Run, blocked: Sequence[tuple[NodeTurn, str]], left_out: Iterable[str], now: float
) -> Run:
    """Note who is left behind and why; nobody's deadline counts while somebody else goes."""
    for waiting in run.waiting:
        run = run.with_turn(replace(waiting, since=None, refused_since=None))
    for turn, objection in blocked:
        run = run.with_turn(replace(turn, since=None, reason=objection))
    if blocked:
        said = f"{_waiting(blocked)} Whoever is behind goes first."
        run = note_run(run, ACTOR, said, now, quiet=True)
    for said in left_out:
        run = note_run(run, ACTOR, said, now, quiet=True)
    return run


def _nobody(
    run: Run, blocked: Sequence[tuple[NodeTurn, str]], seen: RunObservation, policy: Policy
) -> RunStep:
    """Wait, for a node's deadline at most: it counts at the first of the order."""
    since = min((t.since for t, _ in blocked if t.since is not None), default=seen.now)
    for turn, objection in blocked:
        run = run.with_turn(replace(turn, since=None, reason=objection))
    first, objection = blocked[0]
    first = replace(first, since=since, reason=objection)
    run = run.with_turn(first)
    waited = seen.now - since
    if waited > run.options.deadline_seconds:
        rest = f" {_waiting(blocked[1:])}" if blocked[1:] else ""
        reason = f"Node {first.node_id} was not allowed to go for {waited:.0f} s. {objection}{rest}"
        return stop_for_person(run, first, reason, seen.now, f"blocked:{first.node_id}")
    return again(note_run(run, ACTOR, _waiting(blocked), seen.now, quiet=True), policy)


def _waiting(blocked: Iterable[tuple[NodeTurn, str]]) -> str:
    """Say who waits for what, once where several wait for the same."""
    who: dict[str, list[int]] = {}
    for turn, objection in blocked:
        who.setdefault(objection, []).append(turn.node_id)
    return " ".join(
        f"Node{'' if len(ids) == 1 else 's'} {id_list(ids)} wait{'s' if len(ids) == 1 else ''}. "
        f"{objection}"
        for objection, ids in who.items()
    )


def _wait_for_window(run: Run, waits: Sequence[tuple[NodeTurn, WindowWait]], now: float) -> RunStep:
    """Wait for the maintenance window of whoever is next; a deadline counts from then."""
    turn, wait = next((each for each in waits if each[1].until is not None), waits[0])
    if wait.until is None:
        blocked = replace(turn, since=turn.since or now)
        return stop_for_person(run, blocked, wait.sentence, now, f"window:{turn.node_id}")
    until = min(each.until for _, each in waits if each.until is not None)
    for other in run.waiting:
        run = run.with_turn(replace(other, since=None))
    run = run.with_turn(replace(turn, since=None, reason=wait.sentence))
    nodes = "1 node waits" if len(run.waiting) == 1 else f"{len(run.waiting)} nodes wait"
    said = f"{wait.sentence.rstrip('.')}; {nodes}."
    delay = min(until - now, LONGEST_DELAY_SECONDS)
    return RunStep(run=note_run(run, ACTOR, said, now, quiet=True), delay_seconds=delay)


def _begin(run: Run, turns: Sequence[NodeTurn], seen: RunObservation) -> RunStep:
    """Begin with a node, or with several that go together."""
    actions: list[RunAction] = []
    before = sum(t.phase in {Phase.DONE, Phase.SKIPPED} for t in run.turns)
    together = tuple(turn.node_id for turn in turns) if len(turns) > 1 else ()
    for number, turn in enumerate(turns, start=before + 1):
        what = f"{turn.role} {turn.node_id} in {turn.zone}"
        said = f"{number} of {len(run.turns)}: {what} {_begins(turn)}."
        leaving = replace(
            turn,
            phase=Phase.LEAVING,
            since=turn.since or seen.now,
            refused_since=None,
            began_at=seen.now,
            reason=said,
            party=together,
            # What was made ready may have been called off since.
            ahead=seen.has_room(turn.node_id),
        )
        run = note_run(run.with_turn(leaving), ACTOR, said, seen.now)
        actions.append(Begin(turn.node_id))
    return RunStep(run=run, actions=tuple(actions), delay_seconds=0.0)


def _begins(turn: NodeTurn) -> str:
    if turn.image_id is None:
        return f"leaves instance {turn.instance_id}"
    return f"gets root volume {turn.image_id} on instance {turn.instance_id}"


def _departure_sentence(turn: NodeTurn, seen: RunObservation) -> str | None:
    """Say that a node has left its instance already: AWS took it, or somebody else did."""
    pod, node = seen.pod_of(turn.node_id), seen.node_of(turn.node_id)
    if pod is None and _is_forgotten(turn.node_id, seen):
        return f"Node {turn.node_id} is no part of the cluster any more."
    if node is not None and node.instance_id not in {None, turn.instance_id}:
        return f"Node {turn.node_id} runs on {node.instance_id} already."
    return None


def _is_forgotten(node_id: int, seen: RunObservation) -> bool:
    """Say whether Kafka knows nothing of a node either; a pod alone may only be missing."""
    kafka = seen.kafka
    if kafka is None or kafka.doubts:
        return False
    return kafka.forgot(node_id) or node_id in kafka.idle_fenced


def _lasts(pod: PodView, now: float) -> bool:
    return pod.out_since is None or now - pod.out_since > STUCK_SECONDS


def _stuck_pods(seen: RunObservation) -> Iterator[str]:
    """Yield pods that will not start by themselves: no other node goes before they do.

    One that an operator has just made anew may have no node for a moment; Kafka waits for it.
    """
    for pod in seen.pods:
        homeless = pod.trouble and pod.node_name is None
        if is_hopeless(pod.trouble) or (homeless and _lasts(pod, seen.now)):
            yield (
                f"Pod {pod.name} does not start: {'; '.join(causes(pod, None))}. Nothing else is "
                f"rotated before it runs; see runbook KafkaRotationStuck."
            )
