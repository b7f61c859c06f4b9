"""Shows an explored world to the handlers, as their adapters' Protocols; every call is a choice.

`Tap` stands before each adapter: the stage decides for every call whether it works, fails before or
after its effect, is the last thing the function does, takes hours, or answers with what was true
some moments ago.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from core.availability.consent import Order, Partition
from core.availability.operator import OperatorView
from core.ground.placement import PodNeeds
from core.incidents.actions import HookResult
from core.incidents.observation import (
    BudgetView,
    EbsVolume,
    GroupView,
    InstanceView,
    NodeView,
    Ownership,
    PodView,
    StatusView,
)
from core.views import ClusterView
from handlers.adapters.pods import Scrapes
from tests.explorer import agenda, handler, nature, operator, rules
from tests.explorer.answers import refusal
from tests.explorer.partitions import elect
from tests.explorer.world import WHOSE, World

_NOTHING = Scrapes()


class Stage(Protocol):
    """Where an adapter finds the world of the moment, and who is asking."""

    world: World
    invocation: rules.Invocation

    def call(self, service: str, name: str, thunk: Callable[[], Any], *, effect: bool) -> Any:
        """Answer one call, or let it fail."""


class Tap:
    """Lets the stage answer every call of an adapter."""

    def __init__(self, stage: Stage, service: str, name: str, adapter: Any) -> None:
        self._stage, self._service = stage, service
        self._name, self._adapter = name, adapter

    def __getattr__(self, method: str) -> Callable[..., Any]:
        found = self._tapped(method)
        # From now on it is found as any attribute, without a question here.
        setattr(self, method, found)
        return found

    def _tapped(self, method: str) -> Callable[..., Any]:
        real = getattr(self._adapter, method)
        name, effect = f"{self._name}.{method}", method in EFFECTS
        call, service = self._stage.call, self._service

        def tapped(*arguments: Any, **named: Any) -> Any:
            return call(service, name, lambda: real(*arguments, **named), effect=effect)

        return tapped


EFFECTS = frozenset(
    {
        *("heartbeat", "complete_hook", "set_desired", "terminate_in_group", "protect"),
        *("mark_spare", "set_out_of_service", "release_attachments", "reorder", "elect"),
        *("put", "file", "record_event", "record_ignored", "close_event", "take_lease"),
        *("begin_drain", "drop_lease", "write", "send", "store", "publish"),
        *("cordon", "uncordon", "evict", "replace", "let_leave", "keep"),
        *("throttle", "unthrottle", "end"),
    }
)


class ExploredCloud:
    """EC2, Auto Scaling and EC2's lists."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def instance(self, instance_id: str) -> InstanceView | None:
        return self._stage.world.instances.get(instance_id)

    def group(self, name: str) -> GroupView | None:
        return self._stage.world.groups.get(name)

    def groups_of(self, whose: Ownership) -> tuple[GroupView, ...]:
        return tuple(self._stage.world.groups.values()) if whose == WHOSE else ()

    def heartbeat(self, group: str, hook: str, instance_id: str, token: str | None) -> bool:
        del group
        return nature.heartbeat(self._stage.world, instance_id, hook, token)

    def complete_hook(
        self, group: str, hook: str, instance_id: str, token: str | None, result: HookResult
    ) -> bool:
        del group
        world = self._stage.world
        standing = world.hooks.get((instance_id, hook))
        if standing is not None and token in {None, standing.token}:
            rules.completed(world, self._stage.invocation, instance_id, hook, result)
        return nature.complete(world, instance_id, hook, token, result)

    def set_desired(self, group: str, desired: int) -> None:
        world = self._stage.world
        if group not in world.groups:
            raise refusal("AutoScalingGroup name not found.", "SetDesiredCapacity")
        if desired > world.groups[group].maximum:
            raise refusal("New SetDesiredCapacity value is above max value.", "SetDesiredCapacity")
        world.groups[group] = replace(world.groups[group], desired=desired)
        nature.reconcile(world)

    def terminate_in_group(self, instance_id: str, *, decrement: bool) -> str | None:
        rules.terminated(self._stage.world, instance_id)
        done = nature.terminate(self._stage.world, instance_id, decrement=decrement)
        return None if done else "The group terminates nothing."

    def protect(self, group: str, instance_ids: Iterable[str], *, protected: bool) -> None:
        groups = self._stage.world.groups
        if group not in groups:
            raise refusal("AutoScalingGroup name not found.", "SetInstanceProtection")
        held, changed = groups[group].protected, frozenset(instance_ids)
        after = held | changed if protected else held - changed
        groups[group] = replace(groups[group], protected=after)

    def volumes_on(self, instance_id: str) -> tuple[str, ...]:
        world = self._stage.world
        state = world.instances[instance_id].state
        gone = state in {"stopped", "terminated"}
        return () if gone else world.attached.get(f"ip-{instance_id}.ec2.internal", ())

    def zone_names(self) -> dict[str, str]:
        return {"use1-az4": "us-east-1a", "use1-az6": "us-east-1b", "use1-az1": "us-east-1c"}

    def volume(self, volume_id: str) -> EbsVolume | None:
        del volume_id
        return None

    def instance_states(self, whose: Ownership) -> Mapping[str, str]:
        return {i.instance_id: i.state for i in self._stage.world.instances.values()}

    def statuses(self, instance_ids: Sequence[str]) -> Mapping[str, StatusView]:
        world = self._stage.world
        return {
            id_: StatusView(
                instance_id=id_,
                impaired={"instance": world.impaired[id_]} if id_ in world.impaired else {},
            )
            for id_ in instance_ids
            if world.instances[id_].state == "running"
        }


class ExploredNodes:
    """Kubernetes."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def nodes(self) -> tuple[NodeView, ...]:
        return tuple(self._stage.world.nodes.values())

    def kafka_pod(self, name: str) -> PodView | None:
        return next((pod for pod in self.kafka_pods() if pod.name == name), None)

    def kafka_pods(self) -> tuple[PodView, ...]:
        found = tuple(self._stage.world.pods.values())
        self._stage.invocation.pods = found
        return found

    def claim_troubles(self, pod: str) -> tuple[str, ...]:
        del pod
        return ()

    def tenants(self, node: str) -> tuple[PodNeeds, ...]:
        del node
        return ()

    def attachments(self) -> dict[str, tuple[str, ...]]:
        found = dict(self._stage.world.attached)
        self._stage.invocation.attachments = found
        return found

    def server_version(self) -> str:
        return "1.36"

    def budgets(self) -> tuple[BudgetView, ...]:
        world = self._stage.world
        labelled = frozenset(p.name for p in world.pods.values() if p.may_leave is not None)
        others = [pod for pod in world.pods.values() if pod.name not in labelled]
        away = len(labelled) + sum(not pod.ready for pod in others)
        kept = BudgetView(
            name="orders-kafka",
            pods=frozenset(pod.name for pod in others),
            disruptions_allowed=max(0, 1 - away),
            yields=world.together,
        )
        if not world.together:
            return (kept,)
        return kept, BudgetView(
            name="orders-kafka-leaving", pods=labelled, disruptions_allowed=len(labelled)
        )

    def let_leave(self, pod: str, incident_id: str) -> None:
        self._label(pod, incident_id)

    def keep(self, pod: str, incident_id: str) -> None:
        if any(
            p.name == pod and p.may_leave == incident_id for p in self._stage.world.pods.values()
        ):
            self._label(pod, None)

    def _label(self, name: str, incident_id: str | None) -> None:
        pods = self._stage.world.pods
        for node_id, pod in pods.items():
            if pod.name == name:
                pods[node_id] = replace(pod, may_leave=incident_id)

    def operator(self) -> OperatorView:
        world = self._stage.world
        self._stage.invocation.looked_at = world.moment()
        return operator.view(world)

    def mark_spare(self, node: str, incident_id: str | None) -> None:
        self._change(node, spare_for=incident_id)

    def set_out_of_service(self, node: str, instance_id: str, *, tainted: bool) -> None:
        world = self._stage.world
        if instance_id not in world.nodes:
            return
        if tainted:
            rules.tainted(world, instance_id)
            agenda.plan(world, ("freed", instance_id), nature.END)
            agenda.plan(world, ("detached", node), nature.DETACH)
        self._change(node, out_of_service=tainted)

    def release_attachments(self, node: str) -> None:
        agenda.plan(self._stage.world, ("detached", node), nature.DETACH)

    def _change(self, name: str, **changed: Any) -> None:
        nodes = self._stage.world.nodes
        for instance_id, node in nodes.items():
            if node.name == name:
                nodes[instance_id] = replace(node, **changed)
                return


class ExploredKafka:
    """Kafka's brokers, and what their exporters say: nothing."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def read(self, about: Collection[int] | None = None) -> ClusterView:
        del about
        view = self._stage.world.kafka()
        self._stage.invocation.kafka = view
        return view

    def reorder(self, orders: Mapping[Partition, Order]) -> None:
        rules.reordered(self._stage.world, orders)
        self._stage.world.orders.update(orders)

    def elect(self, partitions: Iterable[Partition]) -> None:
        elect(self._stage.world, partitions)

    def log_bytes(self, brokers: Iterable[int] | None = None) -> dict[int, int]:
        del brokers
        return {}

    def scrape(self, pods: Iterable[str]) -> Scrapes:
        del pods
        return _NOTHING


class ExploredTopic:
    """Everybody who is called by the alerts' topic."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def publish(self, subject: str, text: str) -> None:
        about = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        key = about.get("page", subject)
        rules.paged(self._stage.world, about.get("incident_id", ""), key)


class ExploredQueue:
    """One SQS queue to send to."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage, self._name = stage, name

    def send(self, body: str, *, delay_seconds: float = 0.0) -> None:
        world = self._stage.world
        if self._name == "nth":
            rules.forwarded(world, self._stage.invocation, handler.drain_of(body)[1])
        agenda.send(world, self._name, body, min(max(delay_seconds, 0.0), 900.0))
