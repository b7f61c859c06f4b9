"""Facts of a cluster that somebody else made. A part that could not be read is an Unread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unread:
    """A part nothing is known of, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class KafkaListener:
    """A listener of a Kafka resource; `authentication` is None where it asks nobody."""

    name: str
    authentication: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """One Kafka resource."""

    namespace: str
    name: str
    rack_aware: bool
    listeners: tuple[KafkaListener, ...]
    # The broker settings as written in the resource; what is absent is Kafka's default.
    config: Mapping[str, str]

    @property
    def title(self) -> str:
        return f"Kafka {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of a Kafka cluster: a broker, a controller, or both."""

    namespace: str
    name: str
    kafka: str
    broker: bool
    node: str | None
    grace_seconds: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    readiness_gates: frozenset[str]
    claims: tuple[str, ...]
    # Whether the scheduler is forbidden to place a second one on its node.
    alone_on_its_node: bool

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node that holds pods of Kafka."""

    name: str
    zone: str | None
    instance_id: str | None
    # Of Karpenter's or Auto Mode's NodePool.
    node_pool: str | None
    auto_mode: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationHook:
    """A lifecycle hook of instances that terminate."""

    name: str
    heartbeat_seconds: int
    default_result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingGroup:
    """An Auto Scaling group that holds a node of Kafka's."""

    name: str
    zones: frozenset[str]
    desired: int
    maximum: int
    suspended: frozenset[str]
    hooks: tuple[TerminationHook, ...]
    # Whether an instance whose hook is abandoned is kept (InstanceLifecyclePolicy).
    retains_on_abandon: bool
    # The managed node group it belongs to.
    managed_node_group: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One expression of a label selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """A PodDisruptionBudget, by its selector and its last status."""

    namespace: str
    name: str
    match_labels: Mapping[str, str]
    expressions: tuple[Requirement, ...]
    desired_healthy: int
    expected_pods: int

    def covers(self, pod: Pod) -> bool:
        """Say whether its selector matches a pod; an empty one matches every pod beside it."""
        return (
            pod.namespace == self.namespace
            and all(pod.labels.get(key) == value for key, value in self.match_labels.items())
            and all(_meets(each, pod.labels) for each in self.expressions)
        )


def _meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator == "In":
        return value in requirement.values
    if requirement.operator == "NotIn":
        return value not in requirement.values
    return (value is not None) == (requirement.operator == "Exists")


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationHandler:
    """An installation of aws-node-termination-handler."""

    title: str
    queue_mode: bool
    # Negative: the pod's own grace.
    pod_grace_seconds: int
    drain_timeout_seconds: int
    beats_hooks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainCleaner:
    """An installation of Strimzi's Drain Cleaner."""

    title: str
    denies: bool
    drains_kafka: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """A NodePool of Karpenter's or Auto Mode's; `expire_after` is None for Never."""

    name: str
    expire_after: str | None
    grace: str | None
    consolidation: str
    # Of budgets that hold always and for every reason: how many nodes at once.
    budgets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """What a claim of a Kafka pod is bound to."""

    namespace: str
    claim: str
    reclaim: str | None
    storage_class: str | None
    binding: str | None
    expandable: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """A TargetGroupBinding with targets by IP, and the selector of its Service."""

    namespace: str
    name: str
    selector: Mapping[str, str]

    @property
    def gate(self) -> str:
        return f"target-health.elbv2.k8s.aws/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerController:
    """An installation of the AWS Load Balancer Controller."""

    title: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """One EKS cluster with everything read of it."""

    kafkas: tuple[Kafka, ...] | Unread
    pods: tuple[Pod, ...] | Unread
    nodes: Mapping[str, Node] | Unread
    # Instance id -> group's name; an instance of no group is not in it.
    group_of: Mapping[str, str] | Unread
    groups: Mapping[str, ScalingGroup] | Unread
    budgets: tuple[DisruptionBudget, ...] | Unread
    handlers: tuple[TerminationHandler, ...] | Unread
    cleaners: tuple[DrainCleaner, ...] | Unread
    # Names of validating webhooks that are asked about evictions.
    eviction_webhooks: tuple[str, ...] | Unread
    node_pools: Mapping[str, NodePool] | Unread
    volumes: tuple[Volume, ...] | Unread
    balanced: tuple[Balanced, ...] | Unread
    gated_namespaces: frozenset[str] | Unread
    balancer_controllers: tuple[BalancerController, ...] | Unread
