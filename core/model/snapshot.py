"""Holds what decides whether Kafka outlives its nodes, of a live account, in one frozen snapshot.

core.checks.expected renders the one a ClusterSpec asks for, cli.doctor reads the one that is
there, core.checks.drift compares the two. A part that is None was not looked at: by the first
because the spec has no such thing, by the second because it could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.model.facts import TargetGroup
from core.model.kafka import Kafka, Pod, Volume
from core.model.nodes import LifecycleHook, ScalingGroup
from core.model.workloads import DisruptionBudget, DrainCleaner, TerminationHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancer:
    """The load balancer; a target in a zone it does not stand in is never in use."""

    zones: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerListener:
    """A port of the load balancer."""

    target_group: str | None
    idle_timeout_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """An SQS queue; dead letters have no further queue behind them."""

    retention_seconds: int
    visibility_seconds: int | None
    dead_letters: str | None
    max_receive_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A CloudWatch alarm."""

    acts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """Kafka's namespace; its label is what has readiness gates put into new pods."""

    gate_label: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A TargetGroupBinding: the pods of a Service become the targets of a group."""

    target_group: str
    service: str
    port: str
    target_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every part by the names AWS and Kubernetes know its members by; hooks as `drain of GROUP`."""

    groups: Mapping[str, ScalingGroup] | None = None
    hooks: Mapping[str, LifecycleHook] | None = None
    balancers: Mapping[str, Balancer] | None = None
    target_groups: Mapping[str, TargetGroup] | None = None
    listeners: Mapping[str, BalancerListener] | None = None
    queues: Mapping[str, Queue] | None = None
    alarms: Mapping[str, Alarm] | None = None
    namespaces: Mapping[str, Namespace] | None = None
    bindings: Mapping[str, Binding] | None = None
    # The names of each Service's ports.
    services: Mapping[str, frozenset[str]] | None = None
    pods: Mapping[str, Pod] | None = None
    volumes: Mapping[str, Volume] | None = None
    budgets: Mapping[str, DisruptionBudget] | None = None
    termination_handlers: Mapping[str, TerminationHandler] | None = None
    drain_cleaners: Mapping[str, DrainCleaner] | None = None
    second_handlers: Mapping[str, TerminationHandler] | None = None
    kafkas: Mapping[str, Kafka] | None = None
    # Connect's right to read nodes, by its name: bound or not.
    connect_bindings: Mapping[str, bool] | None = None


def hook_of(hook: str, group: str) -> str:
    """Return a hook's name in a snapshot."""
    return f"{hook} of {group}"
