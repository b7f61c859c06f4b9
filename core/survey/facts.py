"""One EKS cluster with everything read of it. A part that could not be read is an Unread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from core.survey.account_facts import (
    AccountQuota,
    AwsHealth,
    ControlPlane,
    Disk,
    EncryptionKey,
    Insight,
    Shiftable,
    Subnet,
    TargetGroup,
    VpcEndpoint,
    WayOut,
)
from core.survey.kafka_facts import (
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
from core.survey.node_facts import (
    FargateProfile,
    Instance,
    MachineStatus,
    MachineTemplate,
    ManagedNodeGroup,
    Node,
    NodeClass,
    NodePool,
    ScaleIn,
    ScalingGroup,
)
from core.survey.tool_facts import (
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
    PodWebhook,
    Quota,
    SizeScaler,
    TerminationHandler,
    TerminationQueue,
    VolumeController,
)
from core.unread import Unread, mapping_of, of


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """One EKS cluster with everything read of it."""

    kafkas: tuple[Kafka, ...] | Unread
    pools: tuple[KafkaPool, ...] | Unread
    pod_sets: tuple[PodSet, ...] | Unread
    rebalances: tuple[Rebalance, ...] | Unread
    # Versions in which its API server serves Strimzi's resources, and StrimziPodSets.
    kafka_versions: frozenset[str] | Unread
    pod_set_versions: frozenset[str] | Unread
    topics: tuple[Topic, ...] | Unread
    other_kafkas: tuple[OtherKafka, ...] | Unread
    pods: tuple[Pod, ...] | Unread
    # Images of Kafka's pods that their registry at ECR has no more.
    lost_images: frozenset[str] | Unread
    # Pods of others on the nodes of Kafka's.
    neighbours: tuple[Neighbour, ...] | Unread
    # Pods of others, wherever they are, of a priority above the usual one.
    rivals: tuple[Rival, ...] | Unread
    zookeepers: tuple[ZooKeeperPod, ...] | Unread
    nodes: Mapping[str, Node] | Unread
    instances: Mapping[str, Instance] | Unread
    # Instance id -> what EC2 says beside its description; most are not in it.
    statuses: Mapping[str, MachineStatus] | Unread
    # Instance id -> group's name; an instance of no group is not in it.
    group_of: Mapping[str, str] | Unread
    groups: Mapping[str, ScalingGroup] | Unread
    # By the group's name.
    templates: Mapping[str, tuple[MachineTemplate, ...]] | Unread
    # Instance profile of a template's -> its role; None: it is gone, or has none.
    node_roles: Mapping[str, str | None] | Unread
    # Roles that the cluster knows, by access entries or aws-auth; asked where there are such.
    admitted_roles: frozenset[str] | Unread
    # By the group's name; a group that nothing shrinks is not in it.
    scale_ins: Mapping[str, tuple[ScaleIn, ...]] | Unread
    # Group's name -> the state of the instance refresh it is in.
    refreshes: Mapping[str, str] | Unread
    # By the Auto Scaling group's name.
    managed_node_groups: Mapping[str, ManagedNodeGroup] | Unread
    budgets: tuple[DisruptionBudget, ...] | Unread
    handlers: tuple[TerminationHandler, ...] | Unread
    # By URL.
    queues: Mapping[str, TerminationQueue] | Unread
    cleaners: tuple[DrainCleaner, ...] | Unread
    eviction_webhooks: tuple[EvictionWebhook, ...] | Unread
    admission_policies: tuple[AdmissionPolicy, ...] | Unread
    operators: tuple[Operator, ...] | Unread
    autoscalers: tuple[Autoscaler, ...] | Unread
    size_scalers: tuple[SizeScaler, ...] | Unread
    evictors: tuple[Evictor, ...] | Unread
    # Workloads whose account a role lets evict pods, or delete nodes.
    entitled: tuple[Evictor, ...] | Unread
    node_pools: Mapping[str, NodePool] | Unread
    # By its title.
    node_classes: Mapping[str, NodeClass] | Unread
    volumes: tuple[Volume, ...] | Unread
    # By its id at EBS; one that is gone is not in it.
    disks: Mapping[str, Disk] | Unread
    # What EBS's checks say of disks that are not ok: impaired (io-enabled: failed).
    disk_checks: Mapping[str, str] | Unread
    # How many snapshots of a disk are being made.
    disk_snapshots: Mapping[str, int] | Unread
    balanced: tuple[Balanced, ...] | Unread
    # Namespace -> labels by which its pods get readiness gates: the controller's, or Auto Mode's.
    gated_namespaces: Mapping[str, frozenset[str]] | Unread
    # Deleted, and gone as soon as what is in them is.
    ending_namespaces: frozenset[str] | Unread
    # In which a service mesh puts a proxy into new pods.
    injected_namespaces: frozenset[str] | Unread
    # Namespace -> the level at which Pod Security refuses pods in it: baseline or restricted.
    enforced_levels: Mapping[str, str] | Unread
    essentials: tuple[Essential, ...] | Unread
    quotas: tuple[Quota, ...] | Unread
    limit_ranges: tuple[LimitRange, ...] | Unread
    pod_webhooks: tuple[PodWebhook, ...] | Unread
    node_provisioners: tuple[NodeProvisioner, ...] | Unread
    volume_controllers: tuple[VolumeController, ...] | Unread
    balancer_controllers: tuple[BalancerController, ...] | Unread
    ingress_controllers: tuple[IngressController, ...] | Unread
    # By its ARN.
    target_groups: Mapping[str, TargetGroup] | Unread
    # By its id; those of the nodes and of their groups.
    subnets: Mapping[str, Subnet] | Unread
    # By the subnet's id.
    ways_out: Mapping[str, WayOut] | Unread
    # Of the VPCs of subnets without a default route.
    vpc_endpoints: tuple[VpcEndpoint, ...] | Unread
    # By what disks and templates call them.
    encryption_keys: Mapping[str, EncryptionKey] | Unread
    # Family of machines -> vCPUs on demand, of the families that Kafka's nodes are of.
    machine_quotas: Mapping[str, AccountQuota] | Unread
    # TiB of gp3, which root volumes are of.
    disk_quota: AccountQuota | Unread
    control_plane: ControlPlane | Unread
    fargate_profiles: tuple[FargateProfile, ...] | Unread
    upgrade_insights: tuple[Insight, ...] | Unread
    zonal_shifts: tuple[Shiftable, ...] | Unread
    aws_health: AwsHealth | Unread
    # Epoch seconds.
    read_at: float


Owned = TypeVar("Owned", KafkaPool, Pod, PodSet, Rebalance, Topic)
# Of a part that whoever reads had no need of: nothing is known of it, and nothing is amiss.
NOT_ASKED = Unread("nobody asked")


def only(read_at: float, **parts: Any) -> Surveyed:
    """Return a cluster of which only some parts were asked for."""
    names = (field.name for field in fields(Surveyed))
    return Surveyed(**dict.fromkeys(names, NOT_ASKED) | parts | {"read_at": read_at})


def every_kafka(seen: Surveyed) -> tuple[Kafka | OtherKafka, ...]:
    """Return every Kafka whose pods are known, whoever runs it."""
    return (*of(seen.kafkas), *of(seen.other_kafkas))


def of_kafka(part: tuple[Owned, ...] | Unread, kafka: Kafka | OtherKafka) -> list[Owned]:
    """Return what of a part belongs to one Kafka."""
    return [e for e in of(part) if (e.namespace, e.kafka) == (kafka.namespace, kafka.name)]


def pods_of(seen: Surveyed, kafka: Kafka | OtherKafka) -> list[Pod]:
    """Return the pods of one Kafka."""
    return of_kafka(seen.pods, kafka)


def node_of(pod: Pod, seen: Surveyed) -> Node | None:
    """Return the node that holds a pod, where both are known."""
    return mapping_of(seen.nodes).get(pod.node or "")


def zone_of(pod: Pod, seen: Surveyed) -> str | None:
    """Return the zone of a pod's node, where both are known."""
    node = node_of(pod, seen)
    return None if node is None else node.zone


def machine_of(node: Node, seen: Surveyed) -> Instance | None:
    """Return the instance that a node is, where both are known."""
    return mapping_of(seen.instances).get(node.instance_id or "")


def machines_of(seen: Surveyed) -> dict[str, Instance]:
    """Return the instances that nodes are, by the nodes' names, as far as they are known."""
    nodes = mapping_of(seen.nodes).values()
    return {node.name: machine for node in nodes if (machine := machine_of(node, seen))}


def pool_names(seen: Surveyed) -> list[str]:
    """Return the NodePools that nodes of Kafka name."""
    return sorted({node.node_pool for node in mapping_of(seen.nodes).values() if node.node_pool})


def nodes_of(group: ScalingGroup, seen: Surveyed) -> list[Node]:
    """Return a group's nodes that hold pods of Kafka."""
    group_of = mapping_of(seen.group_of)
    return [
        node
        for node in mapping_of(seen.nodes).values()
        if node.instance_id and group_of.get(node.instance_id) == group.name
    ]


def pods_on(group: ScalingGroup, seen: Surveyed) -> list[Pod]:
    """Return the pods on a group's nodes."""
    mine = {node.name for node in nodes_of(group, seen)}
    return [pod for pod in of(seen.pods) if pod.node in mine]


def grace_of(pods: list[Pod] | tuple[Pod, ...]) -> int:
    """Return the longest time that any of some pods asks for to stop."""
    return max((pod.grace_seconds for pod in pods), default=0)
