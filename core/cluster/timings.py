"""Every timeout in the system."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.cluster.fields import Frozen, Seconds


class Timings(Frozen):
    """Every timeout in the system; core.timing holds the inequalities between them."""

    # Kafka. The broker waits up to 300 s for its controlled shutdown (KafkaBroker.shutdown).
    controlled_shutdown_seconds: Seconds = 300
    pod_grace_seconds: Seconds = 330
    broker_session_timeout_seconds: Seconds = 9
    broker_heartbeat_interval_seconds: Seconds = 2
    post_condition_hold_seconds: Seconds = 30
    post_condition_wait_seconds: Seconds = 1800
    broker_connections_max_idle_seconds: Seconds = 240
    client_connections_max_idle_seconds: Seconds = 240
    # How long a node that shuts down waits for its pods; kubelet's shutdownGracePeriod.
    node_shutdown_seconds: Seconds = 420
    # Node termination handler.
    nth_drain_timeout_seconds: Seconds = 420
    nth_visibility_timeout_seconds: Annotated[int, Field(ge=1, le=119)] = 110
    nth_max_receive_count: Annotated[int, Field(ge=1, le=1000)] = 40
    nth_queue_retention_seconds: Annotated[int, Field(ge=60, le=1_209_600)] = 172_800
    # Lifecycle hooks.
    hook_heartbeat_timeout_seconds: Annotated[int, Field(ge=30, le=7200)] = 900
    hook_heartbeats: Annotated[int, Field(ge=1, le=1000)] = 60
    hold_limit_seconds: Seconds = 14_400
    # Load balancer.
    nlb_health_interval_seconds: Annotated[int, Field(ge=5, le=300)] = 5
    nlb_health_timeout_seconds: Annotated[int, Field(ge=2, le=120)] = 5
    nlb_healthy_threshold: Annotated[int, Field(ge=2, le=10)] = 2
    nlb_registration_seconds: Seconds = 300
    nlb_idle_timeout_seconds: Annotated[int, Field(ge=60, le=6000)] = 350
    # By then the broker has ended its connections itself; what is left points at a dead address.
    nlb_deregistration_seconds: Annotated[int, Field(ge=0, le=3600)] = 30
    lbc_requeue_seconds: Seconds = 5
    lbc_max_backoff_seconds: Seconds = 30
    # Strimzi.
    strimzi_operation_timeout_seconds: Seconds = 600
    # Connect. GET /health answers 500 and 503 only after its own 10 s (KIP-1017).
    connect_probe_timeout_seconds: Seconds = 12
    # Our own Lambdas and queues.
    lambda_timeout_seconds: Annotated[int, Field(ge=1, le=900)] = 60
    queue_visibility_timeout_seconds: Annotated[int, Field(ge=1, le=43_200)] = 360
    events_queue_retention_seconds: Annotated[int, Field(ge=60, le=1_209_600)] = 345_600
    tick_interval_seconds: Annotated[int, Field(ge=1, le=900)] = 15
