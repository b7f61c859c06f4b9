"""Holds everything read of one EKS cluster, its account and region, in one frozen snapshot.

core.checks.expected renders the snapshot a ClusterSpec asks for, cli.doctor reads the live one,
core.checks.drift compares them. A part that is None was not looked at, or could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from core.ground.fields import Unknown, known_items, mapping_of
from core.model.account import Account, AccountQuota, EncryptionKey, Needs, Subnet, VpcEndpoint
from core.model.kafka import (
    Kafka,
    KafkaPool,
    OtherKafka,
    Pod,
    PodSet,
    Rebalance,
    Rival,
    Topic,
    Volume,
    ZooKeeperPod,
)
from core.model.nodes import (
    FargateProfile,
    Instance,
    LifecycleHook,
    MachineStatus,
    MachineTemplate,
    ManagedNodeGroup,
    Node,
    NodeClass,
    NodePool,
    NodeRole,
    ScaleIn,
    ScalingGroup,
    VolumeSlots,
)
from core.model.workloads import (
    AdmissionPolicy,
    Autoscaler,
    Balanced,
    BalancerController,
    DisruptionBudget,
    DrainCleaner,
    Essential,
    EvictionWebhook,
    Evictor,
    IngressController,
    LimitRange,
    Neighbour,
    NodeProvisioner,
    Operator,
    PendingRelease,
    PodWebhook,
    Quota,
    SizeScaler,
    TerminationHandler,
    TerminationQueue,
    VolumeController,
)

if TYPE_CHECKING:
    from core.cluster.spec import ClusterSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """How what stands in a subnet leaves its VPC: by the default route of its table."""

    table: str
    # What the route leads to: nat-0a1b, igw-0a1b, tgw-0a1b; None: there is no such route.
    target: str | None = None
    # What it leads to is no more.
    gone: bool = False
    # Of a NAT gateway that stands in one zone.
    nat_zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A volume as EBS describes it."""

    type: str
    gib: float
    state: str = "in-use"
    multi_attach: bool = False
    # The ARN of the key that it is encrypted under.
    key: str | None = None
    # Machine -> whether it is attached there: attaching, attached, detaching, busy.
    attached: Mapping[str, str] = field(default_factory=dict)
    # How far its last modification is, where that is not over: modifying, optimizing, failed.
    change: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """An EKS cluster as EKS describes it, with how long its version is supported."""

    name: str
    arn: str
    version: str
    status: str = "ACTIVE"
    # STANDARD_SUPPORT, EXTENDED_SUPPORT or UNSUPPORTED; None: EKS lists no such version.
    support: str | None = "STANDARD_SUPPORT"
    # Epoch seconds; None where EKS names no day.
    standard_ends: float | None = None
    extended_ends: float | None = None
    # What follows standard support: STANDARD, an upgrade by AWS; EXTENDED, a dearer year.
    policy: str | None = None
    ipv6: bool = False
    # Its API server has an address in the VPC; None: EKS does not say.
    private: bool | None = None
    # How callers are known: API, API_AND_CONFIG_MAP or CONFIG_MAP; None: EKS does not say.
    authentication: str | None = None
    # What EKS says is wrong with it: code and message.
    issues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """What EKS has found that an upgrade of a cluster would meet."""

    name: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shiftable:
    """A resource that ARC knows: where it is shifted away from, and whether AWS may do that."""

    arn: str
    # Zone, by its name or id, -> who shifted it and until when.
    shifted: Mapping[str, str]
    autoshift: bool = False

    @property
    def name(self) -> str:
        """Return what the resource is called: the end of its ARN."""
        return self.arn.rpartition(":")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthEvent:
    """An event of AWS Health's that is open or to come; `entities` are the resources it names."""

    code: str
    service: str
    # issue, investigation or scheduledChange.
    category: str
    place: str
    begins: str
    entities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsHealth:
    """What AWS Health tells this account; without a plan of Support's it tells nothing."""

    events: tuple[HealthEvent, ...] = ()
    without_plan: bool = False


# Of an attribute that a target group does not have.
UNSET = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """A target group that a binding sends pods of Kafka to, and its health check."""

    name: str
    balancers: tuple[str, ...] = ()
    interval_seconds: int = 0
    timeout_seconds: int = 0
    healthy_threshold: int = 0
    unhealthy_threshold: int = 0
    deregistration_seconds: int = 300
    # What becomes of connections: when that delay is over, and when a target is unhealthy.
    connection_termination: str = UNSET
    ends_unhealthy: bool = True
    preserves_client_ip: bool = False
    # As written, or as its balancers say where it leaves that to them.
    cross_zone: str = UNSET
    dns_failover: str = UNSET
    network: bool = True


# Of a part that whoever reads had no need of: nothing is known of it, and nothing is amiss.
NOT_ASKED = Unknown("nobody asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """One EKS cluster with everything known of it, from whichever source: rules ask what is there.

    A part that nobody asked for is NOT_ASKED; one that could not be read says why.
    """

    # What is to be made, and what the account that it is made in says of itself.
    needs: Needs | Unknown = NOT_ASKED
    account: Account | Unknown = NOT_ASKED
    description: ClusterSpec | Unknown = NOT_ASKED
    # Subnets of others in which functions of ours stand, and the services of AWS's they call.
    function_subnets: frozenset[str] | Unknown = NOT_ASKED
    function_services: frozenset[str] | Unknown = NOT_ASKED
    kafkas: tuple[Kafka, ...] | Unknown = NOT_ASKED
    pools: tuple[KafkaPool, ...] | Unknown = NOT_ASKED
    pod_sets: tuple[PodSet, ...] | Unknown = NOT_ASKED
    rebalances: tuple[Rebalance, ...] | Unknown = NOT_ASKED
    # Versions in which its API server serves Strimzi's resources, and StrimziPodSets.
    kafka_versions: frozenset[str] | Unknown = NOT_ASKED
    pod_set_versions: frozenset[str] | Unknown = NOT_ASKED
    topics: tuple[Topic, ...] | Unknown = NOT_ASKED
    other_kafkas: tuple[OtherKafka, ...] | Unknown = NOT_ASKED
    pods: tuple[Pod, ...] | Unknown = NOT_ASKED
    # Images of Kafka's pods that their registry at ECR has no more.
    lost_images: frozenset[str] | Unknown = NOT_ASKED
    # Pods of others on the nodes of Kafka's.
    neighbours: tuple[Neighbour, ...] | Unknown = NOT_ASKED
    # Pods of others, wherever they are, of a priority above the usual one.
    rivals: tuple[Rival, ...] | Unknown = NOT_ASKED
    zookeepers: tuple[ZooKeeperPod, ...] | Unknown = NOT_ASKED
    nodes: Mapping[str, Node] | Unknown = NOT_ASKED
    # Of the labels that pods of Kafka ask for, without one of them.
    idle_nodes: Mapping[str, Node] | Unknown = NOT_ASKED
    # By the node's name; a node without EBS's driver is not in it.
    slots: Mapping[str, VolumeSlots] | Unknown = NOT_ASKED
    instances: Mapping[str, Instance] | Unknown = NOT_ASKED
    # Instance id -> what EC2 says beside its description; most are not in it.
    statuses: Mapping[str, MachineStatus] | Unknown = NOT_ASKED
    # Instance id -> group's name; an instance of no group is not in it.
    group_of: Mapping[str, str] | Unknown = NOT_ASKED
    groups: Mapping[str, ScalingGroup] | Unknown = NOT_ASKED
    # By the group's name.
    templates: Mapping[str, tuple[MachineTemplate, ...]] | Unknown = NOT_ASKED
    # Instance profile of a template's -> its role; None: it is gone, or has none.
    node_roles: Mapping[str, NodeRole | None] | Unknown = NOT_ASKED
    # Role that the cluster knows -> when its access entry was made (epoch seconds); None: aws-auth
    # names it, which goes by the name alone. Asked where there are such.
    admitted_roles: Mapping[str, float | None] | Unknown = NOT_ASKED
    # By the group's name; a group that nothing shrinks is not in it.
    scale_ins: Mapping[str, tuple[ScaleIn, ...]] | Unknown = NOT_ASKED
    # Group's name -> the state of the instance refresh it is in.
    refreshes: Mapping[str, str] | Unknown = NOT_ASKED
    # By the Auto Scaling group's name.
    managed_node_groups: Mapping[str, ManagedNodeGroup] | Unknown = NOT_ASKED
    budgets: tuple[DisruptionBudget, ...] | Unknown = NOT_ASKED
    handlers: tuple[TerminationHandler, ...] | Unknown = NOT_ASKED
    # By URL.
    queues: Mapping[str, TerminationQueue] | Unknown = NOT_ASKED
    cleaners: tuple[DrainCleaner, ...] | Unknown = NOT_ASKED
    eviction_webhooks: tuple[EvictionWebhook, ...] | Unknown = NOT_ASKED
    admission_policies: tuple[AdmissionPolicy, ...] | Unknown = NOT_ASKED
    operators: tuple[Operator, ...] | Unknown = NOT_ASKED
    pending_releases: tuple[PendingRelease, ...] | Unknown = NOT_ASKED
    autoscalers: tuple[Autoscaler, ...] | Unknown = NOT_ASKED
    size_scalers: tuple[SizeScaler, ...] | Unknown = NOT_ASKED
    evictors: tuple[Evictor, ...] | Unknown = NOT_ASKED
    # Workloads whose account a role lets evict pods, or delete nodes.
    entitled: tuple[Evictor, ...] | Unknown = NOT_ASKED
    node_pools: Mapping[str, NodePool] | Unknown = NOT_ASKED
    # By its title.
    node_classes: Mapping[str, NodeClass] | Unknown = NOT_ASKED
    volumes: tuple[Volume, ...] | Unknown = NOT_ASKED
    # By its id at EBS; one that is gone is not in it.
    disks: Mapping[str, Disk] | Unknown = NOT_ASKED
    # What EBS's checks say of disks that are not ok: impaired (io-enabled: failed).
    disk_checks: Mapping[str, str] | Unknown = NOT_ASKED
    # How many snapshots of a disk are being made.
    disk_snapshots: Mapping[str, int] | Unknown = NOT_ASKED
    balanced: tuple[Balanced, ...] | Unknown = NOT_ASKED
    # Namespace -> labels by which its pods get readiness gates: the controller's, or Auto Mode's.
    gated_namespaces: Mapping[str, frozenset[str]] | Unknown = NOT_ASKED
    # Deleted, and gone as soon as what is in them is.
    ending_namespaces: frozenset[str] | Unknown = NOT_ASKED
    # In which a service mesh puts a proxy into new pods.
    injected_namespaces: frozenset[str] | Unknown = NOT_ASKED
    # Namespace -> the level at which Pod Security refuses pods in it: baseline or restricted.
    enforced_levels: Mapping[str, str] | Unknown = NOT_ASKED
    essentials: tuple[Essential, ...] | Unknown = NOT_ASKED
    quotas: tuple[Quota, ...] | Unknown = NOT_ASKED
    limit_ranges: tuple[LimitRange, ...] | Unknown = NOT_ASKED
    pod_webhooks: tuple[PodWebhook, ...] | Unknown = NOT_ASKED
    node_provisioners: tuple[NodeProvisioner, ...] | Unknown = NOT_ASKED
    volume_controllers: tuple[VolumeController, ...] | Unknown = NOT_ASKED
    balancer_controllers: tuple[BalancerController, ...] | Unknown = NOT_ASKED
    ingress_controllers: tuple[IngressController, ...] | Unknown = NOT_ASKED
    # By its ARN.
    target_groups: Mapping[str, TargetGroup] | Unknown = NOT_ASKED
    # By its id; those of the nodes and of their groups.
    subnets: Mapping[str, Subnet] | Unknown = NOT_ASKED
    # By the subnet's id.
    ways_out: Mapping[str, WayOut] | Unknown = NOT_ASKED
    # Of the VPCs of subnets without a default route.
    vpc_endpoints: tuple[VpcEndpoint, ...] | Unknown = NOT_ASKED
    # By what disks and templates call them.
    encryption_keys: Mapping[str, EncryptionKey] | Unknown = NOT_ASKED
    # Family of machines -> vCPUs on demand, of the families that Kafka's nodes are of.
    machine_quotas: Mapping[str, AccountQuota] | Unknown = NOT_ASKED
    # TiB of gp3, which root volumes are of.
    disk_quota: AccountQuota | Unknown = NOT_ASKED
    control_plane: ControlPlane | Unknown = NOT_ASKED
    fargate_profiles: tuple[FargateProfile, ...] | Unknown = NOT_ASKED
    upgrade_insights: tuple[Insight, ...] | Unknown = NOT_ASKED
    zonal_shifts: tuple[Shiftable, ...] | Unknown = NOT_ASKED
    aws_health: AwsHealth | Unknown = NOT_ASKED
    # Epoch seconds.
    read_at: float


Owned = TypeVar("Owned", KafkaPool, Pod, PodSet, Rebalance, Topic)


def every_kafka(seen: ClusterFacts) -> tuple[Kafka | OtherKafka, ...]:
    """Return every Kafka whose pods are known, whoever runs it."""
    return (*known_items(seen.kafkas), *known_items(seen.other_kafkas))


def parts_of(part: tuple[Owned, ...] | Unknown, kafka: Kafka | OtherKafka) -> list[Owned]:
    """Return what of a part belongs to one Kafka."""
    return [e for e in known_items(part) if (e.namespace, e.kafka) == (kafka.namespace, kafka.name)]


def pods_of(seen: ClusterFacts, kafka: Kafka | OtherKafka) -> list[Pod]:
    """Return the pods of one Kafka."""
    return parts_of(seen.pods, kafka)


def node_of(pod: Pod, seen: ClusterFacts) -> Node | None:
    """Return the node that holds a pod, where both are known."""
    return mapping_of(seen.nodes).get(pod.node or "")


def zone_of(pod: Pod, seen: ClusterFacts) -> str | None:
    """Return the zone of a pod's node, where both are known."""
    node = node_of(pod, seen)
    return None if node is None else node.zone


def machine_of(node: Node, seen: ClusterFacts) -> Instance | None:
    """Return the instance that a node is, where both are known."""
    return mapping_of(seen.instances).get(node.instance_id or "")


def machines_of(seen: ClusterFacts) -> dict[str, Instance]:
    """Return the instances that nodes are, by the nodes' names, as far as they are known."""
    nodes = mapping_of(seen.nodes).values()
    return {node.name: machine for node in nodes if (machine := machine_of(node, seen))}


def pool_names(seen: ClusterFacts) -> list[str]:
    """Return the NodePools that nodes of Kafka name."""
    return sorted({node.node_pool for node in mapping_of(seen.nodes).values() if node.node_pool})


def nodes_of(group: ScalingGroup, seen: ClusterFacts) -> list[Node]:
    """Return a group's nodes that hold pods of Kafka."""
    group_of = mapping_of(seen.group_of)
    return [
        node
        for node in mapping_of(seen.nodes).values()
        if node.instance_id and group_of.get(node.instance_id) == group.name
    ]


def pods_on(group: ScalingGroup, seen: ClusterFacts) -> list[Pod]:
    """Return the pods on a group's nodes."""
    mine = {node.name for node in nodes_of(group, seen)}
    return [pod for pod in known_items(seen.pods) if pod.node in mine]


def grace_of(pods: list[Pod] | tuple[Pod, ...]) -> int:
    """Return the longest time that any of some pods asks for to stop."""
    return max((pod.grace_seconds for pod in pods), default=0)


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
