"""The explored world of one cluster, moved by hand, as the handlers' Cloud, Nodes and KafkaCluster.

Three zones with one broker node each, ids 10, 20, 30; a test says what AWS, Kubernetes and Kafka do
between two ticks, and what they answer otherwise than the world would.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.availability.consent import Order, Partition
from core.availability.operator import KafkaConditions, OperatorView
from core.ground.errors import StillwaterError
from core.ground.placement import PodNeeds
from core.incidents.actions import HookResult
from core.incidents.observation import (
    BudgetView,
    EbsVolume,
    GroupView,
    NodeClaim,
    NodeView,
    Ownership,
    PodOnNode,
    PodView,
    StatusView,
)
from core.rotation.plan import Launched
from core.rotation.run_record import Throttle
from core.views import ClusterView
from handlers.adapters.pods import Scrapes
from tests.explorer import world as explored
from tests.explorer.adapters import ExploredCloud, ExploredNodes
from tests.explorer.own_drain import ExploredDrain
from tests.explorer.rules import Invocation
from tests.explorer.world import FIRST, PREFIX, TAG, WHOSE, World, group_of, node_named
from tests.unit.handlers.healthy import ZONES, healthy_kafka
from tests.unit.operator_at_work import FINISHED, operator_view
from tests.unit.views import node_view

__all__ = ["NEW", "OLD", "PREFIX", "TAG", "WHOSE", "FakeCluster", "group_of", "node_named"]

OLD, NEW = FIRST[10], "i-0d"


def _held_by_the_world(name: str) -> Any:
    """Return an attribute that is the world's own."""
    return property(
        lambda cluster: getattr(cluster.world, name),
        lambda cluster, value: setattr(cluster.world, name, value),
    )


@dataclass
class FakeCluster(ExploredCloud, ExploredNodes, ExploredDrain):
    """AWS, Kubernetes and Kafka of one cluster."""

    world: World = field(default_factory=World)
    invocation: Invocation = field(default_factory=lambda: Invocation("a test's", 0.0))
    kafka: ClusterView | None = field(default_factory=healthy_kafka)
    kubernetes_answers: bool = True
    beats: list[tuple[str, str, str | None]] = field(default_factory=list)
    completed: list[tuple[str, str, str]] = field(default_factory=list)
    waiting_hooks: set[tuple[str, str]] = field(default_factory=set)
    # What alone completes a hook, where a test says so.
    hook_tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    desired_calls: list[tuple[str, int]] = field(default_factory=list)
    terminated: list[tuple[str, bool]] = field(default_factory=list)
    asked_to_terminate: list[tuple[str, bool]] = field(default_factory=list)
    group_refuses: str = ""  # its words to whoever asks it to terminate an instance
    refuses_decrement_only: bool = False
    on_instance: dict[str, tuple[str, ...]] = field(default_factory=dict)  # EC2's attachments
    disruption_budgets: tuple[BudgetView, ...] = ()
    on_nodes: dict[str, tuple[PodNeeds, ...]] = field(default_factory=dict)
    claims_troubled: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tenants_silent: str = ""  # why nobody says what runs on a node
    revisions: dict[str, str] | None = field(default_factory=dict)
    kafka_conditions: KafkaConditions = FINISHED
    reordered: list[dict[Partition, Order]] = field(default_factory=list)
    volumes: dict[str, EbsVolume] = field(default_factory=dict)
    checks: dict[str, StatusView] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)  # bytes of log by broker
    throttled: Throttle | None = None
    throttle_refused: str = ""  # Kafka's words
    foreign_throttle: str | None = None
    unthrottled: list[tuple[str, ...]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    builds: dict[str, Launched] = field(default_factory=dict)
    node_claims: tuple[NodeClaim, ...] | None = ()
    ended_claims: list[str] = field(default_factory=list)
    scrapes: Scrapes = field(default_factory=Scrapes)
    # Node -> what is on it beside this Kafka's pods.
    beside: dict[str, list[PodOnNode]] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    # Pod -> what the API server says to whoever evicts it.
    refusals: dict[str, str] = field(default_factory=dict)

    instances = _held_by_the_world("instances")
    groups = _held_by_the_world("groups")
    node_views = _held_by_the_world("nodes")
    pods = _held_by_the_world("pods")
    attached = _held_by_the_world("attached")
    cordons = _held_by_the_world("cordons")

    def __post_init__(self) -> None:
        self._stage: Any = self

    # What the handlers ask.
    def launched_instances(self, whose: Ownership) -> Mapping[str, Launched]:
        return self.builds

    def scrape(self, pods: Iterable[str]) -> Scrapes:
        return self.scrapes

    def heartbeat(self, group: str, hook: str, instance_id: str, token: str | None) -> bool:
        self.beats.append((instance_id, hook, token))
        return (instance_id, hook) in self.waiting_hooks

    def complete_hook(
        self, group: str, hook: str, instance_id: str, token: str | None, result: HookResult
    ) -> bool:
        if (instance_id, hook) not in self.waiting_hooks:
            return False
        if token not in {None, self.hook_tokens.get((instance_id, hook), token)}:
            return False
        self.waiting_hooks.remove((instance_id, hook))
        self.completed.append((instance_id, hook, result.value))
        results = {r for id_, _, r in self.completed if id_ == instance_id}
        if not any(id_ == instance_id for id_, _ in self.waiting_hooks):
            kept = "ABANDON" in results
            self.set_lifecycle(
                instance_id, "Terminating:Retained" if kept else "Terminating:Proceed"
            )
        return True

    def set_desired(self, group: str, desired: int) -> None:
        self.desired_calls.append((group, desired))
        self.groups[group] = replace(self.groups[group], desired=desired)

    def terminate_in_group(self, instance_id: str, *, decrement: bool) -> str | None:
        self.asked_to_terminate.append((instance_id, decrement))
        if self.group_refuses and (decrement or not self.refuses_decrement_only):
            return self.group_refuses
        group = self.groups[group_of(self.instances[instance_id].zone)]
        if group.instances.get(instance_id) not in {"InService", "Terminating:Retained"}:
            return f"Instance Id not found - No managed instance found for {instance_id}."
        self.terminated.append((instance_id, decrement))
        self.groups[group.name] = replace(group, desired=group.desired - decrement)
        self.terminate(instance_id)
        return None

    def volumes_on(self, instance_id: str) -> tuple[str, ...]:
        return self.on_instance.get(instance_id, ())

    def budgets(self) -> tuple[BudgetView, ...]:
        return self.disruption_budgets

    def claim_troubles(self, pod: str) -> tuple[str, ...]:
        return self.claims_troubled.get(pod, ())

    def tenants(self, node: str) -> tuple[PodNeeds, ...]:
        if self.tenants_silent:
            raise StillwaterError(self.tenants_silent)
        return self.on_nodes.get(node, ())

    def operator(self) -> OperatorView:
        if self.revisions is None:
            raise StillwaterError("The Kubernetes API answered 403.")
        return operator_view(self.pods.values(), self.revisions, self.kafka_conditions)

    def _change_pod(self, name: str, **changed: Any) -> None:
        for node_id, pod in self.pods.items():
            if pod.name == name:
                self.pods[node_id] = replace(pod, **changed)

    def release_attachments(self, node: str) -> None:
        assert all(view.name != node for view in self.node_views.values())
        self.released.append(node)
        self.attached.pop(node, None)

    def reorder(self, orders: Mapping[Partition, Order]) -> None:
        view = self.read()
        if orders:
            self.reordered.append(dict(orders))
        self.kafka = replace(
            view,
            partitions=tuple(
                replace(p, replicas=orders.get((p.topic, p.partition), p.replicas))
                for p in view.partitions
            ),
        )

    def elect(self, partitions: Iterable[Partition]) -> None:
        view, elected = self.read(), set(partitions)
        self.kafka = replace(
            view,
            partitions=tuple(
                replace(p, leader=p.replicas[0])
                if (p.topic, p.partition) in elected and p.replicas[0] in p.isr
                else p
                for p in view.partitions
            ),
        )

    def throttled_by_others(self, throttle: Throttle, ours: Collection[str]) -> str | None:
        return None if ours else self.foreign_throttle

    def throttle(self, throttle: Throttle) -> None:
        if self.throttle_refused:
            raise StillwaterError(self.throttle_refused)
        self.throttled = throttle

    def unthrottle(self, topics: Collection[str]) -> None:
        if self.throttle_refused:
            raise StillwaterError(self.throttle_refused)
        self.throttled = None
        self.unthrottled.append(tuple(topics))

    def pods_on(self, node: str) -> tuple[PodOnNode, ...]:
        return (*self.beside.get(node, ()), *super().pods_on(node))

    def evict(self, namespace: str, name: str, uid: str) -> str | None:
        refusal = self.refusals.get(name)
        if refusal is not None:
            return refusal
        self.evicted.append(name)
        self._change_pod(name, stopping=True, ready=False)
        for node, pods in self.beside.items():
            self.beside[node] = [each for each in pods if each.uid != uid]
        return None

    def nodes(self) -> tuple[NodeView, ...]:
        if not self.kubernetes_answers:
            raise StillwaterError("The Kubernetes API did not answer.")
        return tuple(self.node_views.values())

    def claims(self) -> tuple[NodeClaim, ...]:
        if self.node_claims is None:
            raise StillwaterError("The Kubernetes API answered 403.")
        return self.node_claims

    def end(self, name: str, uid: str) -> None:
        self.ended_claims.append(name)
        self.node_claims = tuple(
            replace(each, deleted=True) if (each.name, each.uid) == (name, uid) else each
            for each in self.claims()
        )
        for each in self.claims():
            if each.name == name and each.node_name is not None:
                self._change(each.node_name, schedulable=False)

    def log_bytes(self, brokers: Iterable[int] | None = None) -> dict[int, int]:
        wanted = self.held.keys() if brokers is None else set(brokers)
        return {broker: size for broker, size in self.held.items() if broker in wanted}

    def read(self, about: Collection[int] | None = None) -> ClusterView:
        del about
        if self.kafka is None:
            raise StillwaterError("No Kafka broker could be reached: refused.")
        return self.kafka

    def volume(self, volume_id: str) -> EbsVolume | None:
        return self.volumes.get(volume_id)

    def instance_states(self, whose: Ownership) -> Mapping[str, str]:
        return {i.instance_id: i.state for i in self.instances.values() if whose.owns(i.tags)}

    def statuses(self, instance_ids: Sequence[str]) -> Mapping[str, StatusView]:
        return {id_: self.checks[id_] for id_ in instance_ids if id_ in self.checks}

    # What happens to the cluster.
    def add_instance(self, instance_id: str, zone: str, lifecycle: str = "InService") -> None:
        name = group_of(zone)
        explored.add_instance(self.world, instance_id, zone)
        group = self.groups.get(name) or GroupView(
            name=name, desired=1, maximum=2, instances={}, zones=(zone,)
        )
        self.groups[name] = replace(group, instances={**group.instances, instance_id: lifecycle})

    def add_node(self, instance_id: str, *, ready: bool = True, csi_ready: bool = True) -> None:
        instance = self.instances[instance_id]
        self.node_views[instance_id] = node_view(
            instance.private_dns_name, instance_id, instance.zone, ready=ready, csi_ready=csi_ready
        )

    def join(self, instance_id: str, zone: str = "us-east-1a", **node: bool) -> None:
        """A group launches an instance, whose Node joins."""
        self.add_instance(instance_id, zone)
        self.add_node(instance_id, **node)

    def change_node(self, instance_id: str, /, **changed: Any) -> None:
        self.node_views[instance_id] = replace(self.node_views[instance_id], **changed)

    def change_pod(self, node_id: int, /, **changed: Any) -> None:
        self.pods[node_id] = replace(self.pods[node_id], **changed)

    def change_group(self, name: str, /, **changed: Any) -> None:
        self.groups[name] = replace(self.groups[name], **changed)

    def place_pod(self, node_id: int, instance_id: str | None, *, ready: bool = True) -> None:
        node = None if instance_id is None else self.node_views[instance_id].name
        self.pods[node_id] = PodView(
            name=f"orders-broker-{ZONES[node_id][-1]}-{node_id}",
            node_id=node_id,
            role="broker",
            node_name=node,
            ready=ready,
        )
        if node is not None:
            self.attached = {n: v for n, v in self.attached.items() if v != (f"pvc-{node_id}",)}
            self.attached[node] = (f"pvc-{node_id}",)

    def set_lifecycle(self, instance_id: str, state: str) -> None:
        group = self.groups[group_of(self.instances[instance_id].zone)]
        changed = {**group.instances, instance_id: state}
        self.groups[group.name] = replace(group, instances=changed)

    def set_groups_without(self, instance_id: str) -> None:
        for name, group in self.groups.items():
            kept = {i: state for i, state in group.instances.items() if i != instance_id}
            self.groups[name] = replace(group, instances=kept)

    def set_state(self, instance_id: str, state: str) -> None:
        self.instances[instance_id] = replace(self.instances[instance_id], state=state)

    def terminate(self, instance_id: str) -> None:
        """The group begins to terminate an instance: it stands in both hooks."""
        self.set_lifecycle(instance_id, "Terminating:Wait")
        self.waiting_hooks |= {(instance_id, "drain"), (instance_id, "gate")}


def three_brokers() -> FakeCluster:
    cluster = FakeCluster()
    for node_id, instance_id in zip((10, 20, 30), (OLD, "i-0b", "i-0c"), strict=True):
        cluster.add_instance(instance_id, ZONES[node_id])
        cluster.add_node(instance_id)
        cluster.place_pod(node_id, instance_id)
    return cluster


def six_brokers() -> FakeCluster:
    """Two brokers to a zone; a test adds the second ones to ZONES first."""
    cluster = three_brokers()
    for node_id in (11, 21, 31):
        instance_id = f"i-1{ZONES[node_id][-1]}"
        cluster.add_instance(instance_id, ZONES[node_id])
        cluster.add_node(instance_id)
        cluster.place_pod(node_id, instance_id)
    for name, group in cluster.groups.items():
        cluster.groups[name] = replace(group, desired=2, maximum=4)
    return cluster
