"""A world around the station that answers what the loop asks for, at its own pace and order.

The group launches what is desired, the termination handler drains what is forwarded to it, pods
start on idle nodes of their zone, hooks that are complete let their instance go. Every step is one
choice of the caller's, so that a property test can try any order of everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from core.incidents.observation import PodView
from core.incidents.planned import is_planned
from core.incidents.record import Incident
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import group_of, node_named
from tests.unit.handlers.healthy import ZONES, healthy_kafka
from tests.unit.handlers.station import Station

Choose = Callable[[int], int]  # one of n, by its number


@dataclass
class World:
    """The station, and what happens around it between two ticks."""

    station: Station
    choose: Choose
    lose_announcements: bool = False
    out: set[int] = field(default_factory=set)  # brokers that are not back in sync
    most_out: int = 0
    bare: list[str] = field(default_factory=list)  # drains without a node to go to
    _drained: int = 0  # of the messages to the termination handler
    _delivered: set[str] = field(default_factory=set)
    _launched: int = 0
    _turns: int = 0

    def run(self, most: int) -> None:
        """Let things happen, whatever is chosen, until no incident is open."""
        steps = self._steps
        for _ in range(most):
            if not self.station.ledger.open_incidents():
                return
            steps[self.choose(len(steps))]()

    def settle(self, most: int, paces: Sequence[int] = (1,)) -> None:
        """Let everything happen in turn until all is over; AssertionError when it never is.

        What only waits for its turn in a run does not hold it up.
        `paces` says of each kind of step how many rounds it takes: a slow launch, a slow return.
        """
        self.choose = lambda options: self._turns % options
        for _ in range(most):
            for number, step in enumerate(self._steps):
                if self._turns % paces[number % len(paces)] == 0:
                    step()
            self._turns += 1
            if (
                all(each.ahead and is_planned(each) for each in self._open())
                and not self._leaving()
            ):
                return
        raise AssertionError([i.reason for i in self.station.ledger.open_incidents()])

    @property
    def _steps(self) -> tuple[Callable[[], None], ...]:
        # Ticks come more often than anything they wait for.
        return (
            *(self._tick, self._tick, self._tick, self._tick),
            *(self._announce, self._launch, self._drain),
            *(self._start, self._catch_up, self._end),
        )

    def _open(self) -> tuple[Incident, ...]:
        return self.station.ledger.open_incidents()

    def _leaving(self) -> list[str]:
        groups = self.station.cluster.groups.values()
        return [i for g in groups for i, s in g.instances.items() if s == "Terminating:Wait"]

    def _tick(self) -> None:
        """Time passes; the sweep finds whom no tick carries, and any of their ticks comes first."""
        station = self.station
        station.now += 50
        sent = len(station.ticks.sent)
        station.broom.sweep(station.now)
        late = [body for body, _ in station.ticks.sent[sent:] if "incident_id" in body]
        if late:
            station.loop.turn(late[self.choose(len(late))], station.now)
        self.most_out = max(self.most_out, len(self.out))

    def _launch(self) -> None:
        cluster = self.station.cluster
        for group in list(cluster.groups.values()):
            if group.desired > len(group.staying()):
                self._launched += 1
                instance_id = f"i-new{self._launched}"
                zone = next(z for z in ZONES.values() if group_of(z) == group.name)
                cluster.add_instance(instance_id, zone)
                cluster.add_node(instance_id)
                return

    def _announce(self) -> None:
        """EventBridge says what stands in hooks; it may say so twice, or never."""
        for group in self.station.cluster.groups.values():
            for instance_id, state in group.instances.items():
                if state == "Terminating:Wait" and instance_id not in self._delivered:
                    self._delivered.add(instance_id)
                    if not self.lose_announcements:
                        zone = self.station.cluster.instances[instance_id].zone
                        for hook in ("drain", "gate", "drain"):
                            event = hook_event(hook, instance_id=instance_id, zone=zone)
                            self.station.announce(event)
                    return

    def _drain(self) -> None:
        """The termination handler takes its next message and evicts the node's broker."""
        sent = self.station.termination_handler.sent
        if self._drained >= len(sent):
            return
        detail = json.loads(sent[self._drained][0])
        self._drained += 1
        told = detail.get("detail", detail)
        instance_id = told.get("EC2InstanceId") or told["instance-id"]
        cluster = self.station.cluster
        cluster.waiting_hooks.discard((instance_id, "drain"))
        for node_id, pod in cluster.pods.items():
            if pod.node_name == node_named(instance_id):
                if self._lacks_a_place(instance_id):
                    self.bare.append(instance_id)
                self._stop(node_id, pod)

    def _lacks_a_place(self, instance_id: str) -> bool:
        return not self._idle(self.station.cluster.instances[instance_id].zone)

    def _stop(self, node_id: int, pod: PodView) -> None:
        cluster = self.station.cluster
        self.out.add(node_id)
        self.most_out = max(self.most_out, len(self.out))
        if pod.node_name:
            cluster.attached.pop(pod.node_name, None)
        cluster.pods[node_id] = replace(pod, node_name=None, ready=False)
        self._show_kafka()

    def _start(self) -> None:
        """A pod without a node starts on an idle one of its zone."""
        for node_id, pod in self.station.cluster.pods.items():
            idle = self._idle(ZONES[node_id])
            if pod.node_name is None and idle:
                self.station.cluster.place_pod(node_id, idle[0])
                return

    def _idle(self, zone: str) -> list[str]:
        cluster = self.station.cluster
        busy = {pod.node_name for pod in cluster.pods.values()}
        staying = cluster.groups[group_of(zone)].staying()
        return [
            id_
            for id_, node in cluster.node_views.items()
            if node.zone == zone and node.name not in busy and id_ in staying
        ]

    def _catch_up(self) -> None:
        for node_id in sorted(self.out):
            if self.station.cluster.pods[node_id].ready:
                self.out.discard(node_id)
                self._show_kafka()
                return

    def _show_kafka(self) -> None:
        view = healthy_kafka()
        alive = {p: tuple(b for b in p.replicas if b not in self.out) for p in view.partitions}
        self.station.cluster.kafka = replace(
            view,
            fenced=frozenset(self.out),
            partitions=tuple(
                replace(p, leader=isr[0] if isr else None, isr=isr) for p, isr in alive.items()
            ),
        )

    def _end(self) -> None:
        """An instance whose hooks are complete goes, and its Node with it."""
        cluster = self.station.cluster
        for group in list(cluster.groups.values()):
            for instance_id, state in group.instances.items():
                waits = {(instance_id, "drain"), (instance_id, "gate")} & cluster.waiting_hooks
                if state != "Terminating:Wait" or waits:
                    continue
                abandoned = (instance_id, "gate", "ABANDON") in cluster.completed
                if abandoned:
                    cluster.set_lifecycle(instance_id, "Terminating:Retained")
                    continue
                cluster.set_state(instance_id, "terminated")
                cluster.node_views.pop(instance_id, None)
                left = {i: s for i, s in group.instances.items() if i != instance_id}
                cluster.groups[group.name] = replace(group, instances=left)
                return
