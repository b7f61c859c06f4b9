"""Decides what a rotation run does next: one pure function, `next_step`.

    waiting    until every precondition holds
    leaving    its incident is open: replacement, consent, drain, gate
    returning  its instance was let go; until every post-condition holds
    done

handlers.rotations calls it once per turn, carries out the actions and records the run. One node at
a time, or a few of one zone that share no partition. A run never forces anything: what does not
become true within a node's deadline stops the run, and a person decides (resume, skip, abort).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from core.decisions import hooked
from core.incident_record import Incident, State
from core.observations import Policy
from core.rotation.order import in_order
from core.rotation.pace import paced
from core.rotation.parallel import company
from core.rotation.preconditions import RunObservation, objections
from core.rotation.presence import is_back, returned
from core.rotation.run_record import NodeTurn, Phase, Run, RunState, noted
from core.rotation.views import ClusterView, PartitionView
from core.window import Start, start_of

ACTOR = "rotation"
# Kubernetes' words for what does not get better by waiting.
HOPELESS = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
    }
)
# A pod without a node, or whose volume is still attached elsewhere, may be on its way for minutes
# (Strimzi's operation timeout).
STUCK_SECONDS = 300.0
# SQS delays a message by 15 minutes at most.
LONGEST_DELAY_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Begin:
    """Open the incident by which a node's instance leaves."""

    node_id: int


@dataclass(frozen=True, slots=True)
class CallOff:
    """Tell a node's incident that its instance stays, while nothing of it has left."""

    node_id: int


@dataclass(frozen=True, slots=True)
class Elect:
    """Have a broker lead again what it is preferred for."""

    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Call a person; once per key until the run is resumed."""

    key: str
    reason: str


RunAction = Begin | CallOff | Elect | Call


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """What a run is after this turn, what is to be done for it, and when to look again."""

    run: Run
    actions: tuple[RunAction, ...] = ()
    delay_seconds: float | None = None  # None: nothing carries it on but a person


def next_step(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Decide the next step of a run."""
    if run.state is not RunState.RUNNING:
        return RunStep(run=run)
    if seen.blind:
        return _again(noted(run, ACTOR, seen.blind, seen.now, quiet=True), policy)
    if run.in_hand:
        return _carry(run, seen, policy)
    return _standing(run, seen) or _pick(run, seen, policy)


def _again(run: Run, policy: Policy, *actions: RunAction, delay: float | None = None) -> RunStep:
    delay = policy.tick_interval_seconds if delay is None else delay
    return RunStep(run=run, actions=actions, delay_seconds=delay)


def _standing(run: Run, seen: RunObservation) -> RunStep | None:
    """End or pause a run while nobody is away: its safe point."""
    if run.abort_asked_by:
        left = len(run.waiting)
        return _ended(run, RunState.ABORTED, f"Aborted; {left} nodes keep their instances.", seen)
    if not run.waiting:
        done = sum(t.phase is Phase.DONE for t in run.turns)
        return _ended(run, RunState.DONE, f"{done} of {len(run.turns)} nodes have moved.", seen)
    if run.pause_asked_by:
        paused = replace(run, state=RunState.PAUSED, next_turn_at=None)
        reason = f"Paused by {run.pause_asked_by}; {len(run.waiting)} nodes are left."
        return RunStep(run=noted(paused, ACTOR, reason, seen.now))
    return None


def _ended(run: Run, state: RunState, reason: str, seen: RunObservation) -> RunStep:
    over = replace(run, state=state, ended_at=seen.now, next_turn_at=None)
    return RunStep(run=noted(over, ACTOR, reason, seen.now))


def _stopped(run: Run, turn: NodeTurn, reason: str, now: float, key: str) -> RunStep:
    """Stop for a person, who resumes, skips or aborts."""
    run = run.with_turn(replace(turn, reason=reason))
    stopped = replace(run, state=RunState.STOPPED, next_turn_at=None)
    actions = () if key in run.pages else (Call(key, f"Run {run.id} stopped. {reason}"),)
    stopped = replace(stopped, pages=(*run.pages, key))
    return RunStep(run=noted(stopped, ACTOR, reason, now), actions=actions)


def _pick(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Begin with whoever is first, unless something forbids it."""
    start = _start(run, seen, policy)
    if start.at > seen.now:
        return _shut(run, start, seen)
    leader = None if seen.kafka is None else seen.kafka.quorum_leader
    turn, *others = in_order(run.waiting, seen.pods, leader)
    moved = _moved(turn, seen)
    if moved:
        skipped = replace(turn, phase=Phase.SKIPPED, reason=moved, done_at=seen.now)
        return _again(noted(run.with_turn(skipped), ACTOR, moved, seen.now), policy, delay=0.0)
    turn = replace(turn, since=turn.since or seen.now)
    stuck = next(_stuck_pods(seen), None)
    if stuck:
        return _stopped(run, turn, stuck, seen.now, f"stuck:{turn.node_id}")
    objection = next(objections(turn, seen, run.options, policy), None)
    if objection is None:
        together, left_out = company(turn, others, seen, run.options, policy)
        for said in left_out:
            run = noted(run, ACTOR, said, seen.now, quiet=True)
        return _begun(run, (turn, *together), seen)
    waited = seen.now - (turn.since or seen.now)
    if waited > run.options.deadline_seconds:
        reason = f"Node {turn.node_id} was not allowed to go for {waited:.0f} s. {objection}"
        return _stopped(run, turn, reason, seen.now, f"blocked:{turn.node_id}")
    waits = run.with_turn(replace(turn, reason=objection))
    said = f"Node {turn.node_id} waits. {objection}"
    return _again(noted(waits, ACTOR, said, seen.now, quiet=True), policy)


def _start(run: Run, seen: RunObservation, policy: Policy) -> Start:
    """Say when a run may begin with its next node."""
    window = None if run.options.any_time else policy.maintenance
    return start_of(None, seen.now, window, margin_seconds=policy.planned_margin_seconds)


def _shut(run: Run, start: Start, seen: RunObservation) -> RunStep:
    """Wait for the maintenance window; a deadline counts from then."""
    waiting = (replace(turn, since=None) for turn in run.waiting)
    for turn in waiting:
        run = run.with_turn(turn)
    reason = f"{start.reason[0].upper()}{start.reason[1:]}; {len(run.waiting)} nodes wait for it."
    delay = min(start.at - seen.now, LONGEST_DELAY_SECONDS)
    return RunStep(run=noted(run, ACTOR, reason, seen.now, quiet=True), delay_seconds=delay)


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


def _carry(run: Run, seen: RunObservation, policy: Policy) -> RunStep:
    """Follow the nodes that are away."""
    actions: list[RunAction] = []
    for turn in run.in_hand:
        step = _follow(run, paced(turn, seen), seen, policy)
        run, actions = step.run, [*actions, *step.actions]
        if run.state is not RunState.RUNNING:
            return replace(step, actions=tuple(actions))
    done = not run.in_hand
    return _again(run, policy, *actions, delay=0.0 if done else None)


def _follow(run: Run, turn: NodeTurn, seen: RunObservation, policy: Policy) -> RunStep:
    incident = seen.incidents.get(turn.node_id)
    if incident is None:
        # Dying between this record and the incident leaves a node that nobody has begun with.
        step = _within_deadline(run, turn, turn.reason, seen.now)
        return replace(step, actions=(*step.actions, Begin(turn.node_id)))
    turn = replace(turn, incident_id=incident.id)
    if turn.phase is Phase.LEAVING:
        return _leaving(run, turn, incident, seen)
    return _returning(run, turn, seen, policy)


def _leaving(run: Run, turn: NodeTurn, incident: Incident, seen: RunObservation) -> RunStep:
    now = seen.now
    if incident.state is State.RELEASED:
        back = replace(
            turn,
            phase=Phase.RETURNING,
            released_at=incident.entered_at,
            back_since=incident.broker_back_at,
            stuck_since=None,
            reason=incident.reason,
        )
        return RunStep(run=run.with_turn(back))
    if not incident.open:
        called_off = incident.called_off and incident.state is State.CANCELLED
        if called_off and run.abort_asked_by:
            waits = replace(turn, phase=Phase.WAITING, reason="Called off.", since=None)
            return RunStep(run=run.with_turn(waits))
        failed = replace(turn, phase=Phase.FAILED)
        reason = f"Incident {incident.id} ended {incident.state.value}: {incident.reason}"
        return _stopped(run, failed, reason, now, f"failed:{turn.node_id}:{turn.attempt}")
    if run.abort_asked_by and not hooked(incident) and not incident.called_off:
        return RunStep(run=run.with_turn(turn), actions=(CallOff(turn.node_id),))
    stuck = _stuck(turn, seen, given=incident.state is State.GATING)
    turn = stuck[0]
    if stuck[1]:
        return _stopped(run, turn, stuck[1], now, f"stuck:{turn.node_id}")
    return _within_deadline(run, turn, incident.reason, now)


def _stuck(turn: NodeTurn, seen: RunObservation, *, given: bool) -> tuple[NodeTurn, str]:
    """Say whether a pod on its way does not start, and remember since when it looks so."""
    pod = seen.pod_of(turn.node_id)
    if not given or pod is None or not pod.trouble:
        return replace(turn, stuck_since=None), ""
    since = turn.stuck_since or seen.now
    turn = replace(turn, stuck_since=since)
    if pod.trouble not in HOPELESS and seen.now - since < STUCK_SECONDS:
        return turn, ""
    return turn, f"Pod {pod.name} does not start: {pod.trouble} for {seen.now - since:.0f} s."


def _within_deadline(run: Run, turn: NodeTurn, reason: str, now: float) -> RunStep:
    since = turn.since or turn.began_at or now
    run = run.with_turn(replace(turn, reason=reason))
    if now - since <= run.options.deadline_seconds:
        return RunStep(run=run)
    late = (
        f"Node {turn.node_id} is not back {now - since:.0f} s after its turn began; the deadline "
        f"is {run.options.deadline_seconds:.0f} s. {reason}"
    )
    return _stopped(run, turn, late, now, f"deadline:{turn.node_id}")


def _returning(run: Run, turn: NodeTurn, seen: RunObservation, policy: Policy) -> RunStep:
    """Hold the run until the node is whole again: Ready with its gates, in sync, leading."""
    if seen.kafka is not None and not returned(turn.node_id, seen.kafka).allowed:
        turn = replace(turn, back_since=None)
    elif seen.kafka is not None and turn.back_since is None:
        turn = replace(turn, back_since=seen.now)
    missing = next(_missing(turn, seen, policy), None)
    if missing:
        return _within_deadline(run, turn, missing, seen.now)
    idle = () if seen.kafka is None else _idle_preferences(turn.node_id, seen.kafka)
    if idle:
        reason = f"Broker {turn.node_id} is to lead {len(idle)} partitions again."
        step = _within_deadline(run, turn, reason, seen.now)
        return replace(step, actions=(*step.actions, Elect(idle)))
    took = seen.now - (turn.began_at or seen.now)
    node = seen.node_of(turn.node_id)
    where = "" if node is None else f" on {node.instance_id}"
    said = f"{turn.role.capitalize()} {turn.node_id} is back{where} after {took:.0f} s."
    done = replace(turn, phase=Phase.DONE, done_at=seen.now, reason=said)
    return RunStep(run=noted(run.with_turn(done), ACTOR, said, seen.now))


def _missing(turn: NodeTurn, seen: RunObservation, policy: Policy) -> Iterator[str]:
    pod, node = seen.pod_of(turn.node_id), seen.node_of(turn.node_id)
    if pod is None or not pod.ready:
        # Ready includes the load balancer's readiness gates.
        yield f"Pod {turn.pod} is not Ready, or a readiness gate of it is not."
    elif node is None or not node.ready:
        yield f"The node of pod {turn.pod} is not Ready."
    if seen.kafka is None:
        yield seen.kafka_silence or "Kafka was not asked."
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


def _idle_preferences(node_id: int, kafka: ClusterView) -> tuple[tuple[str, int], ...]:
    """Return what a broker in sync is preferred for and does not lead."""

    def idle(partition: PartitionView) -> bool:
        preferred = partition.replicas[:1] == (node_id,)
        return preferred and partition.leader != node_id and node_id in partition.isr

    return tuple((p.topic, p.partition) for p in kafka.partitions if idle(p))
