"""Describes the machines: the EKS control plane, Kafka's node pools, their volumes.

Volumes may grow and speed up by themselves: what λ volumes may do is set in all and per pool.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from core.cluster.fields import (
    MOST_CPU_MILLIS,
    MOST_MIB,
    DnsLabel,
    EachOnce,
    Frozen,
    InstanceType,
    ZoneName,
    address_block,
)
from core.health.node import Role
from core.volumes import sizing
from core.volumes.sizing import Policy


class VolumePolicy(Frozen):
    """How a pool's volumes grow and speed up; what `volumes` of the pool asks for is their floor.

    Strimzi sizes the volumes of a node pool and zone together, so they change together.
    """

    act_days: Annotated[float, Field(ge=0.25, le=30)] = 3.0
    """Volumes grow when the growth of so many days no longer fits."""
    headroom_days: Annotated[float, Field(ge=1, le=365)] = 14.0
    """Until the growth of so many days fits."""
    free_percent: Annotated[int, Field(ge=5, le=50)] = 15
    """What stays free even then."""
    step_gib: Annotated[int, Field(ge=1, le=1024)] = 10
    """Sizes are multiples of it."""
    max_size_gib: Annotated[int, Field(ge=1, le=sizing.LARGEST_GIB)] = sizing.LARGEST_GIB
    """No volume is grown beyond it."""
    max_iops: Annotated[int, Field(ge=sizing.LEAST_IOPS, le=sizing.MOST_IOPS)] = sizing.MOST_IOPS
    """None is raised beyond it, nor beyond what its instance sustains."""
    max_throughput_mib_per_s: Annotated[
        int, Field(ge=sizing.LEAST_MIB_PER_S, le=sizing.MOST_MIB_PER_S)
    ] = sizing.MOST_MIB_PER_S
    """None is raised beyond it, nor beyond what its instance sustains."""
    exceeded_percent: Annotated[int, Field(ge=1, le=100)] = 10
    """Volumes are raised after demand above their limit for this part of the last hour."""
    quiet_hours: Annotated[int, Field(ge=6, le=168)] = 24
    """Raised volumes are lowered after so many hours in which less would have sufficed."""
    reserved_modifications: Annotated[int, Field(ge=1, le=3)] = 1
    """Modifications of AWS's four in 24 hours that are kept for a volume that is nearly full."""
    usd_per_minute_saved: Annotated[Decimal, Field(ge=0, le=1000)] = Decimal(0)
    """The worth of a minute less of resync, per broker. A rotation makes volumes faster if that
    costs less. 0: never.
    """

    @model_validator(mode="after")
    def _sooner_than_headroom(self) -> Self:
        if self.act_days >= self.headroom_days:
            raise ValueError(
                f"act_days {self.act_days:g} is not less than headroom_days "
                f"{self.headroom_days:g}: a volume just grown would ask to be grown again; raise "
                f"headroom_days"
            )
        return self


class Volumes(Frozen):
    """What λ volumes may do to Kafka's volumes."""

    mode: Literal["advise", "apply"] = "advise"
    """`advise`: the plan names changes. `apply`: the function changes volumes in the
    KafkaNodePools, and `stillwater up` no longer does.
    """
    max_monthly_increase_usd: Annotated[Decimal, Field(ge=0, le=1_000_000_000)] | None = None
    """What all volumes may cost a month above what the pools' `volumes` ask for. Null: no limit,
    which `apply` does not accept.
    """
    frozen: bool = False
    """Nothing is changed until it is false again. For one node pool, and at once:
    `kubectl annotate kafkanodepool NAME stillwater.dev/freeze-volumes=REASON`.
    """

    @property
    def applies(self) -> bool:
        return self.mode == "apply"

    @model_validator(mode="after")
    def _has_a_budget(self) -> Self:
        if self.applies and self.max_monthly_increase_usd is None:
            raise ValueError(
                "volumes.mode is apply and volumes.max_monthly_increase_usd is not set; set what "
                "the volumes may cost a month above the spec, 0 for nothing"
            )
        return self


ControlPlaneLog = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]
# What CloudWatch accepts; any other number is refused only while the cluster is being made.
LogRetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922,
    3288, 3653,
]  # fmt: skip


class Kubernetes(Frozen):
    """The EKS control plane and the nodes for everything that is not Kafka."""

    version: Annotated[str, StringConstraints(pattern=r"^1\.[0-9]{2}$")] = "1.35"
    """The EKS cluster's version. It moves up one minor version at a time."""
    upgrade_policy: Literal["standard", "extended"] = "standard"
    """Support after a version's fourteen months of standard support. `standard`: AWS upgrades the
    control plane by itself, so upgrade before. `extended`: twelve months more, at six times the
    price of the control plane.
    """
    namespace: DnsLabel = "kafka"
    """Kafka's own namespace, whose pods' readiness waits for the load balancer."""
    system_instance_type: InstanceType = "m7i.large"
    """The nodes of everything that is not Kafka."""
    system_nodes_per_zone: Annotated[int, Field(ge=1, le=10)] = 1
    """How many of them per availability zone."""
    public_access_cidrs: tuple[str, ...] = ()
    """Networks that may reach the API server from outside the VPC. Without one its address is
    private.
    """
    control_plane_logs: Annotated[tuple[ControlPlaneLog, ...], EachOnce] = (
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    )
    """Which of the control plane's logs go to CloudWatch."""
    control_plane_log_retention_days: LogRetentionDays = 90
    """How long CloudWatch keeps them; it accepts these numbers and no other."""
    node_monitoring: bool = True
    """Install EKS's node monitoring agent, which writes a machine's faults on its Node. A sick
    machine is then replaced before it dies.
    """
    addon_versions: dict[str, str] = Field(default_factory=dict)
    """EKS add-on -> version, in place of the version this release was made with."""

    @field_validator("public_access_cidrs")
    @classmethod
    def _names_somebody(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for block in value:
            if address_block(block).prefixlen == 0:
                raise ValueError(
                    f"{block} opens the API server to any address; name the networks that you call "
                    "from"
                )
        return value


class Storage(Frozen):
    """One gp3 volume of a Kafka node. Reclaim policy Retain and encryption are not settings."""

    size_gib: Annotated[int, Field(ge=sizing.SMALLEST_GIB, le=sizing.LARGEST_GIB)] = 500
    """Its size. EBS volumes grow and never shrink."""
    iops: Annotated[int, Field(ge=sizing.LEAST_IOPS, le=sizing.MOST_IOPS)] = 3000
    """Provisioned IOPS; gp3 includes 3,000 and allows 500 per GiB."""
    throughput_mib_per_s: Annotated[
        int, Field(ge=sizing.LEAST_MIB_PER_S, le=sizing.MOST_MIB_PER_S)
    ] = 125
    """Provisioned throughput; gp3 includes 125 and allows 0.25 per IOPS."""

    @property
    def gp3(self) -> sizing.Gp3:
        performance = sizing.Performance(self.iops, self.throughput_mib_per_s)
        return sizing.Gp3(self.size_gib, performance)

    @model_validator(mode="after")
    def _check_gp3(self) -> Self:
        for sentence in sizing.ratios(self.gp3):
            raise ValueError(sentence)
        return self


class Snapshots(Frozen):
    """Scheduled snapshots of every Kafka volume."""

    every_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 24
    """How often; what Data Lifecycle Manager offers."""
    start_at_utc: Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] = (
        "03:00"
    )
    """When the first of a day is taken, HH:MM."""
    kept: Annotated[int, Field(ge=1, le=1000)] = 7
    """How many of each volume; older ones are deleted."""


class NodePool(Frozen):
    """Kafka nodes of one role; provisioned as one Auto Scaling group per availability zone."""

    name: DnsLabel
    """The pool's name; part of every node's, pod's and volume's."""
    role: Role
    """What its Kafka nodes do."""
    instance_type: InstanceType
    """On demand, never Spot. Its EBS baseline should carry its volumes' throughput."""
    zones: Annotated[tuple[ZoneName, ...], Field(min_length=1)] | None = None
    """Those of `availability_zones` it stands in; null: all. Name them for controllers: a zone
    added later then adds none, and the voters of a live cluster cannot change.
    """
    nodes_per_zone: Annotated[int, Field(ge=1, le=50)] = 1
    """Kafka nodes, and EC2 instances, per availability zone."""
    spare_nodes_per_zone: Annotated[int, Field(ge=0, le=50)] = 0
    """Brokers to come, per zone: their listeners, target groups and bindings exist already, so that
    their readiness gates are in place.
    """
    first_node_id: Annotated[int, Field(ge=0, le=100_000)]
    """The first Kafka node id in the first of `availability_zones`, whether it stands there or not:
    the zones it stands in change no id.
    """
    node_ids_per_zone: Annotated[int, Field(ge=1, le=1000)] = 10
    """Node ids reserved per zone, so that adding a node moves no other id."""
    volumes: Annotated[tuple[Storage, ...], Field(min_length=1, max_length=16)] = (Storage(),)
    """One gp3 volume each per node (JBOD)."""
    volumes_may_burst: bool = False
    """Volumes may together be faster than their instance sustains: small sizes burst."""
    volume_policy: VolumePolicy = VolumePolicy()
    """How its volumes grow and speed up."""
    heap_mib: Annotated[int, Field(ge=128, le=MOST_MIB)] = 4096
    """Kafka's Java heap; the page cache wants the larger rest."""
    memory_request_mib: Annotated[int, Field(ge=256, le=MOST_MIB)] = 8192
    """The pod's memory, request and limit."""
    cpu_request_millis: Annotated[int, Field(ge=50, le=MOST_CPU_MILLIS)] = 1000
    """The pod's CPU request, in thousandths of a core."""

    def policy(self, *, apply: bool = False) -> Policy:
        """Return the policy of its volumes as core.volumes reads it."""
        stated = self.volume_policy
        return Policy(
            apply=apply,
            act_days=stated.act_days,
            headroom_days=stated.headroom_days,
            free_share=stated.free_percent / 100,
            step_gib=stated.step_gib,
            largest_gib=stated.max_size_gib,
            ceiling=sizing.Performance(stated.max_iops, stated.max_throughput_mib_per_s),
            exceeded_share=stated.exceeded_percent / 100,
            quiet_seconds=stated.quiet_hours * 3600,
            reserved_slots=stated.reserved_modifications,
            usd_per_minute_saved=float(stated.usd_per_minute_saved),
            grow_only=not self.role.is_broker,
            votes=self.role.is_controller,
            may_burst=self.volumes_may_burst,
        )

    @model_validator(mode="after")
    def _ids_fit(self) -> Self:
        if self.nodes_per_zone > self.node_ids_per_zone:
            raise ValueError(
                f"pool {self.name} runs {self.nodes_per_zone} nodes per zone but reserves only "
                f"{self.node_ids_per_zone} node ids per zone; raise node_ids_per_zone"
            )
        if self.spare_nodes_per_zone and not self.role.is_broker:
            raise ValueError(
                f"pool {self.name} has no brokers, so nothing is prepared for its spare nodes; "
                f"set spare_nodes_per_zone to 0"
            )
        if self.nodes_per_zone + self.spare_nodes_per_zone > self.node_ids_per_zone:
            raise ValueError(
                f"pool {self.name} runs {self.nodes_per_zone} nodes per zone and prepares "
                f"{self.spare_nodes_per_zone} more but reserves only {self.node_ids_per_zone} "
                f"node ids per zone; raise node_ids_per_zone"
            )
        return self

    @model_validator(mode="after")
    def _heap_fits(self) -> Self:
        if self.heap_mib >= self.memory_request_mib:
            # The request is the pod's limit, too.
            raise ValueError(
                f"heap_mib {self.heap_mib} of pool {self.name} leaves nothing of its "
                f"memory_request_mib {self.memory_request_mib}; lower heap_mib to half of it, so "
                "that the page cache has the rest"
            )
        return self
