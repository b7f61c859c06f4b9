"""Limits how long each thing may last before it counts against a node's health."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Kafka's own defaults where Kafka has one; all in seconds."""

    # broker.session.timeout.ms: a broker not heard of for so long is fenced.
    session_seconds: float = 9.0
    # Process start, election, the replay of the metadata log. A node this young is starting; an
    # older one in the same state is stuck.
    start_seconds: float = 120.0
    # The active controller writes a no-op every 500 ms (metadata.max.idle.interval.ms), so an
    # applier this far behind stands still.
    apply_lag_seconds: float = 10.0
    # A voter's fetch is due every 2 s (controller.quorum.fetch.timeout.ms); a rotation asks for
    # that, a probe is more patient.
    voter_lag_seconds: float = 10.0
    # A recovery in which nothing becomes less: a segment of 1 GiB takes seconds on gp3's slowest.
    recovery_stall_seconds: float = 1800.0
