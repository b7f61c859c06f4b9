"""Facts of Kafka in a cluster that somebody else made: resources, pools, pods, topics, volumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from core.availability.operator import Condition
from core.ground.placement import ANYWHERE, Amounts, Placement


@dataclass(frozen=True, slots=True)
class KafkaListener:
    """A listener of a Kafka resource; `authentication` is None where it asks nobody."""

    name: str
    authentication: str | None
    # Strimzi's type: internal, route, loadbalancer, nodeport, ingress, cluster-ip.
    kind: str = "internal"
    # Its NetworkPolicy lets only some in.
    fenced: bool = False
    tls: bool = False

    @property
    def door(self) -> str:
        """What it asks of its clients, as a finding names it."""
        asked = self.authentication or "no credentials"
        return f"{self.name} asks for {asked}, {'over' if self.tls else 'without'} TLS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A listener that is reached from outside the cluster: HOST:PORT, and what it asks."""

    bootstrap: str
    authentication: str | None
    encrypted: bool
    # It shows a certificate that is not of Strimzi's authority.
    own_certificate: bool = False
    # Strimzi's NetworkPolicy lets only some in.
    fenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """One Kafka resource."""

    namespace: str
    name: str
    rack_aware: bool
    # The node label that a broker's rack is read from, where the resource names one.
    rack_key: str | None = None
    listeners: tuple[KafkaListener, ...]
    # The broker settings as written in the resource; what is absent is Kafka's default.
    config: Mapping[str, str]
    # Strimzi's type; none: every client may do everything.
    authorization: str = "none"
    # Beside Strimzi's own.
    super_users: frozenset[str] = frozenset()
    zookeeper: bool = False
    # How many pods of ZooKeeper it wants; 0: it has none, or none any more.
    zookeeper_replicas: int = 0
    # On the way from ZooKeeper to KRaft, or back.
    migrating: bool = False
    # Annotated strimzi.io/pause-reconciliation.
    paused: bool = False
    # What Strimzi says in the resource's NotReady condition, if anything.
    not_ready: str | None = None
    # What its operator did not do of what is asked.
    ignored: tuple[Condition, ...] = ()
    # Of a resource without node pools: how many brokers it wants.
    replicas: int | None = None
    # It was changed since the operator carried it out last.
    unreconciled: bool = False
    # The listener by which clients outside the cluster come in, where Strimzi's status names one.
    outside: Outside | None = None
    # Authorities that Strimzi does not make and renew: clusterCa, clientsCa.
    own_authorities: tuple[str, ...] = ()
    # Listener -> when the first certificate ends that a client needs, in epoch seconds; None: its
    # status shows no certificate. Those of Strimzi's own authority, and those of somebody else.
    authority_ends: Mapping[str, float | None] = field(default_factory=dict)
    own_certificate_ends: Mapping[str, float | None] = field(default_factory=dict)
    # How long before its end Strimzi renews an authority.
    renewal_days: int = 30
    # Others that are reached from outside, and ask in a way that the functions do not speak.
    unspoken: tuple[str, ...] = ()
    # Somebody has deleted it.
    leaving: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"Kafka {self.namespace}/{self.name}"

    @property
    def doors(self) -> frozenset[str]:
        return frozenset(each.door for each in self.listeners)

    @property
    def everyone_may(self) -> bool:
        """Whether everybody may do what no ACL takes away."""
        return self.config.get("allow.everyone.if.no.acl.found", "").lower() == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPool:
    """One KafkaNodePool: how many nodes it wants of which roles."""

    namespace: str
    name: str
    kafka: str
    replicas: int
    roles: frozenset[str] = frozenset()
    leaving: bool = False
    # Its claims are deleted with it, or as it shrinks.
    claims_go: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """A StrimziPodSet, by which Strimzi makes a pool's pods and brings them back."""

    namespace: str
    name: str
    kafka: str
    leaving: bool = False
    # What Strimzi says it cannot do.
    error: str | None = None
    # How many of its pods are not as it describes them.
    outdated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """A KafkaRebalance that is carried out at this moment."""

    namespace: str
    name: str
    kafka: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A KafkaTopic; None where the resource leaves it to the brokers' default."""

    namespace: str
    name: str
    kafka: str
    replicas: int | None
    min_in_sync: int | None
    # It says so itself: a replica that lags may lead.
    unclean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperPod:
    """One ZooKeeper pod of a Kafka from before KRaft."""

    namespace: str
    name: str
    kafka: str
    ready: bool
    node: str | None
    zone: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Rival:
    """A pod of somebody else's for which the scheduler would delete others: its class lets it."""

    title: str
    priority: int
    wants: Placement
    waits: bool  # for room, at this moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of a Kafka cluster: a broker, a controller, or both."""

    namespace: str
    name: str
    kafka: str
    broker: bool
    controller: bool = False
    node: str | None = None
    # None where its status says nothing of it.
    ready: bool | None = True
    # Deleted, and not gone yet.
    leaving: bool = False
    # The kind of what controls it.
    owner: str | None = None
    grace_seconds: int = 30
    # Of Kafka's own container.
    image: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    readiness_gates: frozenset[str] = frozenset()
    claims: tuple[str, ...] = ()
    # Of its log directories, those that are in the pod itself.
    scratch: tuple[str, ...] = ()
    # Whether the scheduler is forbidden to place a second one on its node.
    alone_on_its_node: bool = True
    # Whether it tolerates the taint by which Karpenter empties a node.
    ignores_disruption: bool = False
    wants: Placement = ANYWHERE
    requests: Amounts = field(default_factory=dict)
    # Kubernetes' word for how much memory it is sure of: Guaranteed, Burstable, BestEffort.
    quality: str | None = None
    # Of Kafka's own container, where they are written: the heap it may take, and its limit.
    heap_bytes: int | None = None
    memory_bytes: Decimal | None = None
    # The kernel has ended its last container for its memory.
    out_of_memory: bool = False
    priority: int = 0
    # Who places it, where that is not Kubernetes' own scheduler.
    scheduler: str | None = None
    # What Pod Security's level `restricted` would refuse of it, were it created again.
    unrestricted: tuple[str, ...] = ()
    # And what its level `baseline` would, which `restricted` refuses as well.
    unlawful: tuple[str, ...] = ()
    # What its readiness probe asks: a port, a command, ...; none: it is ready once it runs.
    readiness: str = "none"
    # What its liveness probe asks, and after how many seconds of refusals the kubelet restarts it.
    liveness: str = "none"
    liveness_seconds: int = 0
    # Of its time to stop, how much a preStop hook sleeps; and whether it does what is not known.
    pre_stop_seconds: int = 0
    pre_stop_odd: bool = False
    # It takes a network interface of its own (security groups for pods).
    own_interface: bool = False
    # Proxies of a service mesh that end at the pod's first signal, beside Kafka; and whether it
    # asks for none.
    proxies: tuple[str, ...] = ()
    outside_meshes: bool = False
    native_proxy: bool = False

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """What a claim of a Kafka pod is bound to."""

    namespace: str
    claim: str
    reclaim: str | None
    storage_class: str | None = None
    binding: str | None = None
    expandable: bool | None = None
    # Whether the volume can be used from one node alone.
    on_node: bool = False
    # A network file system by its driver, which Kafka is not made for.
    shared_by: str | None = None
    # A driver of which it is not known whether its volumes follow a pod to another node.
    unknown_driver: str | None = None
    # The claim or its volume is deleted, and is gone as soon as no pod holds it.
    leaving: bool = False
    # What of its last change cannot be done.
    stuck: str | None = None
    # What of its last change waits for a node, in Kubernetes' own word.
    resizing: str | None = None
    # Of the driver that attaches it, EBS's own also where Kubernetes once had it built in.
    driver: str | None = None
    # EBS's type where the class or its default names one, and the size.
    ebs_type: str | None = None
    gib: float | None = None
    # Its id at EBS, or at whoever made it.
    handle: str | None = None

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.claim}"


class Flavour(StrEnum):
    """What speaks Kafka's protocol."""

    KAFKA = "Kafka"
    # Its partitions are replicated by Raft, and nothing of Kafka's shutdown is in it.
    REDPANDA = "Redpanda"
    # Kafka whose logs are in S3.
    AUTOMQ = "AutoMQ"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKafka:
    """A Kafka that is not Strimzi's: a StatefulSet's, a Deployment's, or another operator's.

    Its pods are among the others, and name it as `kafka`.
    """

    namespace: str
    # Which kind of object it is, and what that is called: StatefulSet legacy/kafka.
    title: str
    image: str
    flavour: Flavour = Flavour.KAFKA
    # How many pods it wants, where that was read.
    replicas: int | None = None
    # Broker settings that its pods' environment or its resource has; others stand elsewhere.
    config: Mapping[str, str] = field(default_factory=dict)
    # Services by which clients come in: their names, and of which type.
    ways_in: tuple[str, ...] = ()
    # Why nothing is known of its pods.
    unseen: str | None = None
    # When a StatefulSet deletes claims by itself: whenScaled, whenDeleted.
    claims_go: tuple[str, ...] = ()
    # Some of its pods are of an earlier description: they are rolled.
    rolling: bool = False

    @property
    def name(self) -> str:
        """What its pods name as their Kafka; no resource of Strimzi's has a space in its name."""
        return self.title
