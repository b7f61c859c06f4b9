"""ClusterSpec: the one validated description of a cluster, from which every stack is rendered.

The only module of core that imports pydantic. Lambda code never imports it: infra renders the few
values a handler needs into its environment.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from core import naming
from core.errors import InvalidInput

DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$")]
# Strimzi's CRD admits no dash in a listener's name (research: strimzi-and-kafka 1.3).
ListenerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,11}$")]
ZoneName = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z]$")]
InstanceType = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$")]
Seconds = Annotated[int, Field(ge=1)]
# AWS's quota of a network load balancer; it cannot be raised.
LISTENERS_PER_LOAD_BALANCER = 50
VpcId = Annotated[str, StringConstraints(pattern=r"^vpc-[0-9a-f]{8,17}$")]
SubnetId = Annotated[str, StringConstraints(pattern=r"^subnet-[0-9a-f]{8,17}$")]
RouteTableId = Annotated[str, StringConstraints(pattern=r"^rtb-[0-9a-f]{8,17}$")]
ControlPlaneLog = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]
# What CloudWatch accepts; any other number is refused only while the cluster is being made.
LogRetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922
]
LAST_PORT = 65_535
# RFC 1123; a pod's host name and a Service's are one label each.
DNS_LABEL_LIMIT = 63
# Where pydantic's words are about Python, or name no remedy.
_PLAIN_WORDS = {
    "extra_forbidden": "there is no such setting; remove it or correct its name",
    "missing": "it is required; add it",
    "model_type": "it must be a mapping of settings to values",
    "dict_type": "it must be a mapping of settings to values",
    "tuple_type": "it must be a list",
    "too_short": "it has {actual_length} entries and needs at least {min_length}",
    "too_long": "it has {actual_length} entries and takes at most {max_length}",
    "string_pattern_mismatch": "it must match {pattern}",
}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Role(StrEnum):
    """What a Kafka node does; `combined` nodes are both."""

    BROKER = "broker"
    CONTROLLER = "controller"
    COMBINED = "combined"

    @property
    def is_broker(self) -> bool:
        return self is not Role.CONTROLLER

    @property
    def is_controller(self) -> bool:
        return self is not Role.BROKER


class ExistingNetwork(_Frozen):
    """A VPC that somebody else owns: it is used and never changed.

    Its private subnets must have a way out (NAT) or every endpoint a node needs.
    """

    vpc_id: VpcId
    # Availability zone -> the private subnet whose nodes, volumes and targets live there.
    private_subnet_ids: dict[ZoneName, SubnetId]
    # Where the gateway endpoints of S3 and DynamoDB are entered; empty: none are made.
    private_route_table_ids: tuple[RouteTableId, ...] = ()


class Network(_Frozen):
    """The VPC: one private subnet per availability zone."""

    # Of an existing VPC: the block it has.
    vpc_cidr: str = "10.40.0.0/16"
    existing: ExistingNetwork | None = None
    # PrivateLink endpoints for every AWS API a node or function calls: none of it leaves through
    # NAT. AWS bills each per hour and zone, so small clusters do without.
    interface_endpoints: bool = False

    @field_validator("vpc_cidr")
    @classmethod
    def _is_a_private_block(cls, value: str) -> str:
        block = ipaddress.ip_network(value)
        if block.version != 4 or not 16 <= block.prefixlen <= 20 or not block.is_private:
            raise ValueError(
                f"{value} must be a private IPv4 block between /16 and /20, such as 10.40.0.0/16"
            )
        return value


class Kubernetes(_Frozen):
    """The EKS control plane and the nodes for everything that is not Kafka."""

    version: Annotated[str, StringConstraints(pattern=r"^1\.\d{2}$")] = "1.35"
    namespace: DnsLabel = "kafka"
    system_instance_type: InstanceType = "m7i.large"
    system_nodes_per_zone: Annotated[int, Field(ge=1, le=10)] = 1
    # Who may reach the API server from outside the VPC; empty: nobody, its address is private.
    public_access_cidrs: tuple[str, ...] = ()
    control_plane_logs: tuple[ControlPlaneLog, ...] = (
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    )
    control_plane_log_retention_days: LogRetentionDays = 90
    # EKS add-on -> version, in place of the version this release was made with.
    addon_versions: dict[str, str] = Field(default_factory=dict)

    @field_validator("public_access_cidrs")
    @classmethod
    def _names_somebody(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for block in value:
            if ipaddress.ip_network(block).prefixlen == 0:
                raise ValueError(
                    f"{block} opens the API server to everybody; name the networks you call from"
                )
        return value


class Storage(_Frozen):
    """One gp3 volume of a Kafka node. Reclaim policy Retain and encryption are not settings."""

    size_gib: Annotated[int, Field(ge=1, le=65536)] = 500
    iops: Annotated[int, Field(ge=3000, le=80000)] = 3000
    throughput_mib_per_s: Annotated[int, Field(ge=125, le=2000)] = 125

    @model_validator(mode="after")
    def _within_gp3(self) -> Self:
        if self.iops > 3000 and self.iops > 500 * self.size_gib:
            raise ValueError(
                f"iops {self.iops} exceeds gp3's 500 per GiB ({500 * self.size_gib} for "
                f"{self.size_gib} GiB); raise size_gib or lower iops"
            )
        if self.throughput_mib_per_s > self.iops / 4:
            raise ValueError(
                f"throughput_mib_per_s {self.throughput_mib_per_s} exceeds gp3's 0.25 per IOPS "
                f"({self.iops / 4:.0f} for {self.iops} IOPS); raise iops or lower it"
            )
        return self


class Snapshots(_Frozen):
    """Scheduled snapshots of every Kafka volume."""

    # What Data Lifecycle Manager offers.
    every_hours: Literal[1, 2, 3, 4, 6, 8, 12, 24] = 24
    start_at_utc: Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")] = "03:00"
    # Of each volume; older ones are deleted.
    kept: Annotated[int, Field(ge=1, le=1000)] = 7


class NodePool(_Frozen):
    """Kafka nodes of one role; provisioned as one Auto Scaling group per availability zone."""

    name: DnsLabel
    role: Role
    instance_type: InstanceType
    nodes_per_zone: Annotated[int, Field(ge=1, le=50)] = 1
    # Brokers to come, per zone: their listeners, target groups and bindings exist already, so that
    # whoever adds them first finds their readiness gates in place.
    spare_nodes_per_zone: Annotated[int, Field(ge=0, le=50)] = 0
    first_node_id: Annotated[int, Field(ge=0, le=100_000)]
    node_ids_per_zone: Annotated[int, Field(ge=1, le=1000)] = 10
    volumes: Annotated[tuple[Storage, ...], Field(min_length=1, max_length=16)] = (Storage(),)
    heap_mib: Annotated[int, Field(ge=128)] = 4096
    memory_request_mib: Annotated[int, Field(ge=256)] = 8192
    cpu_request_millis: Annotated[int, Field(ge=50)] = 1000

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
                f"memory_request_mib {self.memory_request_mib}, and the kernel kills the pod; "
                f"lower heap_mib to half of it, so that the page cache has the rest"
            )
        return self


class LoadBalancer(_Frozen):
    """The network load balancer in front of the brokers, inside the VPC."""

    # Networks beside the VPC's own whose clients may connect: peered VPCs, an office.
    client_cidrs: tuple[str, ...] = ()
    # Accounts, users or roles, by ARN, that may connect through PrivateLink; empty: no endpoint
    # service is made.
    endpoint_principals: tuple[str, ...] = ()
    # The private hosted zone in which listener.advertised_host gets its record; None: the name is
    # looked after elsewhere.
    private_zone: str | None = None

    @field_validator("client_cidrs")
    @classmethod
    def _are_blocks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for block in value:
            ipaddress.ip_network(block)
        return value

    @field_validator("endpoint_principals")
    @classmethod
    def _names_principals(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for principal in value:
            if not principal.startswith("arn:"):
                raise ValueError(
                    f"{principal} is no principal; name an account's, user's or role's ARN, such "
                    f"as arn:aws:iam::111122223333:root (a * would be everybody)"
                )
        return value


class Listener(_Frozen):
    """The Kafka listener that clients outside the cluster reach through the load balancer."""

    name: ListenerName = "nlb"
    port: Annotated[int, Field(ge=9092, le=65535)] = 9094
    tls: bool = True
    advertised_host: str = "kafka.stillwater.internal"
    first_advertised_port: Annotated[int, Field(ge=1024, le=60000)] = 10000
    bootstrap_port: Annotated[int, Field(ge=1024, le=65535)] = 9094


class InternalListener(_Frozen):
    """The Kafka listener for clients inside the cluster: Connect's workers, and every user."""

    port: Annotated[int, Field(ge=9092, le=65535)] = 9093
    tls: bool = True
    authentication: Literal["none", "tls", "scram-sha-512"] = "none"

    @model_validator(mode="after")
    def _certificates_need_tls(self) -> Self:
        if self.authentication == "tls" and not self.tls:
            raise ValueError(
                "authentication tls shows a client's certificate, which only a listener with tls "
                "asks for; set tls to true or authentication to scram-sha-512"
            )
        return self


class Probe(_Frozen):
    """When the kubelet asks, and how often it takes no for an answer."""

    initial_delay_seconds: Annotated[int, Field(ge=0)] = 15
    period_seconds: Seconds = 10
    timeout_seconds: Seconds = 5
    failure_threshold: Annotated[int, Field(ge=1)] = 3


class Probes(_Frozen):
    """Kafka's probes. Strimzi has one set for brokers and controllers: no pool has its own."""

    readiness: Probe = Probe()
    # The shipped liveness script only looks for a Java process, which a broker is from its first
    # second on; a long log recovery cannot fail it.
    liveness: Probe = Probe()


class Metrics(_Frozen):
    """What Kafka and Connect expose to Prometheus; nothing is exposed that no list names."""

    enabled: bool = True
    # Regular expressions over metric names, added to the list this project reads itself.
    allow: tuple[str, ...] = ()
    # Whether the Prometheus operator is there, for which pods are described and alerts written.
    prometheus_operator: bool = False

    @field_validator("allow")
    @classmethod
    def _are_expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for expression in value:
            try:
                re.compile(expression)
            except re.error as error:
                raise ValueError(f"{expression!r} is no regular expression: {error}") from None
        return value


class Kafka(_Frozen):
    """Kafka's own settings."""

    version: str = "4.2.0"
    metadata_version: str = "4.2-IV1"
    default_replication_factor: Annotated[int, Field(ge=1)] = 3
    min_insync_replicas: Annotated[int, Field(ge=1)] = 2
    listener: Listener = Listener()
    internal_listener: InternalListener = InternalListener()
    probes: Probes = Probes()
    # Merged over the defaults; keys that Strimzi owns are refused by Strimzi itself.
    config: dict[str, str | int | bool] = Field(default_factory=dict)


class Strimzi(_Frozen):
    """Who runs the cluster operator: this project, from its chart, or somebody before it."""

    operator: Literal["chart", "external"] = "chart"
    namespace: DnsLabel = "strimzi"
    replicas: Annotated[int, Field(ge=1, le=5)] = 2


class Connect(_Frozen):
    """A Kafka Connect cluster beside Kafka, on the system nodes."""

    replicas: Annotated[int, Field(ge=1, le=50)] = 3
    heap_mib: Annotated[int, Field(ge=128)] = 1024
    memory_request_mib: Annotated[int, Field(ge=256)] = 2048
    cpu_request_millis: Annotated[int, Field(ge=50)] = 500
    grace_seconds: Seconds = 60
    # Until then a worker that starts, or rebalances for long, is not restarted for it.
    startup_seconds: Annotated[int, Field(ge=30, le=3600)] = 120
    # An image with connectors in it; none: Strimzi's own.
    image: str | None = None
    # Merged over the defaults; keys that Strimzi owns are refused by Strimzi itself.
    config: dict[str, str | int | bool] = Field(default_factory=dict)


class Topic(_Frozen):
    """A topic; it outlives its entry here, because deleting it loses data."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 12
    # None: Kafka's default_replication_factor.
    replication_factor: Annotated[int | None, Field(ge=1, le=32)] = None
    config: dict[str, str | int | bool] = Field(default_factory=dict)


class Acl(_Frozen):
    """What a user may do with a topic, a consumer group, or the cluster."""

    resource: Literal["topic", "group", "cluster", "transactionalId"]
    # "*" is every resource of its kind; the cluster has no name.
    name: str = "*"
    prefix: bool = False
    operations: Annotated[
        tuple[
            Literal[
                "All",
                "Alter",
                "AlterConfigs",
                "ClusterAction",
                "Create",
                "Delete",
                "Describe",
                "DescribeConfigs",
                "IdempotentWrite",
                "Read",
                "Write",
            ],
            ...,
        ],
        Field(min_length=1),
    ]


class User(_Frozen):
    """A client with a name: how it authenticates is the internal listener's choice."""

    name: DnsLabel
    acls: tuple[Acl, ...] = ()
    producer_bytes_per_s: Annotated[int | None, Field(ge=1)] = None
    consumer_bytes_per_s: Annotated[int | None, Field(ge=1)] = None


class Timings(_Frozen):
    """Every timeout in the system; core.timing holds the inequalities between them."""

    # Kafka. The broker waits up to 300 s for its controlled shutdown (KafkaBroker.shutdown).
    controlled_shutdown_seconds: Seconds = 300
    pod_grace_seconds: Seconds = 330
    broker_session_timeout_seconds: Seconds = 9
    broker_heartbeat_interval_seconds: Seconds = 2
    post_condition_hold_seconds: Seconds = 30
    post_condition_wait_seconds: Seconds = 1800
    broker_connections_max_idle_seconds: Seconds = 240
    client_connections_max_idle_seconds: Seconds = 240
    # How long a node that shuts down waits for its pods; kubelet's shutdownGracePeriod.
    node_shutdown_seconds: Seconds = 420
    # Node termination handler.
    nth_drain_timeout_seconds: Seconds = 420
    nth_visibility_timeout_seconds: Annotated[int, Field(ge=1, le=119)] = 110
    nth_max_receive_count: Annotated[int, Field(ge=1, le=1000)] = 40
    nth_queue_retention_seconds: Annotated[int, Field(ge=60, le=1_209_600)] = 172_800
    # Lifecycle hooks.
    hook_heartbeat_timeout_seconds: Annotated[int, Field(ge=30, le=7200)] = 900
    hook_heartbeats: Annotated[int, Field(ge=1, le=1000)] = 60
    hold_limit_seconds: Seconds = 14_400
    # Load balancer.
    nlb_health_interval_seconds: Annotated[int, Field(ge=5, le=300)] = 5
    nlb_health_timeout_seconds: Annotated[int, Field(ge=2, le=120)] = 5
    nlb_healthy_threshold: Annotated[int, Field(ge=2, le=10)] = 2
    nlb_registration_seconds: Seconds = 300
    nlb_idle_timeout_seconds: Annotated[int, Field(ge=60, le=6000)] = 350
    # By then the broker has ended its connections itself; what is left points at a dead address.
    nlb_deregistration_seconds: Annotated[int, Field(ge=0, le=3600)] = 30
    lbc_requeue_seconds: Seconds = 5
    lbc_max_backoff_seconds: Seconds = 30
    # Strimzi.
    strimzi_operation_timeout_seconds: Seconds = 600
    # Connect. GET /health answers 500 and 503 only after its own 10 s (KIP-1017).
    connect_probe_timeout_seconds: Seconds = 12
    # Our own Lambdas and queues.
    lambda_timeout_seconds: Annotated[int, Field(ge=1, le=900)] = 60
    queue_visibility_timeout_seconds: Annotated[int, Field(ge=1, le=43_200)] = 360
    events_queue_retention_seconds: Annotated[int, Field(ge=60, le=1_209_600)] = 345_600
    tick_interval_seconds: Annotated[int, Field(ge=1, le=900)] = 15


class ClusterSpec(_Frozen):
    """One Kafka cluster on one EKS cluster."""

    name: DnsLabel
    environment: DnsLabel
    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
    availability_zones: Annotated[tuple[ZoneName, ...], Field(min_length=1, max_length=6)]
    pools: Annotated[tuple[NodePool, ...], Field(min_length=1)]
    network: Network = Network()
    kubernetes: Kubernetes = Kubernetes()
    kafka: Kafka = Kafka()
    load_balancer: LoadBalancer = LoadBalancer()
    strimzi: Strimzi = Strimzi()
    metrics: Metrics = Metrics()
    connect: Connect | None = None
    topics: tuple[Topic, ...] = ()
    users: tuple[User, ...] = ()
    timings: Timings = Timings()
    # Only `asg` is built so far.
    node_provisioner: Literal["asg", "karpenter"] = "asg"
    # With asg: adds nodes for pods that fit nowhere. It never takes one of Kafka's away.
    cluster_autoscaler: bool = True
    # None: no snapshots are taken.
    snapshots: Snapshots | None = Snapshots()
    # An environment that may be destroyed: nothing in it is protected from deletion.
    ephemeral: bool = False
    drain_route: Literal["held", "direct"] = "held"
    # A scale-in that no replacement follows: page and wait, or let the node go.
    scale_in: Literal["restore", "release"] = "restore"
    isr_margin: Annotated[int, Field(ge=0, le=3)] = 1
    tags: dict[str, str] = Field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Prefix of every AWS resource's name: unique per environment and cluster."""
        return f"{self.environment}-{self.name}"

    @property
    def _brokers(self) -> int:
        return len(self.availability_zones) * sum(
            pool.nodes_per_zone for pool in self.pools if pool.role.is_broker
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = [
            *self._zone_problems(),
            *self._pool_problems(),
            *self._listener_problems(),
            *self._name_problems(),
            *self._replication_problems(),
            *self._load_balancer_problems(),
            *self._topic_problems(),
            *self._user_problems(),
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _load_balancer_problems(self) -> list[str]:
        listener, zone = self.kafka.listener, self.load_balancer.private_zone
        problems = []
        if zone is not None and not f".{listener.advertised_host}".endswith(f".{zone}"):
            problems.append(
                f"advertised_host {listener.advertised_host} is not in the private_zone {zone}; "
                f"change one of them"
            )
        prepared = len(self.availability_zones) * sum(
            pool.nodes_per_zone + pool.spare_nodes_per_zone
            for pool in self.pools
            if pool.role.is_broker
        )
        if prepared > LISTENERS_PER_LOAD_BALANCER - 1:
            problems.append(
                f"{prepared} brokers, spare ones included, and the bootstrap need "
                f"{prepared + 1} listeners, and AWS allows {LISTENERS_PER_LOAD_BALANCER} on a "
                f"load balancer for good; lower nodes_per_zone or spare_nodes_per_zone"
            )
        return problems

    def _zone_problems(self) -> list[str]:
        problems = [
            f"availability zone {zone} is not in region {self.region}"
            for zone in self.availability_zones
            if zone[:-1] != self.region
        ]
        if len(set(self.availability_zones)) != len(self.availability_zones):
            problems.append("availability_zones names a zone twice; name each once")
        existing = self.network.existing
        given = set(existing.private_subnet_ids) if existing else set(self.availability_zones)
        problems += [
            f"network.existing names no private subnet for availability zone {zone}; add one"
            for zone in self.availability_zones
            if zone not in given
        ]
        problems += [
            f"network.existing names a subnet in {zone}, which is not in availability_zones"
            for zone in sorted(given - set(self.availability_zones))
        ]
        return problems

    def _pool_problems(self) -> list[str]:
        problems = []
        if len({pool.name for pool in self.pools}) != len(self.pools):
            problems.append("two pools have the same name; give each its own")
        if not any(pool.role.is_broker for pool in self.pools):
            problems.append("no pool has brokers; add one with role broker or combined")
        if not any(pool.role.is_controller for pool in self.pools):
            problems.append("no pool has controllers; add one with role controller or combined")
        zones = len(self.availability_zones)
        ranges = sorted(
            (p.first_node_id, p.first_node_id + zones * p.node_ids_per_zone - 1, p.name)
            for p in self.pools
        )
        problems += [
            f"node ids of pools {a[2]} ({a[0]}-{a[1]}) and {b[2]} ({b[0]}-{b[1]}) overlap; "
            f"move first_node_id of one"
            for a, b in itertools.pairwise(ranges)
            if b[0] <= a[1]
        ]
        return problems

    def _listener_problems(self) -> list[str]:
        listener = self.kafka.listener
        ports = sorted(
            naming.advertised_port(listener.first_advertised_port, node_id)
            for pool in self.pools
            if pool.role.is_broker
            for index in range(len(self.availability_zones))
            for node_id in naming.node_ids(pool.first_node_id, pool.node_ids_per_zone, index)
        )
        problems = []
        if ports and ports[-1] > LAST_PORT:
            problems.append(
                f"the last broker would be advertised at port {ports[-1]}, and ports end at "
                f"{LAST_PORT}; lower kafka.listener.first_advertised_port or first_node_id"
            )
        if listener.bootstrap_port in ports:
            problems.append(
                f"kafka.listener.bootstrap_port {listener.bootstrap_port} is also the port of a "
                f"broker ({ports[0]}-{ports[-1]} are reserved); move one"
            )
        return problems

    def _name_problems(self) -> list[str]:
        """Refuse what Kubernetes would: Services and pods' host names are DNS labels."""
        listener, problems = self.kafka.listener, []
        for pool in self.pools:
            highest = pool.first_node_id + len(self.availability_zones) * pool.node_ids_per_zone - 1
            node_pool = naming.kafka_node_pool(pool.name, self.availability_zones[0])
            longest = naming.listener_broker_service(
                self.name, node_pool, highest, listener.name, listener.port
            )
            if len(longest) > DNS_LABEL_LIMIT:
                problems.append(
                    f"the Service {longest} of pool {pool.name} has {len(longest)} characters, and "
                    f"Kubernetes allows {DNS_LABEL_LIMIT}; shorten the cluster's or the pool's name"
                )
        return problems

    def _replication_problems(self) -> list[str]:
        brokers = self._brokers
        factor, minimum = self.kafka.default_replication_factor, self.kafka.min_insync_replicas
        problems = []
        if factor > brokers:
            problems.append(
                f"default_replication_factor {factor} exceeds the {brokers} brokers of this "
                f"cluster; lower it or add brokers"
            )
        if minimum > factor:
            problems.append(
                f"min_insync_replicas {minimum} exceeds default_replication_factor {factor}; "
                f"lower it"
            )
        return problems

    def _topic_problems(self) -> list[str]:
        problems = [f"topics names {name} twice; name each once" for name in _twice(self.topics)]
        for topic in self.topics:
            factor = topic.replication_factor or self.kafka.default_replication_factor
            minimum = int(topic.config.get("min.insync.replicas", self.kafka.min_insync_replicas))
            if factor > self._brokers:
                problems.append(
                    f"topic {topic.name} wants {factor} replicas but the cluster has "
                    f"{self._brokers} brokers; lower its replication_factor"
                )
            if minimum >= factor > 1:
                problems.append(
                    f"topic {topic.name} needs {minimum} of {factor} replicas in sync to be "
                    f"written, so that no broker may ever stop; raise its replication_factor or "
                    f"lower min.insync.replicas"
                )
        return problems

    def _user_problems(self) -> list[str]:
        problems = [f"users names {name} twice; name each once" for name in _twice(self.users)]
        if self.users and self.kafka.internal_listener.authentication == "none":
            problems.append(
                f"user {self.users[0].name} has no way to say who it is; set "
                f"kafka.internal_listener.authentication to tls or scram-sha-512"
            )
        return problems


def _twice(named: Iterable[Topic] | Iterable[User]) -> list[str]:
    names = [each.name for each in named]
    return sorted({name for name in names if names.count(name) > 1})


def _sentence(error: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "ClusterSpec"
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in _PLAIN_WORDS:
        message = _PLAIN_WORDS[error["type"]].format(**error.get("ctx", {}))
    shown = error.get("input")
    if isinstance(shown, dict | list | tuple | BaseModel) or error["type"] == "missing":
        return f"{where}: {message}."
    return f"{where} is {shown!r}: {message}."


def _told(error: ValidationError) -> list[dict[str, Any]]:
    """Return the errors a reader needs: a list is not also too short for its one bad item."""
    errors = [dict(e) for e in error.errors()]
    places: list[tuple[object, ...]] = [e["loc"] for e in error.errors()]

    def has_deeper(place: tuple[object, ...]) -> bool:
        return any(len(p) > len(place) and p[: len(place)] == place for p in places)

    return [
        e
        for e, place in zip(errors, places, strict=True)
        if e["type"] != "too_short" or not has_deeper(place)
    ]


def parse(raw: object) -> ClusterSpec:
    """Validate a ClusterSpec as read from JSON, YAML or stack config.

    Raises InvalidInput with one sentence per problem.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput(["A ClusterSpec must be a mapping of settings to values."])
    try:
        return ClusterSpec.model_validate(raw)
    except ValidationError as error:
        raise InvalidInput(_sentence(e) for e in _told(error)) from None


def json_schema() -> str:
    """Return the JSON schema of a ClusterSpec, as checked in under docs/reference/."""
    return json.dumps(ClusterSpec.model_json_schema(), indent=2, sort_keys=True) + "\n"
