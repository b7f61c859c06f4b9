"""Every timeout in the system."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.cluster.fields import Frozen, Seconds
from core.ground.constants import CONTROLLED_SHUTDOWN_SECONDS


class Timings(Frozen):
    """Every timeout in the system; core.timing holds the inequalities between them."""

    # Kafka.
    controlled_shutdown_seconds: Seconds = CONTROLLED_SHUTDOWN_SECONDS
    """How long a stopping broker takes at most to hand over its leaders (KafkaBroker.shutdown)."""
    pod_grace_seconds: Seconds = 330
    """How long a Kafka pod has between SIGTERM and SIGKILL."""
    broker_session_timeout_seconds: Seconds = 9
    """How long the controllers wait for a broker's heartbeat before they fence it."""
    broker_heartbeat_interval_seconds: Seconds = 2
    """How often a broker sends it."""
    post_condition_hold_seconds: Seconds = 30
    """How long a broker must have been back in every ISR before it counts as back."""
    post_condition_wait_seconds: Seconds = 1800
    """How long its return may take before its old instance is retained and somebody is paged."""
    broker_connections_max_idle_seconds: Seconds = 240
    """When a broker closes an idle connection."""
    client_connections_max_idle_seconds: Seconds = 240
    """When a client does: Connect's workers are set to it, yours should be."""
    node_shutdown_seconds: Seconds = 420
    """How long a node that shuts down waits for its pods; kubelet's shutdownGracePeriod."""
    # Node termination handler.
    nth_drain_timeout_seconds: Seconds = 420
    """How long a node's drain may take."""
    nth_visibility_timeout_seconds: Annotated[int, Field(ge=1, le=119)] = 110
    """When a message that NTH works on is delivered again; NTH asks for fewer than 120."""
    nth_max_receive_count: Annotated[int, Field(ge=1, le=1000)] = 40
    """Deliveries before a message goes to the dead-letter queue."""
    nth_queue_retention_seconds: Annotated[int, Field(ge=60, le=1_209_600)] = 3_600
    """How long NTH's queue keeps a drain that was forwarded to it. One that is still wanted then is
    forwarded again; one that is not can do nothing any more. On the direct route AWS says it only
    once, and the queue keeps it as long as the queue of announcements does.
    """
    # Lifecycle hooks.
    hook_heartbeat_timeout_seconds: Annotated[int, Field(ge=30, le=7200)] = 900
    """How long a lifecycle hook waits for a heartbeat before it gives up, and the instance is
    retained.
    """
    hook_heartbeats: Annotated[int, Field(ge=1, le=1000)] = 60
    """How many heartbeats a hook may get; times the above, how long it can be kept waiting."""
    hold_limit_seconds: Seconds = 14_400
    """How long a node may be held before it is retained and somebody is paged."""
    planned_margin_seconds: Seconds = 21_600
    """How long before AWS's own time a scheduled replacement begins at the latest."""
    # Load balancer.
    nlb_health_interval_seconds: Annotated[int, Field(ge=5, le=300)] = 5
    """How often the load balancer checks a target."""
    nlb_health_timeout_seconds: Annotated[int, Field(ge=2, le=120)] = 5
    """How long a check may take."""
    nlb_healthy_threshold: Annotated[int, Field(ge=2, le=10)] = 2
    """Checks in a row that turn a target healthy or unhealthy."""
    nlb_registration_seconds: Seconds = 300
    """How long registering a target may take; minutes, on AWS."""
    nlb_idle_timeout_seconds: Annotated[int, Field(ge=60, le=6000)] = 350
    """When the load balancer forgets an idle connection without telling either end."""
    nlb_deregistration_seconds: Annotated[int, Field(ge=0, le=3600)] = 30
    """How long a removed target's connections live on. By then the broker has ended them itself;
    what is left points at a dead address.
    """
    lbc_requeue_seconds: Seconds = 5
    """How often the load balancer controller asks for a pending target's health."""
    lbc_max_backoff_seconds: Seconds = 30
    """How far its retries may space out."""
    # Strimzi.
    strimzi_operation_timeout_seconds: Seconds = 600
    """How long Strimzi waits for a pod to become Ready before it stops the roll, and for how long a
    new broker without a node keeps it from everything else that this Kafka needs. It then fails
    the reconciliation and tries again."""
    # Connect.
    connect_probe_timeout_seconds: Seconds = 12
    """How long Connect's probes wait. GET /health answers 500 and 503 only after its own 10 s
    (KIP-1017).
    """
    # Our own Lambdas and queues.
    lambda_timeout_seconds: Annotated[int, Field(ge=1, le=900)] = 60
    """How long a function may run."""
    queue_visibility_timeout_seconds: Annotated[int, Field(ge=1, le=43_200)] = 360
    """When a message that a function has not finished is delivered again."""
    events_queue_retention_seconds: Annotated[int, Field(ge=60, le=1_209_600)] = 345_600
    """How long the queue of announcements keeps a message."""
    tick_interval_seconds: Annotated[int, Field(ge=1, le=900)] = 15
    """How often an open incident is looked at."""

    def nth_retention_seconds(self, drain_route: str) -> int:
        """Return how long NTH's queue keeps a message on a route."""
        if drain_route == "direct":
            return max(self.nth_queue_retention_seconds, self.events_queue_retention_seconds)
        return self.nth_queue_retention_seconds
