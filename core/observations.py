"""The words core.incidents decides with: what one reading showed, and what may be done about it.

handlers.observe builds an Observation per tick; handlers.act carries out the actions. Both are
frozen and know no client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from core.rotation import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceView:
    """One EC2 instance; `tags` say whose it is."""

    instance_id: str
    state: str  # EC2's: pending, running, shutting-down, terminated, stopping, stopped
    zone: str
    private_dns_name: str
    group: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One Auto Scaling group and the lifecycle state of each of its instances."""

    name: str
    desired: int
    maximum: int
    instances: Mapping[str, str]  # instance id -> InService, Terminating:Wait, ...

    def staying(self) -> frozenset[str]:
        """Return the instances that serve or are being launched."""
        return frozenset(
            i for i, state in self.instances.items() if state.startswith(("Pending", "InService"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One Kubernetes node; `csi_ready` says that the EBS driver is registered on its CSINode."""

    name: str
    instance_id: str | None
    zone: str | None
    pool: str | None
    ready: bool
    schedulable: bool
    csi_ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """One Kafka pod; `node_name` is None until it is scheduled."""

    name: str
    node_id: int
    role: str | None  # broker, controller or combined, as its labels say
    node_name: str | None
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything true at `now` that a decision about one incident may rest on."""

    now: float  # epoch seconds
    instance: InstanceView | None  # None: EC2 no longer knows it
    group: GroupView | None = None
    nodes: tuple[NodeView, ...] = ()
    pods: tuple[PodView, ...] = ()  # the cluster's Kafka pods
    attachments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # node -> volumes
    kafka: ClusterView | None = None
    kafka_silence: str = ""  # why `kafka` is None, as a sentence
    lease_holder: str | None = None  # incident that validly holds the cluster's lease
    leaving: frozenset[str] = frozenset()  # instances of the other open incidents
    blind: str = ""  # why nothing could be read, as a sentence; then nothing above counts

    @property
    def lifecycle_state(self) -> str | None:
        if self.group is None or self.instance is None:
            return None
        return self.group.instances.get(self.instance.instance_id)

    def node_of(self, instance_id: str) -> NodeView | None:
        return next((n for n in self.nodes if n.instance_id == instance_id), None)

    def pod_named(self, name: str | None) -> PodView | None:
        return next((p for p in self.pods if p.name == name), None)

    def pod_on(self, node_name: str | None) -> PodView | None:
        if node_name is None:
            return None
        return next((p for p in self.pods if p.node_name == node_name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings a decision obeys; handlers.settings builds it from the environment."""

    drain_route: str = "held"  # or direct
    scale_in: str = "restore"  # or release
    isr_margin: int = 1
    tick_interval_seconds: float = 15.0
    hold_limit_seconds: float = 14_400.0
    heartbeat_timeout_seconds: float = 900.0
    post_condition_hold_seconds: float = 30.0
    post_condition_wait_seconds: float = 1800.0


class HookResult(StrEnum):
    CONTINUE = "CONTINUE"
    ABANDON = "ABANDON"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Keep one lifecycle hook waiting for another heartbeat timeout."""

    hook: str


@dataclass(frozen=True, slots=True)
class ForwardDrain:
    """Hand the announcement to the node termination handler, which cordons and drains."""


@dataclass(frozen=True, slots=True)
class CompleteHook:
    hook: str
    result: HookResult


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Take the cluster's lease, or renew it."""


@dataclass(frozen=True, slots=True)
class DropLease:
    """Give the lease back, if this incident holds it."""


@dataclass(frozen=True, slots=True)
class SetDesired:
    """Set the group's desired capacity to an absolute number, so that doing it twice is once."""

    desired: int


@dataclass(frozen=True, slots=True)
class Page:
    """Call a person; once per incident and key."""

    key: str
    reason: str


Action = Heartbeat | ForwardDrain | CompleteHook | TakeLease | DropLease | SetDesired | Page
