"""A small cluster in memory: the handlers' Cloud, Nodes and KafkaCluster, moved by hand.

Three zones with one broker node each, ids 10, 20, 30; a test says what AWS, Kubernetes and Kafka do
between two ticks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.availability.consent import Order, Partition
from core.availability.operator import KafkaConditions, OperatorView
from core.ground.errors import StillwaterError
from core.ground.naming import managed_tag
from core.ground.placement import PodNeeds
from core.incidents.actions import HookResult
from core.incidents.observation import (
    BudgetView,
    EbsVolume,
    GroupView,
    InstanceView,
    NodeClaim,
    NodeView,
    Ownership,
    PodOnNode,
    PodView,
    StatusView,
    cluster_ownership,
)
from core.rotation.plan import Launched
from core.rotation.run_record import Throttle
from core.views import ClusterView
from handlers.adapters.pods import Scrapes
from tests.unit.handlers.healthy import ZONES, healthy_kafka
from tests.unit.operator_at_work import FINISHED, operator_view

PREFIX = "local-orders"
TAG = managed_tag(PREFIX)
WHOSE = cluster_ownership(PREFIX)
OLD = "i-0a"
NEW = "i-0d"


def group_of(zone: str) -> str:
    return f"{PREFIX}-broker-{zone[-1]}"


def node_named(instance_id: str) -> str:
    return f"ip-{instance_id}.ec2.internal"


@dataclass
class FakeCluster:
    """AWS, Kubernetes and Kafka of one cluster."""

    instances: dict[str, InstanceView] = field(default_factory=dict)
    groups: dict[str, GroupView] = field(default_factory=dict)
    node_views: dict[str, NodeView] = field(default_factory=dict)
    pods: dict[int, PodView] = field(default_factory=dict)
    attached: dict[str, tuple[str, ...]] = field(default_factory=dict)
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
    cordons: dict[str, str] = field(default_factory=dict)  # node -> for which incident

    # What the handlers ask.
    def launched_instances(self, whose: Ownership) -> Mapping[str, Launched]:
        return self.builds

    def scrape(self, pods: Iterable[str]) -> Scrapes:
        return self.scrapes

    def instance(self, instance_id: str) -> InstanceView | None:
        return self.instances.get(instance_id)

    def group(self, name: str) -> GroupView | None:
        return self.groups.get(name)

    def groups_of(self, whose: Ownership) -> tuple[GroupView, ...]:
        return tuple(self.groups.values()) if whose == WHOSE else ()

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

    def protect(self, group: str, instance_ids: Iterable[str], *, protected: bool) -> None:
        held, changed = self.groups[group].protected, frozenset(instance_ids)
        after = held | changed if protected else held - changed
        self.groups[group] = replace(self.groups[group], protected=after)

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

    def let_leave(self, pod: str, incident_id: str) -> None:
        self._change_pod(pod, may_leave=incident_id)

    def keep(self, pod: str, incident_id: str) -> None:
        found = self.kafka_pod(pod)
        if found is not None and found.may_leave == incident_id:
            self._change_pod(pod, may_leave=None)

    def _change_pod(self, name: str, **changed: Any) -> None:
        for node_id, pod in self.pods.items():
            if pod.name == name:
                self.pods[node_id] = replace(pod, **changed)

    def mark_spare(self, node: str, incident_id: str | None) -> None:
        self._change_node(node, spare_for=incident_id)

    def set_out_of_service(self, node: str, instance_id: str, *, tainted: bool) -> None:
        assert self.node_views[instance_id].name == node
        self._change_node(node, out_of_service=tainted)

    def release_attachments(self, node: str) -> None:
        assert all(view.name != node for view in self.node_views.values())
        self.released.append(node)
        self.attached.pop(node, None)

    def _change_node(self, name: str, **changed: Any) -> None:
        for instance_id, node in self.node_views.items():
            if node.name == name:
                self.node_views[instance_id] = replace(node, **changed)

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
        kafkas = [
            PodOnNode(namespace="kafka", name=p.name, uid=p.name, stopping=p.stopping, kafka=True)
            for p in self.pods.values()
            if p.node_name == node
        ]
        return (*self.beside.get(node, ()), *kafkas)

    def cordon(self, node: str, incident_id: str) -> None:
        if any(view.name == node and view.schedulable for view in self.node_views.values()):
            self.cordons[node] = incident_id
            self._change_node(node, schedulable=False, cordoned_for=incident_id)

    def uncordon(self, node: str, incident_id: str) -> None:
        if self.cordons.get(node) == incident_id:
            del self.cordons[node]
            self._change_node(node, schedulable=True, cordoned_for=None)

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

    def kafka_pods(self) -> tuple[PodView, ...]:
        return tuple(self.pods.values())

    def kafka_pod(self, name: str) -> PodView | None:
        return next((p for p in self.pods.values() if p.name == name), None)

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
                self._change_node(each.node_name, schedulable=False)

    def server_version(self) -> str:
        return "1.36"

    def attachments(self) -> dict[str, tuple[str, ...]]:
        return self.attached

    def log_bytes(self, brokers: Iterable[int] | None = None) -> dict[int, int]:
        wanted = self.held.keys() if brokers is None else set(brokers)
        return {broker: size for broker, size in self.held.items() if broker in wanted}

    def read(self, about: Collection[int] | None = None) -> ClusterView:
        del about
        if self.kafka is None:
            raise StillwaterError("No Kafka broker could be asked: refused.")
        return self.kafka

    def volume(self, volume_id: str) -> EbsVolume | None:
        return self.volumes.get(volume_id)

    def zone_names(self) -> dict[str, str]:
        return {"use1-az4": "us-east-1a", "use1-az6": "us-east-1b", "use1-az1": "us-east-1c"}

    def instance_states(self, whose: Ownership) -> Mapping[str, str]:
        return {i.instance_id: i.state for i in self.instances.values() if whose.owns(i.tags)}

    def statuses(self, instance_ids: Sequence[str]) -> Mapping[str, StatusView]:
        return {id_: self.checks[id_] for id_ in instance_ids if id_ in self.checks}

    # What happens to the cluster.
    def add_instance(self, instance_id: str, zone: str, lifecycle: str = "InService") -> None:
        name = group_of(zone)
        self.instances[instance_id] = InstanceView(
            instance_id=instance_id,
            state="running",
            zone=zone,
            private_dns_name=node_named(instance_id),
            group=name,
            tags={TAG: ""},
        )
        group = self.groups.get(name) or GroupView(
            name=name, desired=1, maximum=2, instances={}, zones=(zone,)
        )
        self.groups[name] = replace(group, instances={**group.instances, instance_id: lifecycle})

    def add_node(self, instance_id: str, *, ready: bool = True, csi_ready: bool = True) -> None:
        instance = self.instances[instance_id]
        self.node_views[instance_id] = NodeView(
            name=instance.private_dns_name,
            instance_id=instance_id,
            zone=instance.zone,
            pool="broker",
            ready=ready,
            schedulable=True,
            csi_ready=csi_ready,
        )

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
