"""Facts of the machines below Kafka that somebody else made: nodes, instances, groups, pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase

from core.ground import naming
from core.ground.constants import RETAIN_INSTANCE, TERMINATING
from core.ground.placement import UNLIMITED, Amounts, Requirement, Taint

# EBS's own driver, and the one that EKS Auto Mode brings.
EBS_DRIVERS = frozenset({"ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com"})
ZONE_TAG = f"{naming.NODE_TEMPLATE}/label/{naming.ZONE_LABEL}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node that holds pods of Kafka."""

    name: str
    zone: str | None
    instance_id: str | None
    # Of Karpenter's or Auto Mode's NodePool, or of the Provisioner before them.
    node_pool: str | None
    auto_mode: bool
    # A label of Karpenter's, EKS's or the usual one of people's own says so.
    spot: bool = False
    # None where its status says nothing of it.
    ready: bool | None = True
    # Cordoned, deleted, or marked by whoever will empty it.
    leaving: bool = False
    # Conditions by which the kubelet, or EKS's node monitoring agent, says that it is unwell.
    ailments: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    # What it has for all of its pods together.
    allocatable: Amounts = field(default_factory=dict)
    # Of its kubelet: major and minor, as in v1.34.
    version: str | None = None
    # Of its machine's operating system, in its own words.
    os_image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSlots:
    """How many volumes of EBS's driver a node takes, by its CSINode, and how many it has."""

    count: Decimal = UNLIMITED
    attached: int = 0
    # What EBS's driver says of attachments that it could not make or end.
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance as EC2 describes it."""

    # How AWS sold it, where that is not on demand: spot, capacity-block and others that it ends.
    lifecycle: str | None
    tags: Mapping[str, str]
    # EC2 ends or stops it at this moment.
    ending: bool = False
    type: str = ""
    vcpus: int = 0
    subnet: str | None = None
    # Its metadata are told without a token; or to the machine's own network alone.
    metadata_open: bool = False
    metadata_far: bool = False
    # The ARN of the Outpost it stands in.
    outpost: str | None = None
    # By which termination handlers look for its node.
    private_dns_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineStatus:
    """What EC2 says of an instance beside its description."""

    events: tuple[ScheduledEvent, ...] = ()
    # Checks of EC2's that it fails: of its host, of itself, of its volumes.
    impaired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledEvent:
    """What AWS has scheduled for an instance: EC2's code, and when it begins at the earliest."""

    code: str
    not_before: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleHook:
    """A lifecycle hook of a group."""

    name: str
    transition: str = TERMINATING
    heartbeat_seconds: int
    default_result: str
    # Where Auto Scaling itself announces it, beside EventBridge.
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTemplate:
    """What a group starts machines by: a launch template's version, or a launch configuration."""

    title: str
    missing: bool = False
    # How it buys them, where that is not on demand: spot, capacity-block.
    market: str | None = None
    metadata_open: bool = False
    # A placement group, hosts or capacity reservations that it names.
    placement: str | None = None
    # What it names and AWS has no more: image ami-0a1b, key pair ops.
    lost: tuple[str, ...] = ()
    # Keys of KMS's that it names for the disks of its machines.
    keys: tuple[str, ...] = ()
    # The name of the instance profile by which its machines have their role.
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class NodeRole:
    """The role of a template's machines, and when IAM made it, in epoch seconds."""

    name: str
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateName:
    """A launch template's id or name with a version; or a launch configuration's name alone."""

    name: str
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """An EC2NodeClass of Karpenter's, or a NodeClass of Auto Mode's."""

    title: str
    # Subnet -> its zone, of those that it starts nodes in.
    subnets: Mapping[str, str] = field(default_factory=dict)
    not_ready: str | None = None
    # The term by which it takes the newest image of all, whenever there is one.
    newest_image: str | None = None
    metadata_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingGroup:
    """An Auto Scaling group that holds a node of Kafka's."""

    name: str
    zones: frozenset[str]
    # Those it starts nodes in.
    subnets: frozenset[str] = frozenset()
    desired: int = 0
    minimum: int = 0
    maximum: int
    suspended: frozenset[str]
    # Of instances that terminate.
    hooks: tuple[LifecycleHook, ...] = ()
    # What becomes of an instance whose hook is abandoned (InstanceLifecyclePolicy).
    on_abandon: str | None = None
    # The managed node group it belongs to, and the EKS cluster of that.
    managed_node_group: str | None = None
    eks_cluster: str | None = None
    lifetime_seconds: int | None = None
    # Whose opinion ends an instance, beside EC2's: ELB, VPC_LATTICE, EBS.
    asks: frozenset[str] = frozenset()
    tags: Mapping[str, str] | None = None
    # Its mixed instances policy has a share for spot, or its template asks for it.
    may_be_spot: bool = False
    # Its warm pool takes nodes back, stopped, when it shrinks.
    reuses: bool = False
    # Every instance it has is protected from scale-in.
    protected: bool = False
    # Instance -> its lifecycle state, or Unhealthy where the group calls it so.
    states: Mapping[str, str] | None = None
    # Why AWS has given it no machine, where it has fewer than it wants.
    failed_start: str | None = None
    # Somebody deletes the group.
    deleting: bool = False
    # Its launch template's version is $Latest: whoever makes the next one changes its machines.
    follows_latest: bool = False
    # What it starts machines by.
    templates: tuple[TemplateName, ...] = ()
    # Its sizes count vCPUs, memory or weights, and not machines.
    weighted: bool = False
    # The least and the most that its maintenance policy keeps of its machines; None: it has none.
    healthy_percent: tuple[int, int] | None = None
    placement: str | None = None
    # Hooks in which a new machine waits, and ends if nobody completes them in time.
    launch_hooks: tuple[str, ...] = ()
    # The role by which Auto Scaling starts its machines.
    service_role: str | None = None

    @property
    def title(self) -> str:
        return f"Auto Scaling group {self.name}"

    @property
    def retains_on_abandon(self) -> bool:
        return self.on_abandon == RETAIN_INSTANCE

    @property
    def zone_tag(self) -> str | None:
        """What its tags tell Cluster Autoscaler about nodes to come."""
        return (self.tags or {}).get(ZONE_TAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleIn:
    """What lowers a group's size by itself: a scaling policy, or a scheduled action."""

    title: str
    # The size that a scheduled action leaves at most; None: as a policy's metric says.
    leaves: int | None = None

    @property
    def process(self) -> str:
        """The process of the group's that it needs."""
        return "AlarmNotification" if self.leaves is None else "ScheduledActions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedNodeGroup:
    """How EKS updates a managed node group."""

    name: str
    at_once: int | None
    percent_at_once: int | None
    strategy: str
    # EKS replaces nodes that its monitoring agent complains of.
    repaired: bool = False
    status: str = "ACTIVE"
    # What EKS says is wrong with it: code and message.
    issues: tuple[str, ...] = ()
    spot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FargateProfile:
    """A Fargate profile of a cluster's: which new pods it takes, by namespace and labels."""

    name: str
    # Namespaces may have * and ?.
    selectors: tuple[tuple[str, Mapping[str, str]], ...] = ()

    def takes(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return any(
            fnmatchcase(namespace, pattern)
            and all(fnmatchcase(labels.get(key, ""), value) for key, value in wanted.items())
            for pattern, wanted in self.selectors
        )


def share(written: str, total: int) -> int:
    """Return a number, or a share rounded up, as Karpenter and the disruption controller do.

    >>> share("2", 9), share("10%", 9)
    (2, 1)
    """
    return -(-int(written[:-1]) * total // 100) if written.endswith("%") else int(written)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBudget:
    """How many nodes of a NodePool may go at once, and for which reasons; none: for all."""

    written: str
    reasons: frozenset[str] = frozenset()

    def count(self, total: int) -> int:
        return share(self.written, total)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """A NodePool of Karpenter's or Auto Mode's; `expire_after` is None for Never."""

    name: str
    expire_after: str | None
    grace: str | None
    consolidation: str
    # Those that hold at every hour.
    budgets: tuple[NodeBudget, ...]
    # Before karpenter.sh/v1 an expired node waited for budgets, annotations and PDBs.
    forceful: bool = True
    leaving: bool = False
    # Why it starts no node: its Ready condition, or its limits.
    stuck: str | None = None
    # Of a static pool: how many nodes it keeps.
    replicas: int | None = None
    # How many it has, as its status says.
    nodes: int | None = None
    requirements: tuple[Requirement, ...] = ()
    # The title of the class that says where and of what its nodes start.
    node_class: str | None = None

    def may_start(self, label: str, value: str) -> bool:
        """Say whether its next node may carry a label's value."""
        asked = [each for each in self.requirements if each.key == label]
        return all(each.met_by({label: value}) for each in asked)

    def strictest_budget(self, reason: str) -> NodeBudget | None:
        """Return the strictest budget for a reason; None: as many at once as there are."""
        total = self.nodes or 0
        fitting = [each for each in self.budgets if not each.reasons or reason in each.reasons]
        return min(fitting, key=lambda each: each.count(total), default=None)
