"""Every drainer we know of against the gate's answers, and those that wait for ever.

Sources of the accounts and of what each asks: the charts we install (NTH, Cluster Autoscaler),
Karpenter 1.14's `karpenter` account and finalizers, AWS's page on managed node group updates
(`eks:node-manager`), Kubernetes' controller roles. EKS Auto Mode's own account is in no document:
whoever is not on the list of those who clean up is asked, so that it needs no name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from core.gate import GateAnswer, asked_in
from core.incidents.joining import Pause
from core.incidents.record import State
from handlers.store.documents import Pauses
from tests.every_case import every_case
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.asking import OPERATOR, PERSON, Door
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.karpenter_machines import (
    KARPENTER,
    bring_node,
    delete_claim,
    end,
    of_karpenter,
)

SYSTEM = "system:serviceaccount:kube-system:"
NODE_MANAGER = "eks:node-manager"
AUTO_MODE = "eks:a-controller-of-auto-mode"
EVICT, DELETE, DELETE_NODE = "evict", "delete", "delete node"


@dataclass(frozen=True)
class Drainer:
    """Somebody who empties nodes, in one of its ways."""

    name: str
    user: str
    asks: str = EVICT
    finalizers: tuple[str, ...] = ()

    def ask(self, door: Door) -> GateAnswer:
        if self.asks != DELETE_NODE:
            return door.ask(user=self.user, delete=self.asks == DELETE)
        shown: dict[str, Any] = {
            "metadata": {"name": node_named(OLD), "finalizers": list(self.finalizers)},
            "spec": {"providerID": f"aws:///us-east-1a/{OLD}"},
        }
        request = {
            "uid": "u-1",
            "operation": "DELETE",
            "resource": {"group": "", "version": "v1", "resource": "nodes"},
            "name": node_named(OLD),
            "userInfo": {"username": self.user},
            "oldObject": shown,
        }
        return door.gate.ask(asked_in({"request": request}), door.station.now + 8)


EVICTING = (
    Drainer("NTH that hears AWS itself", f"{SYSTEM}aws-node-termination-handler"),
    Drainer("kubectl drain", PERSON),
    Drainer("Karpenter: expiry, drift, consolidation, interruption, repair", KARPENTER),
    Drainer("a managed node group's update, force or not", NODE_MANAGER),
    Drainer("Cluster Autoscaler", f"{SYSTEM}cluster-autoscaler"),
    Drainer("Auto Mode: 21 days, consolidation, repair", AUTO_MODE),
    Drainer("the descheduler", f"{SYSTEM}descheduler"),
)
DELETING = (
    Drainer("kubectl delete pod", PERSON, DELETE),
    Drainer("kubectl drain --disable-eviction", PERSON, DELETE),
    Drainer("Karpenter near the end of a terminationGracePeriod", KARPENTER, DELETE),
    Drainer("a taint on a node that serves", f"{SYSTEM}taint-eviction-controller", DELETE),
    Drainer("another node's kubelet", "system:node:another", DELETE),
)
UNASKED = (
    Drainer("Strimzi's operator", OPERATOR, DELETE),
    Drainer("the node's own kubelet", f"system:node:{node_named(OLD)}", DELETE),
    Drainer("the garbage collector", f"{SYSTEM}generic-garbage-collector", DELETE),
    Drainer("the pods' garbage collector", f"{SYSTEM}pod-garbage-collector", DELETE),
    Drainer(
        "Karpenter's own deletion of a Node", KARPENTER, DELETE_NODE, ("karpenter.sh/termination",)
    ),
)
NODE_DELETING = (
    Drainer("kubectl delete node", PERSON, DELETE_NODE),
    Drainer("a cloud controller that lost sight of it", f"{SYSTEM}node-lifecycle", DELETE_NODE),
)
Situation = Callable[[Door], None]


def whole(door: Door) -> None:
    """Another node is Ready in the zone."""
    door.spare()


def no_place(door: Door) -> None:
    """No other node is there: who brings none, or has not yet."""


def lagging(door: Door) -> None:
    """A replica of another broker is out of sync, its pod Ready all the same."""
    door.spare()
    view = healthy_kafka()
    behind = tuple(replace(p, isr=(10, 30)) for p in view.partitions)
    door.station.cluster.kafka = replace(view, partitions=behind)


def another_out(door: Door) -> None:
    """Another zone's broker was let go a moment ago."""
    door.spare()
    door.spare("i-0e", "us-east-1b")
    assert door.ask(20).allowed


def kafka_silent(door: Door) -> None:
    """Nobody of Kafka answers."""
    door.spare()
    door.station.cluster.kafka = None


REFUSED: dict[Situation, str] = {
    no_place: "No other node of us-east-1a is ready to take",
    lagging: "may not leave: partition t-0 would keep",
    another_out: "takes a Kafka node out first",
    kafka_silent: "No Kafka broker could be reached",
}


def named(each: object) -> str:
    return each.name if isinstance(each, Drainer) else getattr(each, "__name__", str(each))


@every_case("drainer", EVICTING, ids=named)
def test_whoever_evicts_is_let_through_where_kafka_and_a_place_allow_it(drainer: Drainer) -> None:
    door = Door()
    whole(door)
    assert drainer.ask(door).allowed
    incident = door.station.incident()
    assert incident.drainer is not None
    assert (incident.state, incident.drainer.name) == (State.DRAINING, drainer.user)


@every_case("situation", REFUSED, ids=named)
@every_case("drainer", EVICTING, ids=named)
def test_who_evicts_waits_and_is_told_for_what(drainer: Drainer, situation: Situation) -> None:
    door = Door()
    situation(door)
    before = door.station.ledger.leases()
    answer = drainer.ask(door)
    assert not answer.allowed
    assert REFUSED[situation] in answer.reason
    assert answer.reason.endswith("Ask again in 5 s.")
    assert door.station.ledger.leases() == before


@every_case("drainer", DELETING, ids=named)
def test_a_deletion_is_asked_as_an_eviction_and_starts_in_place(drainer: Drainer) -> None:
    door = Door()
    assert drainer.ask(door).allowed
    for situation in (lagging, another_out, kafka_silent):
        refusing = Door()
        situation(refusing)
        assert not drainer.ask(refusing).allowed


@every_case("situation", [whole, *REFUSED], ids=named)
@every_case("drainer", UNASKED, ids=named)
def test_who_cleans_up_or_rolls_is_never_kept(drainer: Drainer, situation: Situation) -> None:
    door = Door()
    situation(door)
    assert drainer.ask(door).allowed


@every_case("situation", [whole, *REFUSED], ids=named)
@every_case("drainer", NODE_DELETING, ids=named)
def test_a_running_brokers_node_is_deleted_by_none(drainer: Drainer, situation: Situation) -> None:
    door = Door()
    situation(door)
    answer = drainer.ask(door)
    assert not answer.allowed
    assert "drain it" in answer.reason


@every_case("state", ["stopped", "terminated"])
@every_case("drainer", NODE_DELETING, ids=named)
def test_the_node_of_a_machine_that_has_ended_may_go(drainer: Drainer, state: str) -> None:
    door = Door()
    door.station.cluster.set_state(OLD, state)
    assert drainer.ask(door).allowed


@every_case("drainer", EVICTING, ids=named)
def test_a_two_minute_warning_is_kept_by_nobody(drainer: Drainer) -> None:
    """A forced end of AWS's is past every gate; what can be had of the time is had."""
    door = Door()
    another_out(door)
    door.station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    door.station.tick()
    assert door.station.incident().state is State.DRAINING
    assert drainer.ask(door).allowed


@every_case("drainer", EVICTING, ids=named)
def test_our_own_drain_of_a_node_lets_everybody_through(drainer: Drainer) -> None:
    door = Door()
    door.station.cluster.terminate(OLD)
    for hook in ("drain", "gate"):
        door.station.announce(hook_event(hook))
    door.spare()
    door.tick_until(State.DRAINING)
    assert drainer.ask(door).allowed


@pytest.fixture
def door() -> Door:
    """Karpenter ends a node, and Kafka does not let its broker go."""
    door = of_karpenter(Door())
    bring_node(door, NEW)
    end(door, delete_claim())
    door.station.cluster.kafka = healthy_kafka(out=30)
    assert not door.ask(user=KARPENTER).allowed
    door.station.tick(4)
    assert door.station.incident().state is State.HOLDING
    return door


def test_a_drain_that_kafka_refuses_for_long_calls_a_person_once(door: Door) -> None:
    station = door.station
    for _ in range(2):
        station.now += station.policy.hold_limit_seconds
        station.tick()
    (page,) = [page for page in station.ticks.pages if page["page"] == "waits_long"]
    assert "broker 30 is fenced" in page["reason"]


def test_a_drain_that_a_pause_keeps_is_nobodys_news(door: Door) -> None:
    station = door.station
    pause = Pause("ann", "maintenance", station.now)
    Pauses(station.records, "orders").write(pause)
    for _ in range(2):
        station.now += station.policy.hold_limit_seconds
        station.tick()
    assert station.ticks.pages == []
