"""Decides how fast brokers that lost their disks copy it all again, beside those who produce.

A broker that comes back on its volume copies what it missed, and is left alone. One that comes back
with less than half of what its logs held when it left refills: while it does, replication into what
is out of sync is throttled, and nothing else, for Kafka throttles no replica in sync.

The rate is half of what replication was measured to bring in beside the clients of an earlier run
(core.rotation.pace); the other half stays theirs. Where none was measured, half of what is assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from core.rotation.estimate import ASSUMED_REPLICATION_BYTES_PER_S
from core.rotation.observation import RunObservation
from core.rotation.pace import LEAST_BYTES
from core.rotation.run_record import NodeTurn, Run, RunState, note_run
from core.rotation.step import ACTOR, RunStep, Throttle, ThrottleRefill
from core.views import ClusterView, id_list

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


def throttle_of(run: Run, seen: RunObservation) -> Throttle | None:
    """Return what is to be throttled now; None: nothing."""
    kafka = seen.kafka
    if kafka is None or kafka.stale:
        return None
    brokers = tuple(t.node_id for t in _refilling(run, kafka, seen.now))
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
    for turn in run.in_hand:
        since = now - (turn.behind_at or now)
        behind = any(turn.node_id not in p.isr for p in kafka.held_by(turn.node_id))
        patient = since <= run.options.deadline_seconds * PATIENCE
        if refills(turn) and behind and patient and kafka.online(turn.node_id):
            yield turn


def _rate(run: Run) -> float:
    known = run.replication
    return SHARE * (ASSUMED_REPLICATION_BYTES_PER_S if known is None else known.bytes_per_s)


def with_throttle(step: RunStep, seen: RunObservation) -> RunStep:
    """Add to a step what changes about the throttle, if the reading tells."""
    run = step.run
    if seen.kafka is None or seen.kafka.stale:
        return step
    wanted = throttle_of(run, seen) if run.state is RunState.RUNNING else None
    brokers = () if wanted is None else wanted.brokers
    if brokers == run.throttled:
        return step
    for turn in run.in_hand:
        if turn.node_id in brokers:
            run = run.with_turn(replace(turn, throttled=True))
    said = _throttle_sentence(run, wanted)
    run = note_run(replace(run, throttled=brokers), ACTOR, said, seen.now)
    return replace(step, run=run, actions=(*step.actions, ThrottleRefill(wanted)))


def _throttle_sentence(run: Run, wanted: Throttle | None) -> str:
    if wanted is None:
        return "Nobody refills any more, or it took too long: replication is not throttled."
    why = "assumed" if run.replication is None else f"measured in {run.replication.run_id}"
    rate = f"{wanted.follower_bytes_per_s / 1e6:.1f} MB/s"
    return (
        f"What broker {id_list(wanted.brokers)} lost is copied again at {rate} each at most, half "
        f"of what replication brings in ({why})."
    )
