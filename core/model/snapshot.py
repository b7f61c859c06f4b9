"""Holds what decides whether Kafka outlives its nodes, of a live account, in one frozen snapshot.

core.checks.expected renders the one a ClusterSpec asks for, cli.doctor reads the one that is
there, core.checks.drift compares the two. A part that is None was not looked at: by the first
because the spec has no such thing, by the second because it could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """An Auto Scaling group of one pool in one zone."""

    minimum: int
    maximum: int
    # Of the subnets it launches into, which is where its nodes will really be.
    zones: frozenset[str]
    # What its tags tell Cluster Autoscaler about nodes to come.
    zone_tag: str | None
    on_abandon: str | None
    # Least and most healthy instances while one is replaced.
    healthy_percent: tuple[int, int] | None
    suspended: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A lifecycle hook of a group."""

    transition: str
    default_result: str
    heartbeat_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancer:
    """The load balancer; a target in a zone it does not stand in is never in use."""

    zones: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """A target group and its health check."""

    interval_seconds: int
    timeout_seconds: int
    healthy_threshold: int
    unhealthy_threshold: int
    deregistration_seconds: int
    connection_termination: str
    cross_zone: str
    dns_failover: str


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
class Service:
    """A Service, by the names of its ports."""

    ports: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A running Kafka pod; its gates were put in when it was made, and never again."""

    node_id: int
    is_broker: bool
    gates: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A PersistentVolume of Kafka's."""

    claim: str
    reclaim_policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A PodDisruptionBudget, as it is written: `5`, `80%`, or nothing."""

    min_available: str | None
    max_unavailable: str | None
    of_kafka: bool = False  # its selector matches pods of Kafka's nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationHandler:
    """The node termination handler's deployment."""

    drain_timeout_seconds: int | None
    grace_seconds: int | None
    runs: bool = True  # as far as its status says, one of its pods is available


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondHandler:
    """A node termination handler that is not ours, wherever and however it was installed."""

    queue: str | None  # the name of the one that it reads; None: it asks the instance metadata
    # It may run on Kafka's nodes, as far as their taint goes; in queue mode it need not.
    on_kafkas_nodes: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainCleaner:
    """Strimzi's Drain Cleaner, where it answers evictions in Kafka's namespace."""

    drains_kafka: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """Whom a Kafka resource lets in, and what it lets them do; doors as `door_of` names them."""

    doors: frozenset[str]
    authorization: str  # Strimzi's type; none: whoever is let in may do everything
    super_users: frozenset[str]  # beside Strimzi's own
    everyone_may: bool  # allow.everyone.if.no.acl.found


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every part by the names AWS and Kubernetes know its members by; hooks as `drain of GROUP`."""

    groups: Mapping[str, Group] | None = None
    hooks: Mapping[str, Hook] | None = None
    balancers: Mapping[str, Balancer] | None = None
    target_groups: Mapping[str, TargetGroup] | None = None
    listeners: Mapping[str, BalancerListener] | None = None
    queues: Mapping[str, Queue] | None = None
    alarms: Mapping[str, Alarm] | None = None
    namespaces: Mapping[str, Namespace] | None = None
    bindings: Mapping[str, Binding] | None = None
    services: Mapping[str, Service] | None = None
    pods: Mapping[str, Pod] | None = None
    volumes: Mapping[str, Volume] | None = None
    budgets: Mapping[str, Budget] | None = None
    termination_handlers: Mapping[str, TerminationHandler] | None = None
    drain_cleaners: Mapping[str, DrainCleaner] | None = None
    second_handlers: Mapping[str, SecondHandler] | None = None
    kafkas: Mapping[str, Kafka] | None = None
    # Connect's right to read nodes, by its name: bound or not.
    connect_bindings: Mapping[str, bool] | None = None


def door_of(name: str, asks: str | None, *, tls: bool) -> str:
    """Return what a listener asks of its clients, as a finding names it.

    >>> door_of("nlb", None, tls=False)
    'nlb asks nobody who they are, without TLS'
    """
    who = f"asks for {asks}" if asks else "asks nobody who they are"
    return f"{name} {who}, {'over' if tls else 'without'} TLS"


def hook_of(hook: str, group: str) -> str:
    """Return a hook's name in a snapshot."""
    return f"{hook} of {group}"
