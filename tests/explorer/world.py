"""The state of an explored world: AWS, Kubernetes, Kafka, the queues and the ledger, as plain data.

Everything in it is immutable or a container of immutables, so that a copy costs a few dictionaries
and a search can go back to any moment. tests.explorer.nature moves it, the adapters
(tests.explorer.adapters) show it to the handlers, tests.explorer.rules judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from core.availability.lease import Lease
from core.ground.naming import managed_tag
from core.incidents.actions import OWN, Level
from core.incidents.observation import (
    GroupView,
    InstanceView,
    NodeClaim,
    NodeView,
    PodView,
    RootTask,
    cluster_ownership,
)
from core.incidents.record import Incident
from core.rotation.run_record import Throttle
from core.views import ClusterView, Doubt, PartitionView, VoterView
from tests.explorer import partitions
from tests.explorer.partitions import MIN_ISR, Order, Partition
from tests.explorer.swift import copier

PREFIX = "local-orders"
CLUSTER = "orders"
TAG = managed_tag(PREFIX)
WHOSE = cluster_ownership(PREFIX)
A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
ZONES = {10: A, 20: B, 30: C, 11: A, 21: B, 31: C, 0: A, 1: B, 2: C}
FIRST = {10: "i-0a", 20: "i-0b", 30: "i-0c"}
# The second broker of each zone, where there are two.
SECOND = {11: "i-1a", 21: "i-1b", 31: "i-1c"}
# Machines of controllers that are no brokers, where there are such.
CONTROLLERS = {0: "i-q0a", 1: "i-q0b", 2: "i-q0c"}
# 2026-11-20T10:00:00Z
START = 1_795_168_800.0

Key = tuple[Any, ...]  # of the agenda: what is about to happen, and to whom


def group_of(zone: str, pool: str = "broker") -> str:
    return f"{PREFIX}-{pool}-{zone[-1]}"


def pool_of(node_id: int) -> str:
    """Return the pool of a Kafka node: its brokers' or its controllers' own."""
    return "controller" if node_id in CONTROLLERS else "broker"


def node_named(instance_id: str) -> str:
    return f"ip-{instance_id}.ec2.internal"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a queue, delivered again until it is deleted."""

    queue: str
    body: str
    sent_at: float
    receives: int = 0


@dataclass(frozen=True, slots=True)
class Hook:
    """A lifecycle hook in which an instance stands."""

    token: str
    due: float  # without another heartbeat
    until: float  # with as many as there may be


@dataclass(frozen=True, slots=True)
class Broker:
    """Where a broker is: in every ISR, behind (it runs and copies), or down, and by whose doing."""

    status: str = "in_sync"
    blame: str = ""  # the incident whose drain stopped it, or who else did


# Causes of a roll that show on each pod; others show on the Kafka or on a pod set until they end.
ON_PODS = ("description", "resources", "pod")


@dataclass(frozen=True, slots=True)
class Roll:
    """A roll of Strimzi's operator that is under way: who waits for a restart, and why."""

    cause: str
    waiting: frozenset[int]
    chosen: int | None = None  # who was restarted last

    def shows(self, node_id: int | None) -> bool:
        """Say whether it can be seen to be about anybody but one node, or about nobody yet."""
        return self.cause not in ON_PODS or bool(self.waiting - {node_id})


@dataclass(frozen=True, slots=True)
class Drain:
    """A drain the termination handler works on."""

    message: int
    instance_id: str
    began: float
    evicted: bool = False


@dataclass(slots=True)
class World:
    """Everything there is at one moment."""

    now: float = START
    instances: dict[str, InstanceView] = None  # type: ignore[assignment]
    groups: dict[str, GroupView] = None  # type: ignore[assignment]
    hooks: dict[tuple[str, str], Hook] = None  # type: ignore[assignment]
    nodes: dict[str, NodeView] = None  # type: ignore[assignment]
    pods: dict[int, PodView] = None  # type: ignore[assignment]
    attached: dict[str, tuple[str, ...]] = None  # type: ignore[assignment]
    brokers: dict[int, Broker] = None  # type: ignore[assignment]
    orders: dict[Partition, Order] = None  # type: ignore[assignment]
    leaders: dict[Partition, int | None] = None  # type: ignore[assignment]
    messages: dict[int, Message] = None  # type: ignore[assignment]
    drains: dict[str, Drain] = None  # type: ignore[assignment]
    handled: frozenset[str] = frozenset()  # announcements the termination handler knows
    incidents: dict[str, Incident] = None  # type: ignore[assignment]
    filed: frozenset[str] = frozenset()
    leases: tuple[Lease, ...] = ()
    closed: dict[str, float] = None  # type: ignore[assignment]
    records: dict[str, tuple[int, Any]] = None  # type: ignore[assignment]
    agenda: dict[Key, float] = None  # type: ignore[assignment]
    down: dict[str, float] = None  # type: ignore[assignment]
    paged: dict[tuple[str, str], int] = None  # type: ignore[assignment]
    refusing: frozenset[str] = frozenset()  # groups that terminate nothing when asked
    skew: float = 0.0  # of the next invocation's clock
    past: tuple[World, ...] = ()  # the moments just before, for reads that are late
    serial: int = 0
    cordons: dict[str, str] = None  # type: ignore[assignment]
    claims: dict[str, NodeClaim] = None  # type: ignore[assignment]
    karpenter: bool = False  # its machines are in no group, and Karpenter's
    roots: dict[str, RootTask] = None  # type: ignore[assignment]
    unreplaced: frozenset[str] = frozenset()  # instances whose task will fail
    emptied_by_us: bool = False  # there is no termination handler
    in_place: bool = False  # root volumes are replaced
    together: bool = False  # the disruption budgets open for a party
    gated: bool = False  # evictions of its brokers are asked for
    combined: bool = False  # its brokers are its controllers as well
    elsewhere: frozenset[str] = frozenset()  # groups whose next instance comes up in another zone
    placed: Mapping[Partition, Order] = field(default_factory=dict)  # as nobody moved them
    claimless: frozenset[int] = frozenset()  # brokers whose claim was deleted: they start no more
    abandoned: frozenset[str] = frozenset()  # instances whose hook somebody abandoned by hand
    scheduled: frozenset[str] = frozenset()  # codes of what AWS has ahead of the first machine
    direct: bool = False  # the termination handler hears AWS itself
    level: Level = OWN  # of adoption
    local_disks: bool = False  # a broker on another node has lost all it held
    homes: Mapping[int, str] = field(default_factory=dict)  # broker -> the node whose disk it is on
    emptied: frozenset[int] = frozenset()  # brokers that copy everything again
    throttle: Throttle | None = None  # replication's, as we have set it
    other_throttle: float | None = None  # since when somebody else throttles replication
    impaired: Mapping[str, float] = field(default_factory=dict)  # instance -> since when, by EC2
    armed: Mapping[str, str] = field(default_factory=dict)  # call -> what goes wrong with its next
    clocks: Mapping[str, float] = field(default_factory=dict)  # function -> how far it is ahead
    function: str = ""  # which of ours runs, or ran last
    older: Mapping[str, str] = field(default_factory=dict)  # function -> a field it does not know
    heard: tuple[str, ...] = ()  # what was announced, the latest last
    never: frozenset[str] = frozenset()  # kinds of the agenda that do not happen any more
    silent: bool = False  # groups accept a termination and do nothing about it
    roll: Roll | None = None  # of Strimzi's operator
    stalled_since: float | None = None  # since when the operator fails, or is paused
    operator_paused: bool = False
    two_hands: int = 0  # times that the operator and we took a broker each
    foreign: bool = False  # another environment's events come to the same queue
    # What readings of Kafka show otherwise, by name, each over the last.
    shown: Mapping[str, Callable[[ClusterView], ClusterView]] = field(default_factory=dict)
    missing: Mapping[int, PodView] = field(default_factory=dict)  # nobody makes them again
    backup: World | None = None  # of the ledger's table
    broken: tuple[str, ...] = ()  # rules that did not hold

    def __post_init__(self) -> None:
        for name in _CONTAINERS:
            if getattr(self, name) is None:
                setattr(self, name, {})

    def copy(self) -> World:
        """Return another world in the same state."""
        twin: World = _copied(self)
        return twin

    def moment(self) -> World:
        """Return what this world is now, for whom nobody changes it any more: it shares all."""
        found: World = _shared(self)
        found.past = ()
        return found

    def number(self) -> int:
        self.serial += 1
        return self.serial

    def is_down(self, service: str) -> bool:
        return self.down.get(service, 0.0) > self.now

    def lifecycle(self, instance_id: str) -> str | None:
        return next(
            (g.instances[instance_id] for g in self.groups.values() if instance_id in g.instances),
            None,
        )

    def pod_on(self, instance_id: str) -> PodView | None:
        name = node_named(instance_id)
        return next((p for p in self.pods.values() if p.node_name == name), None)

    def out(self) -> Iterator[int]:
        return (b for b, broker in self.brokers.items() if broker.status != "in_sync")

    def in_sync(self, broker_id: int) -> bool:
        return self.brokers[broker_id].status == "in_sync"

    def kafka(self, *, by_us: bool = True) -> ClusterView:
        """Return a reading: what keeps ours from being whole is not in the operator's way."""
        statuses = tuple(sorted((b, broker.status) for b, broker in self.brokers.items()))
        partitions = tuple((*key, self.leaders.get(key), o) for key, o in self.orders.items())
        whole = not by_us or not self.is_down("kafka whole")
        brokers = tuple(each for each in statuses if each[0] not in CONTROLLERS)
        apart = tuple(each for each in statuses if each[0] in CONTROLLERS)
        voting = brokers if self.combined else apart
        view = _view(brokers, partitions, voting, whole=whole)
        for change in self.shown.values():
            view = change(view)
        return replace(view, stale=True, quorum_leader=None) if self.is_down("quorum") else view


_CONTAINERS = frozenset(
    {
        *("instances", "groups", "hooks", "nodes", "pods", "attached", "brokers", "messages"),
        *(
            "orders",
            "leaders",
            "drains",
            "incidents",
            "closed",
            "records",
            "agenda",
            "down",
            "paged",
            "cordons",
            "claims",
        ),
        "roots",
    }
)


_copied, _shared = copier(World, _CONTAINERS), copier(World)
_Led = tuple[str, int, int | None, Order]


@lru_cache(maxsize=4096)
def _view(
    statuses: tuple[tuple[int, str], ...],
    partitions: tuple[_Led, ...],
    voting: tuple[tuple[int, str], ...],
    *,
    whole: bool,
) -> ClusterView:
    """Return what Kafka says of itself; where nobody here votes, controllers elsewhere do.

    A reading that is not whole calls everybody in sync, and says that something was left out.
    """
    if not whole:
        statuses = tuple((b, "in_sync") for b, _ in statuses)
    in_sync = frozenset(b for b, status in statuses if status == "in_sync")
    return ClusterView(
        brokers=frozenset(b for b, _ in statuses),
        fenced=frozenset(b for b, status in statuses if status == "down"),
        voters=_voters(voting) if voting else tuple(VoterView(n, 0.1) for n in (0, 1, 2)),
        quorum_leader=_quorum_leader(voting) if voting else 1,
        partitions=tuple(
            PartitionView(topic, number, leader, order, isr, min(MIN_ISR, len(order)))
            for topic, number, leader, order in partitions
            for isr in (tuple(b for b in order if b in in_sync),)
        ),
        doubts=() if whole else (Doubt("Topic u is missing.", refused=True),),
    )


def _voters(statuses: tuple[tuple[int, str], ...]) -> tuple[VoterView, ...]:
    """A controller catches up within moments of its start, long before its broker."""
    return tuple(VoterView(b, None if status == "down" else 0.1) for b, status in statuses)


def _quorum_leader(statuses: tuple[tuple[int, str], ...]) -> int | None:
    up = [b for b, status in statuses if status != "down"]
    return up[0] if 2 * len(up) > len(statuses) else None


def three_brokers(placed: Mapping[Partition, Order] = partitions.ONE) -> World:
    """Return a whole cluster of three zones with a broker in each."""
    return _whole(FIRST, placed)


def six_brokers(placed: Mapping[Partition, Order] = partitions.RACKS) -> World:
    """Return a whole cluster of three zones with two brokers in each."""
    return _whole({**FIRST, **SECOND}, placed)


def controllers_apart() -> World:
    """Return a whole cluster of three zones with a broker and a controller of its own in each."""
    return _whole({**FIRST, **CONTROLLERS}, partitions.ONE)


def _whole(machines: Mapping[int, str], placed: Mapping[Partition, Order]) -> World:
    world = World(orders=dict(placed), placed=placed)
    for node_id, instance_id in machines.items():
        zone, pool = ZONES[node_id], pool_of(node_id)
        name = group_of(zone, pool)
        before = world.groups.get(name)
        instances = {**(before.instances if before else {}), instance_id: "InService"}
        count = len(instances)
        world.groups[name] = GroupView(
            name=name, desired=count, maximum=2 * count, instances=instances, zones=(zone,)
        )
        add_instance(world, instance_id, zone, name)
        add_node(world, instance_id)
        world.pods[node_id] = PodView(
            name=f"orders-{pool}-{zone[-1]}-{node_id}",
            node_id=node_id,
            role=pool,
            node_name=node_named(instance_id),
            ready=True,
        )
        world.attached[node_named(instance_id)] = (f"pvc-{node_id}",)
        world.brokers[node_id] = Broker()
    partitions.follow(world)
    return world


def add_instance(world: World, instance_id: str, zone: str, group: str | None = None) -> None:
    world.instances[instance_id] = InstanceView(
        instance_id=instance_id,
        state="running",
        zone=zone,
        private_dns_name=node_named(instance_id),
        group=group or group_of(zone),
        tags={TAG: "true"},
    )


def pool_on(instance_id: str) -> str:
    """Return the pool whose nodes a machine is one of, by its name."""
    return "controller" if instance_id.startswith("i-q") else "broker"


def add_node(world: World, instance_id: str) -> None:
    world.nodes[instance_id] = NodeView(
        name=node_named(instance_id),
        instance_id=instance_id,
        zone=world.instances[instance_id].zone,
        pool=pool_on(instance_id),
        ready=True,
        schedulable=True,
        csi_ready=True,
        boot_id="boot-0",
        created_at=world.now if world.now > START else START - 86_400,
    )


def out(world: World, pod: PodView, **changes: Any) -> PodView:
    """Return a pod that is not Ready, and since when."""
    since = world.now if pod.out_since is None else pod.out_since
    return replace(pod, ready=False, out_since=since, **changes)
