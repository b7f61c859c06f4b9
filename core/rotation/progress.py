"""Decides what a rotation run does next: one pure function, `next_step`.

    waiting    until every precondition holds, inside the maintenance window
    leaving    |
    returning  | core.rotation.following
    done

handlers.rotation.turns calls it once per turn, carries out the actions and records the run. A node
that may not go for a minute does not stop those behind it, and comes first again before the next. A
run never forces anything: what does not become true within a node's deadline stops the run, and a
person decides (resume, skip, abort). Before a node begins, the run asks how much of the clients'
error budget it has spent, and waits where nobody counts. While a broker copies its whole log again,
replication into what is out of sync is throttled to half of what an earlier run measured; the other
half is the clients'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from core.ground.window import clock
from core.ground.words import id_list, span
from core.health.pods import is_hopeless
from core.incidents.actions import Page
from core.incidents.observation import Policy
from core.incidents.replacement import causes
from core.rotation.estimate import (
    ASSUMED_REPLICATION_BYTES_PER_S,
    LEAST_BYTES,
    RunObservation,
    expecting,
)
from core.rotation.following import STUCK_SECONDS, carry
from core.rotation.parallel import add_machines_ahead, company
from core.rotation.preconditions import (
    WindowWait,
    count_out_of_sync,
    departure_order,
    objections,
    wait_of,
    why_unsettled,
)
from core.rotation.run_record import (
    ACTOR,
    Begin,
    NodeTurn,
    Options,
    Phase,
    Run,
    RunAction,
    RunState,
    RunStep,
    Throttle,
    ThrottleRefill,
    again,
    end_run,
    note_run,
    stop_for_person,
)
from core.views import ClusterView

KEY = "budget"


def counting_since(run: Run) -> float:
    """Return since when a run's spending counts: a person's word gives it as much again."""
    return max((note.at for note in run.notes if note.actor != ACTOR), default=run.started_at)


def spending_step(run: Run, turn: NodeTurn, seen: RunObservation, policy: Policy) -> RunStep | None:
    """Stop a run that spent too much, or have it wait where nobody counts; None: it goes on."""
    spent = seen.spent
    if spent is None:
        return None
    if spent.silence:
        said = f"What clients see is unknown, so node {turn.node_id} waits: {spent.silence}"
        return again(note_run(run, ACTOR, said, seen.now, quiet=True), policy)
    if spent.percent <= spent.allowed_percent:
        return None
    reason = (
        f"{spent.failed:.0f} of {spent.attempts:.0f} attempts of the probe failed within "
        f"{span(spent.seconds)}: {spent.percent:.1f} % of the clients' error budget of 30 days. "
        f"This run may spend {spent.allowed_percent:g} %; find out why, then resume it."
    )
    return stop_for_person(run, turn, reason, seen.now, KEY)


SHARE = 0.5
LEAST_BYTES_PER_S = 1024 * 1024
# Of a node's deadline: a throttle may make a broker late, and never keep it out.
PATIENCE = 0.5
# Named in one item of the ledger, which holds 400 KB; a topic's name may have 249 letters.
MOST_TOPICS = 1000


def refills(turn: NodeTurn) -> bool:
    """Say whether a broker came back with less than half of what its logs held."""
    before, after = turn.whole_bytes, turn.behind_bytes
    return before is not None and after is not None and before >= LEAST_BYTES and after < before / 2


def throttle_of(run: Run, kafka: ClusterView, now: float) -> Throttle | None:
    """Return what is to be throttled now; None: nothing."""
    brokers = tuple(t.node_id for t in _refilling(run, kafka, now))
    if not brokers or (kafka.reassigning and not run.throttled):
        # Who moves partitions throttles them in the same settings, and takes the throttle off.
        return None
    missing = {p.topic for b in brokers for p in kafka.held_by(b) if b not in p.isr}
    rate = _rate(run)
    leaders = max(len(kafka.brokers - kafka.fenced - set(brokers)), 1)
    return Throttle(
        brokers=brokers,
        topics=tuple(sorted(missing)[:MOST_TOPICS]),
        follower_bytes_per_s=max(int(rate), LEAST_BYTES_PER_S),
        leader_bytes_per_s=max(int(rate * len(brokers) / leaders), LEAST_BYTES_PER_S),
    )


def _refilling(run: Run, kafka: ClusterView, now: float) -> Iterator[NodeTurn]:
    for turn in run.open_turns:
        since = now - (turn.behind_at or now)
        behind = any(turn.node_id not in p.isr for p in kafka.held_by(turn.node_id))
        patient = since <= run.options.deadline_seconds * PATIENCE
        if refills(turn) and behind and patient and kafka.online(turn.node_id):
            yield turn


def _rate(run: Run) -> float:
    known = run.replication
    return SHARE * (ASSUMED_REPLICATION_BYTES_PER_S if known is None else known.bytes_per_s)


def add_throttle(step: RunStep, seen: RunObservation) -> RunStep:
    """Add to a step what changes about the throttle, if the reading tells."""
    run, kafka = step.run, seen.kafka
    if kafka is None or kafka.stale:
        return step
    wanted = throttle_of(run, kafka, seen.now) if run.state is RunState.RUNNING else None
    brokers = () if wanted is None else wanted.brokers
    if brokers == run.throttled:
        return step
    for turn in run.open_turns:
        if turn.node_id in brokers:
            run = run.replace_turn(replace(turn, throttled=True))
    said = _throttle_sentence(run, wanted)
    run = note_run(replace(run, throttled=brokers), ACTOR, said, seen.now)
    return replace(step, run=run, actions=(*step.actions, ThrottleRefill(wanted)))


def _throttle_sentence(run: Run, wanted: Throttle | None) -> str:
    if wanted is None:
        return "No broker refills any longer, or it took too long: replication is not throttled."
    why = "assumed" if run.replication is None else f"measured in {run.replication.run_id}"
    rate = f"{wanted.follower_bytes_per_s / 1e6:.1f} MB/s"
    return (
        f"What broker {id_list(wanted.brokers)} lost is copied again at {rate} each at most, half "
        f"of what replication brings in ({why})."
    )


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
    run = count_out_of_sync(replace(run, blind_since=None, pages=pages), seen.kafka)
    if run.open_turns:
        step = add_throttle(carry(run, seen, policy), seen)
    else:
        step = _standing(run, seen) or _pick(run, seen, policy)
    return add_machines_ahead(step, seen, policy)


def _unseeing(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Wait until something can be read again, and call a person where that lasts."""
    since = run.blind_since or seen.now
    run = note_run(replace(run, blind_since=since), ACTOR, seen.blind, seen.now, quiet=True)
    if seen.now - since <= BLIND_SECONDS or BLIND in run.pages:
        return again(run, policy)
    said = f"Run {run.id} waits since {clock(since)}. {seen.blind}"
    return again(replace(run, pages=(*run.pages, BLIND)), policy, Page(BLIND, said))


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
    ordered = departure_order(run.waiting, seen.pods, leader)
    moved = _departure_sentence(ordered[0], seen)
    if moved:
        skipped = replace(ordered[0], phase=Phase.SKIPPED, reason=moved, done_at=seen.now)
        return again(note_run(run.replace_turn(skipped), ACTOR, moved, seen.now), policy, delay=0.0)
    waits = [(turn, wait_of(turn, seen.now, run.options, policy)) for turn in ordered]
    in_time = [turn for turn, wait in waits if wait is None]
    if not in_time:
        return _wait_for_window(run, [(turn, wait) for turn, wait in waits if wait], seen.now)
    for turn, wait in waits:
        if wait is not None:
            run = run.replace_turn(replace(turn, since=None, reason=wait.sentence))
    first = in_time[0]
    withheld_for = spending_step(run, first, seen, policy)
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
        run = run.replace_turn(replace(waiting, since=None, refused_since=None))
    for turn, objection in blocked:
        run = run.replace_turn(replace(turn, since=None, reason=objection))
    if blocked:
        said = f"{_waiting(blocked)} A node that is behind goes first."
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
        run = run.replace_turn(replace(turn, since=None, reason=objection))
    first, objection = blocked[0]
    first = replace(first, since=since, reason=objection)
    run = run.replace_turn(first)
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
        run = run.replace_turn(replace(other, since=None))
    run = run.replace_turn(replace(turn, since=None, reason=wait.sentence))
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
        run = note_run(run.replace_turn(leaving), ACTOR, said, seen.now)
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
        return f"Node {turn.node_id} is no longer part of the cluster."
    if node is not None and node.instance_id not in {None, turn.instance_id}:
        return f"Node {turn.node_id} runs on {node.instance_id} already."
    return None


def _is_forgotten(node_id: int, seen: RunObservation) -> bool:
    """Say whether Kafka knows nothing of a node either; a pod alone may only be missing."""
    kafka = seen.kafka
    if kafka is None or kafka.doubts:
        return False
    return kafka.forgot(node_id) or node_id in kafka.idle_fenced


def _stuck_pods(seen: RunObservation) -> Iterator[str]:
    """Yield pods that will not start by themselves: no other node goes before they do.

    One that an operator has just made anew may have no node for a moment; Kafka waits for it.
    """
    for pod in seen.pods:
        lasts = pod.out_since is None or seen.now - pod.out_since > STUCK_SECONDS
        if is_hopeless(pod.trouble) or (pod.trouble and pod.node_name is None and lasts):
            yield (
                f"Pod {pod.name} does not start: {'; '.join(causes(pod, None))}. Nothing else is "
                f"rotated before it runs; see runbook KafkaRotationStuck."
            )
