"""Puts the sections of ClusterSpec together, and checks what must hold between them.

Pools whose zones or node ids do not fit together are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from core.cluster import rights, tagging
from core.cluster.fields import REGION, DnsLabel, Frozen, KmsKeyArn, ZoneName, named_twice
from core.cluster.images import EvictionGate
from core.cluster.kafka import ClientProbe, Connect, Kafka, Metrics, Strimzi, Topic, User
from core.cluster.network import LoadBalancer, Network
from core.cluster.nodes import Kubernetes, NodePool, Snapshots, Volumes
from core.cluster.operation import Alerts, FunctionMemory, Maintenance, Slack, Timings
from core.ground import naming
from core.health.node import Role


def node_ids(spec: ClusterSpec, pool: NodePool) -> list[int]:
    """Return every node id reserved for a pool."""
    return [node_id for ids in spec.node_ids_of(pool).values() for node_id in ids]


def _zone_problems(spec: ClusterSpec) -> Iterator[str]:
    zones, existing = spec.availability_zones, spec.network.existing
    for zone in zones:
        if zone[:-1] != spec.region:
            yield f"availability zone {zone} is not in region {spec.region}"
    if len(set(zones)) != len(zones):
        yield "availability_zones names a zone twice; name each once"
    given = set(existing.private_subnet_ids) if existing else set(zones)
    for zone in zones:
        if zone not in given:
            yield f"network.existing names no private subnet for availability zone {zone}; add one"
    for zone in sorted(given - set(zones)):
        yield f"network.existing names a subnet in {zone}, which is not in availability_zones"


def _pool_problems(spec: ClusterSpec) -> Iterator[str]:
    if len({pool.name for pool in spec.pools}) != len(spec.pools):
        yield "two pools have the same name; give each its own"
    if not any(pool.role.is_broker for pool in spec.pools):
        yield "no pool has brokers; add one with role broker or combined"
    if not any(pool.role.is_controller for pool in spec.pools):
        yield "no pool has controllers; add one with role controller or combined"
    for pool in spec.pools:
        yield from _zone_problems_of(spec, pool)
    yield from _node_id_problems(spec)


def _zone_problems_of(spec: ClusterSpec, pool: NodePool) -> Iterator[str]:
    zones = pool.zones or ()
    for zone in dict.fromkeys(zones):
        if zone not in spec.availability_zones:
            yield (
                f"pool {pool.name} stands in {zone}, which is not in availability_zones "
                f"({', '.join(spec.availability_zones)}); add it there, at the end, or take it "
                f"from the pool's zones"
            )
    for zone in named_twice(zones):
        yield f"zones of pool {pool.name} names {zone} twice; name each once"


def _node_id_problems(spec: ClusterSpec) -> Iterator[str]:
    by_id = sorted(spec.pools, key=lambda pool: (pool.first_node_id, pool.name))
    for a, b in itertools.combinations(by_id, 2):
        ours, theirs = node_ids(spec, a), node_ids(spec, b)
        if not set(ours).isdisjoint(theirs):
            yield (
                f"node ids of pools {a.name} ({ours[0]}-{ours[-1]}) and {b.name} "
                f"({theirs[0]}-{theirs[-1]}) overlap; move first_node_id of one"
            )


# AWS's quota of a network load balancer; it cannot be raised.
LISTENERS_PER_LOAD_BALANCER = 50
# Three controllers and three brokers on new nodes: images to pull, volumes to make.
START_SECONDS = 1800
# A broker that recovers its logs takes minutes, and a roll takes one after the other.
ROLL_SECONDS_PER_NODE = 300
LAST_PORT = 65_535
# RFC 1123; a pod's host name and a Service's are one label each.
DNS_LABEL_LIMIT = 63


class Inconsistent(ValueError):
    """Settings that contradict each other: a clause each, without the full stop."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


class ClusterSpec(Frozen):
    """One Kafka cluster on one EKS cluster."""

    name: DnsLabel
    """The Kafka cluster's name, in every pod's and resource's."""
    environment: DnsLabel
    """Begins the stacks' names, `<environment>-<layer>`, and with `name` every AWS resource's.
    Roles and buckets have one name in all regions of an account: a second region takes another.
    """
    region: Annotated[str, StringConstraints(pattern=REGION, max_length=32)]
    """The AWS region."""
    availability_zones: Annotated[tuple[ZoneName, ...], Field(min_length=1, max_length=6)]
    """In order: a zone's place decides its node ids, so add at the end."""
    pools: Annotated[tuple[NodePool, ...], Field(min_length=1)]
    """Kafka's node pools; at least one with brokers and one with controllers."""
    network: Network = Network()
    """The VPC."""
    kubernetes: Kubernetes = Kubernetes()
    """The EKS cluster and its system nodes."""
    kafka: Kafka = Kafka()
    """Kafka itself: its version, its listeners, its settings."""
    load_balancer: LoadBalancer = LoadBalancer()
    """Who may connect from outside the cluster, and by what name."""
    strimzi: Strimzi = Strimzi()
    """The operator."""
    metrics: Metrics = Metrics()
    """The metrics for Prometheus."""
    alerts: Alerts = Alerts()
    """Alarms and their topic."""
    connect: Connect | None = None
    """A Kafka Connect cluster; without it, none is made."""
    probe: ClientProbe | None = None
    """A client of our own that says what clients see; without it, none runs
    ([how-to](../how-to/probe.md)).
    """
    topics: tuple[Topic, ...] = ()
    """Topics kept as described here."""
    users: tuple[User, ...] = ()
    """Users kept as described here."""
    functions: FunctionMemory = FunctionMemory()
    """This project's own functions."""
    timings: Timings = Timings()
    """Every timeout; [the rules between them](timings.md)."""
    node_provisioner: Literal["asg", "karpenter"] = "asg"
    """`asg`: Auto Scaling groups, held and drained by this project. `karpenter`: [guarantees
    less](../how-to/karpenter.md).
    """
    cluster_autoscaler: bool = True
    """With `asg`: adds nodes for pods that fit nowhere. It never takes one of Kafka's away."""
    volumes: Volumes = Volumes()
    """Whether Kafka's volumes grow and speed up by themselves, and what that may cost."""
    snapshots: Snapshots | None = Snapshots()
    """Scheduled snapshots of Kafka's volumes; null: none are taken."""
    accept: tuple[str, ...] = ()
    """Findings that are meant, [by their names](checks.md): `check` lists them apart, and `up` goes
    on.
    """
    ephemeral: bool = False
    """An environment that may be destroyed: nothing in it is protected from deletion, and
    `stillwater destroy` deletes Kafka's volumes with it.
    """
    drain_route: Literal["held", "direct"] = "held"
    """`held`: a node is drained once its replacement is Ready and Kafka can bear it. `direct`: at
    once, by the node termination handler alone.
    """
    scale_in: Literal["restore", "release"] = "restore"
    """A scale-in that no replacement follows. `restore`: page, and ask for the node again;
    `release`: let it go.
    """
    maintenance: Maintenance | None = None
    """When what AWS has scheduled may be done ahead of it; without it, as soon as it is known."""
    gate: Literal["isr", "ready"] = "isr"
    """The broker's state before its old instance goes: back in every `isr`, or just `ready`."""
    isr_margin: Annotated[int, Field(ge=0, le=3)] = 1
    """In-sync replicas that must be left above `min.insync.replicas` after a broker has gone, where
    the replication factor allows.
    """
    eviction_gate: EvictionGate | None = None
    """Asks Kafka before any eviction of its pods. Without it, [a disruption budget alone
    answers](../how-to/eviction-gate.md) other drainers.
    """
    slack: Slack | None = None
    """The Slack channel of incidents; without it only the ledger has them."""
    split_cost_allocation: bool = False
    """Whether the bill's export has [what each pod cost of its
    node](../how-to/set-up-the-bill-export.md#what-ran-on-a-node): for the report, at two lines more
    per pod and hour.
    """
    bill_cluster_tag: (
        Annotated[
            str,
            Field(pattern=r"^[^=\s][^=\x00-\x1f]{0,127}(=[^\x00-\x1f]{0,255}\S)?$", max_length=385),
        ]
        | None
    ) = None
    """The tag that means Kafka on the bill, for the scheduled report: a key, whose value names the
    cluster, or `key=value`; without it `stillwater:cluster`.
    """
    bill_pool_tag: (
        Annotated[str, Field(pattern=r"^[^=\s][^=\x00-\x1f]*$", max_length=128)] | None
    ) = None
    """The key of the tag that names a node's pool on the bill; without it `stillwater:pool`."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags on everything, in addition to the project's own; thirty at most. Objects in S3 have
    none.
    """
    webhook_concurrency: Annotated[int, Field(ge=0, le=100)] = 5
    """How many calls of the public webhook run at once. They are reserved out of the account's
    limit for all functions, so that strangers who call its URL cannot stop the others. 0 reserves
    none: strangers may then take all of the limit. AWS keeps 100 unreserved, and a new account has
    10 in all: there `preflight` refuses until this is 0 or the limit is raised.
    """
    encryption_key: KmsKeyArn | None = None
    """The KMS key of every volume, by ARN, in this region; without it, the account's default key
    for EBS. The key's own policy must let its account's IAM decide, as a new key's does.
    """

    @property
    def prefix(self) -> str:
        """Prefix of every AWS resource's name: unique per environment and cluster."""
        return f"{self.environment}-{self.name}"

    def node_ids_of(self, pool: NodePool) -> Mapping[ZoneName, range]:
        """Return the node ids reserved for a pool in each zone it stands in.

        A zone's place among all of the cluster's decides them, wherever else the pool stands.
        """
        return {
            zone: naming.node_ids(pool.first_node_id, pool.node_ids_per_zone, index)
            for index, zone in enumerate(self.availability_zones)
            if pool.zones is None or zone in pool.zones
        }

    def zones_of(self, pool: NodePool) -> tuple[ZoneName, ...]:
        """Return the zones a pool stands in, in the order of availability_zones."""
        return tuple(self.node_ids_of(pool))

    def nodes_of(self, pool: NodePool) -> int:
        """Return how many Kafka nodes a pool has in all its zones."""
        return len(self.zones_of(pool)) * pool.nodes_per_zone

    @property
    def roll_limit_seconds(self) -> int:
        """How long a change may take that restarts every node, one after the other."""
        return START_SECONDS + ROLL_SECONDS_PER_NODE * sum(map(self.nodes_of, self.pools))

    @property
    def broker_zones(self) -> tuple[ZoneName, ...]:
        """The zones that have brokers: Kafka's racks."""
        of_brokers = {
            zone for pool in self.pools if pool.role.is_broker for zone in self.zones_of(pool)
        }
        return tuple(zone for zone in self.availability_zones if zone in of_brokers)

    @property
    def brokers(self) -> int:
        """How many nodes are brokers, combined ones included."""
        return sum(self.nodes_of(pool) for pool in self.pools if pool.role.is_broker)

    def running_nodes(
        self, has_role: Callable[[Role], bool] = lambda _role: True
    ) -> dict[int, str]:
        """Return the KafkaNodePool of each Kafka node of some roles that runs, by node id."""
        return {
            node_id: naming.kafka_node_pool(pool.name, zone)
            for pool in self.pools
            if has_role(pool.role)
            for zone, ids in self.node_ids_of(pool).items()
            for node_id in ids[: pool.nodes_per_zone]
        }

    @property
    def controllers(self) -> int:
        """How many nodes are controllers, combined ones included: the quorum's voters."""
        return sum(self.nodes_of(pool) for pool in self.pools if pool.role.is_controller)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = [
            *_zone_problems(self),
            *_pool_problems(self),
            *self._listener_problems(),
            *self._name_problems(),
            *self._replication_problems(),
            *self._load_balancer_problems(),
            *self._twice("topics", self.topics),
            *self._topic_problems(),
            *self._twice("users", self.users),
            *rights.problems(self),
            *self.alerts.elsewhere(self.region),
            *tagging.problems(self.tags),
            *tagging.bill_problems(self.bill_cluster_tag, self.bill_pool_tag),
            *self._key_problems(),
        ]
        if problems:
            raise Inconsistent(problems)
        return self

    def _twice(self, key: str, named: Sequence[Topic | User]) -> Iterator[str]:
        for name in named_twice(each.name for each in named):
            yield f"{key} names {name} twice; name each once"

    def _load_balancer_problems(self) -> Iterator[str]:
        listener, zone = self.kafka.listener, self.load_balancer.private_zone
        if zone is not None and not (
            f".{listener.advertised_host}".lower().endswith(f".{zone}".lower())
        ):
            yield (
                f"advertised_host {listener.advertised_host} is not in the private_zone {zone}; "
                f"change one of them"
            )
        prepared = sum(
            len(self.zones_of(pool)) * (pool.nodes_per_zone + pool.spare_nodes_per_zone)
            for pool in self.pools
            if pool.role.is_broker
        )
        if prepared > LISTENERS_PER_LOAD_BALANCER - 1:
            yield (
                f"{prepared} brokers, spare ones included, and the bootstrap need "
                f"{prepared + 1} listeners, and AWS allows {LISTENERS_PER_LOAD_BALANCER} on a "
                f"load balancer for good; lower nodes_per_zone or spare_nodes_per_zone"
            )

    def _listener_problems(self) -> Iterator[str]:
        listener = self.kafka.listener
        ports = sorted(
            naming.advertised_port(listener.first_advertised_port, node_id)
            for pool in self.pools
            if pool.role.is_broker
            for node_id in node_ids(self, pool)
        )
        if ports and ports[-1] > LAST_PORT:
            yield (
                f"the last broker would be advertised at port {ports[-1]}, and ports end at "
                f"{LAST_PORT}; lower kafka.listener.first_advertised_port or first_node_id"
            )
        if listener.bootstrap_port in ports:
            yield (
                f"kafka.listener.bootstrap_port {listener.bootstrap_port} is also the port of a "
                f"broker ({ports[0]}-{ports[-1]} are reserved); move one"
            )

    def _name_problems(self) -> Iterator[str]:
        """Refuse what Kubernetes would: Services and pods' host names are DNS labels."""
        listener = self.kafka.listener
        for pool in self.pools:
            node_pool = naming.kafka_node_pool(pool.name, self.availability_zones[0])
            highest = max(node_ids(self, pool), default=pool.first_node_id)
            kind, longest = "host name", naming.pod(self.name, node_pool, highest)
            if pool.role.is_broker:
                service = naming.listener_broker_service(
                    self.name, node_pool, highest, listener.name, listener.port
                )
                kind, longest = "Service", service
            if len(longest) > DNS_LABEL_LIMIT:
                yield (
                    f"the {kind} {longest} of pool {pool.name} has {len(longest)} characters, and "
                    f"Kubernetes allows {DNS_LABEL_LIMIT}; shorten the cluster's or the pool's name"
                )

    def _replication_problems(self) -> Iterator[str]:
        brokers = self.brokers
        factor, minimum = self.kafka.default_replication_factor, self.kafka.min_insync_replicas
        if factor > brokers:
            yield (
                f"default_replication_factor {factor} exceeds the {brokers} brokers of this "
                f"cluster; lower it or add brokers"
            )
        if minimum > factor:
            yield (
                f"min_insync_replicas {minimum} exceeds default_replication_factor {factor}; "
                f"lower it"
            )

    def _topic_problems(self) -> Iterator[str]:
        for topic in self.topics:
            factor = topic.replication_factor or self.kafka.default_replication_factor
            written = topic.config.get("min.insync.replicas", self.kafka.min_insync_replicas)
            if not str(written).isdecimal():
                yield (
                    f"topic {topic.name} has min.insync.replicas {written!r}; write a whole number"
                )
                continue
            if factor > self.brokers:
                yield (
                    f"topic {topic.name} wants {factor} replicas but the cluster has "
                    f"{self.brokers} brokers; lower its replication_factor"
                )

    def _key_problems(self) -> Iterator[str]:
        key = self.encryption_key
        if key is not None and key.split(":")[3] != self.region:
            yield (
                f"encryption_key {key} is in {key.split(':')[3]}, and a volume of {self.region} "
                f"takes a key of {self.region} alone; name one there"
            )
