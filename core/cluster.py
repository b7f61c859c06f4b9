"""ClusterSpec: the one validated description of a cluster, from which every stack is rendered.

The only module of core that imports pydantic. Lambda code never imports it: infra renders the few
values a handler needs into its environment.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
from collections.abc import Mapping
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


class Network(_Frozen):
    """The VPC: one private subnet per availability zone."""

    vpc_cidr: str = "10.40.0.0/16"

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


class NodePool(_Frozen):
    """Kafka nodes of one role; provisioned as one Auto Scaling group per availability zone."""

    name: DnsLabel
    role: Role
    instance_type: InstanceType
    nodes_per_zone: Annotated[int, Field(ge=1, le=50)] = 1
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


class Listener(_Frozen):
    """The Kafka listener that clients outside the cluster reach through the load balancer."""

    name: ListenerName = "nlb"
    port: Annotated[int, Field(ge=9092, le=65535)] = 9094
    tls: bool = True
    advertised_host: str = "kafka.stillwater.internal"
    first_advertised_port: Annotated[int, Field(ge=1024, le=60000)] = 10000
    bootstrap_port: Annotated[int, Field(ge=1024, le=65535)] = 9094


class Kafka(_Frozen):
    """Kafka's own settings."""

    version: str = "4.2.0"
    metadata_version: str = "4.2-IV1"
    default_replication_factor: Annotated[int, Field(ge=1)] = 3
    min_insync_replicas: Annotated[int, Field(ge=1)] = 2
    listener: Listener = Listener()
    # Merged over the defaults; keys that Strimzi owns are refused by Strimzi itself.
    config: dict[str, str | int | bool] = Field(default_factory=dict)


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
    timings: Timings = Timings()
    # Only `asg` is built so far.
    node_provisioner: Literal["asg", "karpenter"] = "asg"
    drain_route: Literal["held", "direct"] = "held"
    # A scale-in that no replacement follows: page and wait, or let the node go.
    scale_in: Literal["restore", "release"] = "restore"
    isr_margin: Annotated[int, Field(ge=0, le=3)] = 1
    tags: dict[str, str] = Field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Prefix of every AWS resource's name: unique per environment and cluster."""
        return f"{self.environment}-{self.name}"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = [
            *self._zone_problems(),
            *self._pool_problems(),
            *self._listener_problems(),
            *self._name_problems(),
            *self._replication_problems(),
        ]
        if self.node_provisioner == "karpenter":
            problems.append("node_provisioner karpenter is not built yet; use asg")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _zone_problems(self) -> list[str]:
        problems = [
            f"availability zone {zone} is not in region {self.region}"
            for zone in self.availability_zones
            if zone[:-1] != self.region
        ]
        if len(set(self.availability_zones)) != len(self.availability_zones):
            problems.append("availability_zones names a zone twice; name each once")
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
        brokers = len(self.availability_zones) * sum(
            p.nodes_per_zone for p in self.pools if p.role.is_broker
        )
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
