"""Every timeout in the system against the ones it must fit: `check(spec)` lists what disagrees.

stacks/ stop a preview on any violation, so a cluster whose timeouts contradict each other is never
built. The rules are data: a formula is a sum of products of settings (fields of
core.cluster.Timings), written once and used both to compute and to name what is compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

# What is fixed, by others or by us, in seconds.
FACTS = {
    # AWS ends a hook after min(48 h, 100 x its heartbeat timeout), whatever heartbeats it gets.
    "aws_hook_limit_seconds": 172_800,
    # KIP-1017: Connect's GET /health answers 500 and 503 only after this wait.
    "connect_health_wait_seconds": 10,
    # What the kubelet keeps back of its shutdown for the pods that nodes cannot do without (network
    # plugin, volume driver): ours, as infra/eks/launch.py renders it.
    "critical_pods_shutdown_seconds": 30,
    # Ours: how often the sweep looks for an incident that nothing carries, and how late a tick is
    # taken for lost at the soonest (core.settings.functions.late_seconds).
    "sweep_interval_seconds": 60,
    "longest_tick_seconds": 45,
}


class HasTimings(Protocol):
    """A ClusterSpec, as far as this module looks: Lambda code must not import pydantic."""

    @property
    def timings(self) -> object: ...


@dataclass(frozen=True, slots=True)
class TimingRule:
    """One inequality: `left` must be below (or at most) `right`."""

    name: str
    left: str
    relation: Literal["<", "<="]
    right: str
    breaks: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Violation:
    """Two settings that contradict each other, what breaks, and the remedy."""

    rule: str
    left_setting: str
    left_value: int
    right_setting: str
    right_value: int
    unit: str
    breaks: str
    remedy: str
    relation: Literal["below", "at most"]

    @property
    def sentence(self) -> str:
        excess = self.left_value - self.right_value
        disagree = f"exceeds it by {excess} {self.unit}" if excess else "equals it"
        return (
            f"{self.left_setting} ({self.left_value} {self.unit}) must be {self.relation} "
            f"{self.right_setting} ({self.right_value} {self.unit}) but {disagree}: "
            f"{self.breaks}; {self.remedy}."
        )


_HOOK_TOTAL = "hook_heartbeat_timeout_seconds * hook_heartbeats"
_LONGEST_HOLD = "hold_limit_seconds + nth_drain_timeout_seconds + post_condition_wait_seconds"
# From a drain that was forwarded to when it can do nothing any more: its queue has dropped the
# message, a function that slept before it sent it has ended, and NTH, which may have received it
# last with all its workers busy, has waited for one and given up its own drain.
_DRAIN_LIFE = (
    "nth_queue_retention_seconds + 2 * nth_drain_timeout_seconds + nth_visibility_timeout_seconds "
    "+ lambda_timeout_seconds"
)
# Of a drain of our own: a pod that was told to stop ends within its grace.
_EVICTION_LIFE = "pod_grace_seconds + lambda_timeout_seconds"
_NLB_HEALTHY = "nlb_health_interval_seconds * nlb_healthy_threshold"

_STOPPING = (
    TimingRule(
        "controlled-shutdown-fits-grace",
        "controlled_shutdown_seconds",
        "<",
        "pod_grace_seconds",
        "the kubelet kills a broker that is still handing over its leaders, and it recovers its "
        "logs on the next start",
        "raise pod_grace_seconds",
    ),
    TimingRule(
        "grace-fits-drain",
        "pod_grace_seconds",
        "<",
        "nth_drain_timeout_seconds",
        "NTH calls the drain failed while the broker is still stopping in good order",
        "raise nth_drain_timeout_seconds or lower pod_grace_seconds",
    ),
    TimingRule(
        "grace-fits-node-shutdown",
        "pod_grace_seconds + critical_pods_shutdown_seconds",
        "<",
        "node_shutdown_seconds",
        "a node that shuts down kills its broker before the broker has stopped in good order",
        "raise node_shutdown_seconds",
    ),
    TimingRule(
        "drain-fits-hook",
        _LONGEST_HOLD,
        "<",
        _HOOK_TOTAL,
        "the heartbeats run out before hold, drain and return are over, and the hook gives up on "
        "a broker that was about to leave safely",
        "raise hook_heartbeats or hook_heartbeat_timeout_seconds, or lower hold_limit_seconds",
    ),
    TimingRule(
        "hold-fits-margin",
        _LONGEST_HOLD,
        "<",
        "planned_margin_seconds",
        "AWS takes a retired instance while its broker is still held back or draining",
        "raise planned_margin_seconds or lower hold_limit_seconds",
    ),
    TimingRule(
        "hook-total-within-aws",
        _HOOK_TOTAL,
        "<=",
        "aws_hook_limit_seconds",
        "AWS ends a lifecycle hook after 48 h whatever heartbeats it gets",
        "lower hook_heartbeats or hook_heartbeat_timeout_seconds",
    ),
    TimingRule(
        "hook-beats-within-aws",
        _HOOK_TOTAL,
        "<=",
        "100 * hook_heartbeat_timeout_seconds",
        "AWS ends a lifecycle hook after 100 times its heartbeat timeout",
        "lower hook_heartbeats to 100 or raise hook_heartbeat_timeout_seconds instead",
    ),
    # A hook is beaten from half of its timeout on, at looks a quarter apart at most: the quarter
    # that is left has to do for a lost tick to be missed and found.
    TimingRule(
        "tick-fits-heartbeat",
        "12 * tick_interval_seconds + 4 * sweep_interval_seconds",
        "<",
        "hook_heartbeat_timeout_seconds",
        "one lost tick lets the lifecycle hook run out before the sweep has found it",
        "lower tick_interval_seconds or raise hook_heartbeat_timeout_seconds",
    ),
    TimingRule(
        "sweep-fits-heartbeat",
        "4 * longest_tick_seconds + 4 * sweep_interval_seconds",
        "<",
        "hook_heartbeat_timeout_seconds",
        "one lost tick lets the lifecycle hook run out before the sweep has found it",
        "raise hook_heartbeat_timeout_seconds",
    ),
)
_QUEUES = (
    TimingRule(
        "events-outlive-hold",
        _LONGEST_HOLD,
        "<=",
        "events_queue_retention_seconds",
        "the queue drops an announcement while its node is still waiting to leave",
        "raise events_queue_retention_seconds",
    ),
    TimingRule(
        "nth-messages-outlive-drain",
        "nth_drain_timeout_seconds + nth_visibility_timeout_seconds",
        "<",
        "nth_queue_retention_seconds",
        "the queue drops the message of a drain that failed before NTH can try it again",
        "raise nth_queue_retention_seconds",
    ),
    TimingRule(
        "nth-messages-end-before-hold",
        _DRAIN_LIFE,
        "<",
        "hold_limit_seconds",
        "a node is kept while NTH may still receive its drain, and every other node waits for that",
        "lower nth_queue_retention_seconds, or raise hold_limit_seconds",
    ),
    TimingRule(
        "drain-fits-receives",
        "nth_drain_timeout_seconds",
        "<",
        "nth_visibility_timeout_seconds * nth_max_receive_count",
        "NTH receives the message of a running drain again at every visibility timeout. So the "
        "drain's message reaches the dead-letter queue before the drain ends",
        "raise nth_max_receive_count or nth_visibility_timeout_seconds",
    ),
    TimingRule(
        "lambda-fits-visibility",
        "6 * lambda_timeout_seconds",
        "<=",
        "queue_visibility_timeout_seconds",
        "a message that a Lambda still works on, or that was throttled, is handed to a second one",
        "raise queue_visibility_timeout_seconds to 6 times lambda_timeout_seconds",
    ),
)
_LOAD_BALANCER = (
    TimingRule(
        "health-timeout-fits-interval",
        "nlb_health_timeout_seconds",
        "<=",
        "nlb_health_interval_seconds",
        "AWS refuses the target group",
        "lower nlb_health_timeout_seconds (its default for TCP is 10 s)",
    ),
    TimingRule(
        "registration-fits-operation",
        f"{_NLB_HEALTHY} + nlb_registration_seconds",
        "<",
        "strimzi_operation_timeout_seconds",
        "Strimzi gives up on a broker whose readiness gate is only waiting for the load balancer, "
        "and stops the roll",
        "raise strimzi_operation_timeout_seconds",
    ),
    TimingRule(
        "backoff-fits-operation",
        f"{_NLB_HEALTHY} + nlb_registration_seconds + lbc_max_backoff_seconds",
        "<",
        "strimzi_operation_timeout_seconds",
        "a healthy target's readiness gate can turn True after Strimzi has given up "
        "(LBC#3622: 16 min with the default cap)",
        "lower lbc_max_backoff_seconds or raise strimzi_operation_timeout_seconds",
    ),
    TimingRule(
        "requeue-within-backoff",
        "lbc_requeue_seconds",
        "<=",
        "lbc_max_backoff_seconds",
        "the load balancer controller asks for target health less often than its own cap allows",
        "lower lbc_requeue_seconds",
    ),
    TimingRule(
        "requeue-within-health",
        "lbc_requeue_seconds",
        "<=",
        _NLB_HEALTHY,
        "readiness gates lag behind what the load balancer already knows",
        "lower lbc_requeue_seconds",
    ),
    TimingRule(
        "broker-idle-within-nlb",
        "broker_connections_max_idle_seconds",
        "<",
        "nlb_idle_timeout_seconds",
        "the load balancer drops idle connections silently, and brokers keep dead ones",
        "lower broker_connections_max_idle_seconds or raise nlb_idle_timeout_seconds",
    ),
    TimingRule(
        "client-idle-within-nlb",
        "client_connections_max_idle_seconds",
        "<",
        "nlb_idle_timeout_seconds",
        "the load balancer drops idle connections silently, and a client's next request times out",
        "lower client_connections_max_idle_seconds or raise nlb_idle_timeout_seconds",
    ),
)
_KAFKA = (
    TimingRule(
        "heartbeat-fits-session",
        "2 * broker_heartbeat_interval_seconds",
        "<",
        "broker_session_timeout_seconds",
        "one late heartbeat fences a healthy broker",
        "raise broker_session_timeout_seconds or lower broker_heartbeat_interval_seconds",
    ),
    TimingRule(
        "hold-outlasts-session",
        "broker_session_timeout_seconds",
        "<",
        "post_condition_hold_seconds",
        "a broker that freezes after its return counts as back before Kafka can fence it "
        "(strimzi#11736), and the next one is let go",
        "raise post_condition_hold_seconds",
    ),
    TimingRule(
        "hold-fits-wait",
        "post_condition_hold_seconds",
        "<",
        "post_condition_wait_seconds",
        "no broker can ever prove that it is back",
        "raise post_condition_wait_seconds",
    ),
    TimingRule(
        "connect-health-fits-probe",
        "connect_health_wait_seconds",
        "<",
        "connect_probe_timeout_seconds",
        "the kubelet never sees an unhealthy Connect worker's answer, only a timeout",
        "raise connect_probe_timeout_seconds to 11 or more",
    ),
)
RULES = (*_STOPPING, *_QUEUES, *_LOAD_BALANCER, *_KAFKA)


def check(spec: HasTimings) -> list[Violation]:
    """Return every inequality that the spec's timings break, in the order of RULES."""
    return [violation for rule in RULES if (violation := _violation(rule, spec.timings))]


def drain_life_seconds(timings: object) -> int:
    """Return how long after it was forwarded a drain may still be carried out."""
    return _value(_DRAIN_LIFE, timings)


def eviction_life_seconds(timings: object) -> int:
    """Return how long after we asked for a pod's eviction it may still be on its way out."""
    return _value(_EVICTION_LIFE, timings)


def _violation(rule: TimingRule, timings: object) -> Violation | None:
    left, right = _value(rule.left, timings), _value(rule.right, timings)
    if left < right or (left == right and rule.relation == "<="):
        return None
    return Violation(
        rule=rule.name,
        left_setting=rule.left.replace("*", "x"),
        left_value=left,
        right_setting=rule.right.replace("*", "x"),
        right_value=right,
        unit="s",
        breaks=rule.breaks,
        remedy=rule.remedy,
        relation="below" if rule.relation == "<" else "at most",
    )


def _value(formula: str, timings: object) -> int:
    return sum(
        math.prod(_factor(name, timings) for name in term.split(" * "))
        for term in formula.split(" + ")
    )


def _factor(name: str, timings: object) -> int:
    if name.isdigit():
        return int(name)
    return FACTS[name] if name in FACTS else int(getattr(timings, name))
