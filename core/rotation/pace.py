"""Measures how fast replication brings a broker's log back while a run waits for it.

From the first reading that shows a broker unfenced and behind to the last one that does: what its
logs grew by in that time. One that is back between two readings measures nothing, and neither does
a handful of bytes. A plan takes its rate from here, and what it assumes where no run has ever
measured one.
"""

from __future__ import annotations

from dataclasses import replace

from core.rotation.observation import RunObservation
from core.rotation.run_record import NodeTurn, Replication, Run
from core.views import ClusterView

# A log that lacked less was behind for want of a fetch, and says nothing about how fast those are.
LEAST_BYTES = 64 * 1024 * 1024


def measured_now(run: Run, kafka: ClusterView | None) -> tuple[int, ...]:
    """Return the run's brokers whose logs are asked for: behind, or whole and about to leave."""
    if kafka is None or kafka.stale:
        return ()
    return tuple(
        turn.node_id
        for turn in run.in_hand
        if turn.is_broker
        and kafka.online(turn.node_id)
        and (_behind(turn.node_id, kafka) or turn.whole_bytes is None)
    )


def _behind(node_id: int, kafka: ClusterView) -> bool:
    missing = any(node_id in p.replicas and node_id not in p.isr for p in kafka.partitions)
    return missing and kafka.online(node_id)


def with_pace(turn: NodeTurn, seen: RunObservation) -> NodeTurn:
    """Return a node's turn with what this reading adds to its measurement."""
    held = seen.held.get(turn.node_id)
    if held is not None and seen.kafka is not None and not _behind(turn.node_id, seen.kafka):
        return replace(turn, whole_bytes=turn.whole_bytes or held)
    if held is None:
        # Away again before anything was measured: what it copies next begins anew.
        return turn if turn.copied_seconds else replace(turn, behind_at=None, behind_bytes=None)
    if turn.behind_at is None or turn.behind_bytes is None:
        return replace(turn, behind_at=seen.now, behind_bytes=held)
    return replace(
        turn,
        copied_bytes=max(held - turn.behind_bytes, 0),
        copied_seconds=seen.now - turn.behind_at,
    )


def measured_rate(run: Run | None) -> Replication | None:
    """Return the rate a run measured over all its brokers, or else the one it was started with."""
    if run is None:
        return None
    took = [
        t
        for t in run.turns
        if t.copied_bytes >= LEAST_BYTES and t.copied_seconds > 0 and not t.throttled
    ]
    if not took:
        return run.replication
    bytes_per_s = sum(t.copied_bytes for t in took) / sum(t.copied_seconds for t in took)
    return Replication(bytes_per_s=bytes_per_s, run_id=run.id, brokers=len(took))
