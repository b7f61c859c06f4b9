"""One Kafka node's verdict from both sides: what Kafka says of it, and what it says of itself.

core.health.kafka has the first from an admin reading; core.health.strict holds the second, the
node's own exporter and its pod, against that. The graver of the two is the node's.
"""

from __future__ import annotations

from core.health import strict
from core.health.kafka import broker_verdict, controller_verdict
from core.health.kafka_metrics import NodeMetrics
from core.health.lifecycle import lifecycle, signs_of
from core.health.limits import Limits
from core.health.node import NEVER, NodeObservation, Role, with_metrics
from core.health.pods import STARTUP_SECONDS, PodSeen
from core.health.verdict import SEVERITY, HealthVerdict
from core.views import ClusterView

LIMITS = Limits()


def node_verdict(
    node_id: int,
    role: Role,
    view: ClusterView,
    metrics: NodeMetrics | None,
    pod: PodSeen | None,
    now: float,
) -> HealthVerdict:
    """Return the verdict on one half of a node; no metrics are an exporter that did not answer."""
    by_kafka = (broker_verdict if role is Role.BROKER else controller_verdict)(node_id, view)
    by_itself = strict.readiness(observation(node_id, role, view, metrics, pod, now), LIMITS)
    first, second = sorted(
        (by_kafka, by_itself), key=lambda verdict: SEVERITY.index(verdict.health), reverse=True
    )
    alike = first.health is second.health and not first.healthy
    return HealthVerdict(
        first.health,
        f"{first.reason} {second.reason}" if alike else first.reason,
        (*first.missing, *second.missing),
    )


def observation(
    node_id: int,
    role: Role,
    view: ClusterView,
    metrics: NodeMetrics | None,
    pod: PodSeen | None,
    now: float,
) -> NodeObservation:
    """Gather what all sources of one examination told of a node."""
    answers = not view.stale and view.quorum_leader is not None
    voter = next((v for v in view.voters if v.node_id == node_id), None)
    lag = None if voter is None else voter.lag_seconds
    away = sum(node_id in p.replicas and node_id not in p.isr for p in view.partitions)
    running = None if pod is None else pod.running_seconds(now)
    seen = NodeObservation(
        node_id=node_id,
        role=role,
        now=now,
        process=None if pod is None else pod.running,
        started_at=None if pod is None else pod.started_at,
        quorum_answers=None if view.quorum_leader is None and not view.without_quorum else answers,
        fenced=node_id in view.fenced if answers and node_id in view.brokers else None,
        voter_lag_seconds=NEVER if voter is not None and lag is None else lag,
        not_in_sync=away if answers else None,
        # One examination has no memory: what runs for so long has been in sync before.
        was_in_sync=running is not None and running >= STARTUP_SECONDS,
    )
    return with_metrics(seen, metrics)


def disagreements(
    broker_id: int, view: ClusterView, own: NodeMetrics | None, active: NodeMetrics | None
) -> tuple[str, ...]:
    """Return what contradicts what the quorum says of a broker, as sentences."""
    signs = signs_of(
        broker_id,
        quorum_answers=not view.stale and view.quorum_leader is not None,
        described={each: each in view.fenced for each in view.brokers},
        active_controller=active,
        own=own,
    )
    return lifecycle(signs, LIMITS).disagreements
