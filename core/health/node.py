"""Holds what is known of one Kafka node, whoever told it, for core.health.rules to decide on.

The node's own process, ports and exporter say one part; the quorum, the active controller and the
leaders of its partitions the other. The two contradict each other often enough that neither is
believed alone: a broker that is fenced again still says RUNNING of itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from core.health.kafka_metrics import Metric, NodeMetrics

CONTROL_PLANE_PORT, REPLICATION_PORT = 9090, 9091


class Role(StrEnum):
    """What a Kafka node does; `combined` nodes are both."""

    BROKER = "broker"
    CONTROLLER = "controller"
    COMBINED = "combined"

    @property
    def is_broker(self) -> bool:
        return self is not Role.CONTROLLER

    @property
    def is_controller(self) -> bool:
        return self is not Role.BROKER


# BrokerState of a broker's own process, by Kafka's numbers.
STATES = {
    0: "not running",
    1: "starting",
    2: "in recovery",
    3: "running",
    6: "pending controlled shutdown",
    7: "shutting down",
    127: "unknown",
}
STARTING, RECOVERING, RUNNING, UNKNOWN_STATE = (0, 1), 2, 3, 127
STOPPING = (6, 7)
# BrokerRegistrationState on a controller (KIP-1131).
UNREGISTERED, FENCED, CONTROLLED_SHUTDOWN, ACTIVE = -1, 10, 20, 30
# A voter that the leader has never seen fetching.
NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is left of the recovery of one log directory; None: Kafka keeps no such gauge now."""

    logs: int | None = None
    segments: int | None = None

    @property
    def left(self) -> int:
        return (self.logs or 0) + (self.segments or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObservation:
    """What is known of one Kafka node at `now`; None is what no source told."""

    node_id: int
    role: Role
    now: float  # seconds, of any clock that only goes forward
    process: bool | None = None  # a Java process runs in the container
    started_at: float | None = None
    listening: Mapping[int, bool] = field(default_factory=dict)  # port -> somebody listens
    # From the node's own exporter.
    scraped: bool = False
    broker_state: int | None = None
    recovery: Mapping[str, Recovery] = field(default_factory=dict)  # by log directory
    recovery_moved_at: float | None = None  # when what is left last became less
    raft_state: str | None = None
    raft_leader: int | None = None
    apply_lag_seconds: float | None = None
    offline_log_directories: int | None = None
    # From others: the quorum, the active controller, the leaders.
    quorum_answers: bool | None = None  # DescribeQuorum came back with a leader
    fenced: bool | None = None  # DescribeCluster with fenced brokers, or the active controller
    registration: int | None = None  # BrokerRegistrationState on the active controller
    since_heartbeat_seconds: float | None = None  # TimeSinceLastHeartbeatReceivedMs there
    voter_lag_seconds: float | None = None  # how long the leader has seen it behind; or NEVER
    not_in_sync: int | None = None  # of its replicas, how many the leaders miss from their ISR
    was_in_sync: bool = False  # has been in all of them at once since its process started

    @property
    def recovering(self) -> bool:
        return self.broker_state == RECOVERING or any(r.left for r in self.recovery.values())

    @property
    def is_fenced(self) -> bool | None:
        """Return what the quorum says, from whichever source; None where none told."""
        if self.fenced is not None:
            return self.fenced
        return None if self.registration is None else self.registration in {UNREGISTERED, FENCED}


def with_metrics(observed: NodeObservation, metrics: NodeMetrics | None) -> NodeObservation:
    """Add what the node's own exporter told; None is an exporter that did not answer."""
    if metrics is None:
        return replace(observed, scraped=False)
    lag = metrics.value(
        Metric.BROKER_APPLY_LAG_MS if observed.role.is_broker else Metric.CONTROLLER_APPLY_LAG_MS
    )
    return replace(
        observed,
        scraped=True,
        broker_state=metrics.count(Metric.BROKER_STATE),
        recovery=recovery_of(metrics),
        raft_state=metrics.raft_state,
        raft_leader=metrics.count(Metric.RAFT_LEADER),
        apply_lag_seconds=None if lag is None else lag / 1000,
        offline_log_directories=metrics.count(Metric.OFFLINE_LOG_DIRECTORIES),
    )


def recovery_of(metrics: NodeMetrics) -> dict[str, Recovery]:
    """Return what each log directory still recovers: all of them, not the one seen last."""
    logs = metrics.by(Metric.LOGS_TO_RECOVER, "dir")
    segments = metrics.by(Metric.SEGMENTS_TO_RECOVER, "dir")
    return {
        directory: Recovery(
            logs=None if (left := logs.get(directory)) is None else int(left),
            segments=None if (part := segments.get(directory)) is None else int(part),
        )
        for directory in sorted({*logs, *segments})
    }
