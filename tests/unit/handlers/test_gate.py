"""Whoever drains a broker's node asks the gate: consent, one lease, a replacement first."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from cli.incidents import breaks
from core.events import Kind
from core.gate import GateAnswer, asked_in
from core.incidents.joining import Pause
from core.incidents.record import Drainer, NodeDisruption, State
from core.views import ClusterView
from core.zones.incident import LostZone
from handlers.store.documents import Pauses
from tests.every_case import every_case
from tests.unit.handlers.announced import REBOOT, RETIREMENT, ec2_event, health_event, hook_event
from tests.unit.handlers.asking import NAMESPACE, OPERATOR, PERSON, Door, lag
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.karpenter_machines import (
    KARPENTER,
    bring_node,
    delete_claim,
    end,
    of_karpenter,
)
from tests.unit.handlers.station import START
from tests.unit.operator_at_work import FINISHED


@pytest.fixture
def door() -> Door:
    return Door()


def test_a_broker_with_a_place_to_go_is_let_through_and_its_drain_recorded(door: Door) -> None:
    door.spare()
    answer = door.ask()
    assert answer.allowed, answer.reason
    incident = door.station.incident()
    expected = [State.OPENED, State.REPLACING, State.HOLDING, State.DRAINING]
    assert [t.state for t in incident.transitions] == expected
    assert incident.kind is Kind.EVICTION
    assert incident.drainer == Drainer(name=PERSON, asked_at=START)
    (lease,) = door.station.ledger.leases()
    assert (lease.holder, lease.node_id, lease.out_at) == (OLD, 10, START)
    assert door.forgotten == 1
    assert door.station.termination_handler.sent == []


def test_two_drainers_in_two_zones_and_one_waits_and_is_told_for_whom(door: Door) -> None:
    door.spare()
    door.spare("i-0e", "us-east-1b")
    assert door.ask(10).allowed
    answer = door.ask(20, user="system:serviceaccount:karpenter:karpenter")
    assert not answer.allowed
    assert answer.reason == f"Incident {OLD} takes a Kafka node out first. Ask again in 5 s."


def test_of_two_pods_on_a_node_the_one_that_is_asked_about_goes_first(door: Door) -> None:
    door.spare()
    pods = door.station.cluster.pods
    pods[0] = replace(pods[10], name="orders-controller-a-0", node_id=0, role="controller")
    assert door.ask(0).allowed
    assert f"sees to {pods[0].name} on {node_named(OLD)} first." in door.ask(10).reason


def test_the_second_goes_once_the_first_is_back_for_good(door: Door) -> None:
    door.spare()
    door.spare("i-0e", "us-east-1b")
    assert door.ask(10).allowed
    door.evicted(10, NEW)
    door.tick_until(State.RIDDEN_THROUGH)
    assert door.station.cluster.terminated == []
    assert door.station.ledger.leases() == ()
    assert door.ask(20).allowed
    assert list(breaks([door.station.incident(id_) for id_ in (OLD, "i-0b")])) == []


PASSING = [(REBOOT, "open"), (RETIREMENT, "closed"), ("AWS_EC2_INSTANCE_ISSUE", "open")]


@pytest.mark.parametrize("word", PASSING)
def test_what_asks_nothing_takes_no_drain_over(door: Door, word: tuple[str, str]) -> None:
    door.spare()
    assert door.ask().allowed
    said = health_event(word[0], status=word[1])
    issue = word[0].endswith("ISSUE")
    door.station.announce(said.replace("scheduledChange", "issue") if issue else said)
    assert door.ask().allowed
    door.evicted(10, NEW)
    door.tick_until(State.RIDDEN_THROUGH)
    assert door.station.incident().kind is Kind.EVICTION
    assert door.station.cluster.asked_to_terminate == []


def test_who_drains_waits_for_a_roll_of_strimzis_operator(door: Door) -> None:
    door.spare()
    door.station.cluster.kafka_conditions = replace(FINISHED, generation_observed=False)
    answer = door.ask()
    assert (answer.allowed, "older generation" in answer.reason) == (False, True)
    door.station.cluster.kafka_conditions = FINISHED
    assert door.ask().allowed


def test_without_a_replacement_the_group_is_asked_for_one_and_the_drainer_told(door: Door) -> None:
    cluster = door.station.cluster
    first = door.ask()
    assert not first.allowed
    assert "No other node of us-east-1a is ready to take" in first.reason
    door.station.tick_until_quiet()
    assert cluster.desired_calls == [("local-orders-broker-a", 2)]
    assert not door.ask().allowed
    door.spare()
    door.tick_until(State.HOLDING)
    assert door.ask().allowed


def test_machines_of_others_are_not_asked_for_more(door: Door) -> None:
    cluster = door.station.cluster
    cluster.instances[OLD] = replace(cluster.instances[OLD], tags={"eks:nodegroup-name": "kafka"})
    assert "its drainer brings one" in door.ask().reason
    door.station.tick_until_quiet()
    assert cluster.desired_calls == []
    assert door.station.incident().state is State.REPLACING


def test_a_reading_that_comes_too_late_admits_nobody(door: Door) -> None:
    door.spare()
    answer = door.ask(patience=-1)
    assert not answer.allowed
    assert "took too long" in answer.reason
    assert door.station.ledger.leases() == ()


def test_a_rehearsal_is_answered_and_changes_nothing(door: Door) -> None:
    door.spare()
    assert door.ask(dry_run=True).allowed
    assert door.station.ledger.open_incidents() == ()
    assert door.station.ledger.leases() == ()


def test_a_termination_that_waits_for_its_turn_keeps_other_drainers_waiting(door: Door) -> None:
    station = door.station
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))
    station.tick_until_quiet()
    answer = door.ask()
    assert not answer.allowed
    assert answer.reason.startswith(f"Incident {OLD} (asg_terminate) sees to it:")


def test_a_pod_that_is_only_deleted_starts_again_on_its_own_node(door: Door) -> None:
    station = door.station
    assert door.ask(delete=True).allowed
    assert station.incident().replacement_node == node_named(OLD)
    assert station.ledger.leases()[0].out_at == START
    station.now += 120
    door.tick_until(State.RIDDEN_THROUGH)
    assert station.ledger.leases() == ()


def test_an_eviction_that_a_budget_then_refused_gives_the_lease_back(door: Door) -> None:
    door.spare()
    assert door.ask().allowed
    assert door.ask().allowed
    door.station.now += 120
    door.tick_until(State.RIDDEN_THROUGH)
    assert "another webhook or budget refused" in door.station.incident().reason
    assert door.station.ledger.leases() == ()


def test_a_drain_that_ended_after_its_incident_keeps_nobody_for_ever(door: Door) -> None:
    door.spare("i-0e", "us-east-1b")
    ledger = door.station.ledger
    ledger.take_lease("i-0c", START - 9000, 60, node_id=30)
    ledger.begin_drain("i-0c", START - 9000, 60, node_id=30)
    door.station.cluster.instances.pop("i-0c")
    door.station.cluster.node_views.pop("i-0c")
    assert "Incident i-0c takes a Kafka node out first" in door.ask(20).reason
    door.station.tick(6)
    assert door.ask(20).allowed


def test_who_stops_asking_leaves_nothing_behind(door: Door) -> None:
    assert not door.ask().allowed
    door.station.tick_until_quiet()
    door.station.now += 1000
    door.tick_until(State.CANCELLED)
    assert door.station.cluster.groups["local-orders-broker-a"].desired == 1


def test_a_frozen_zone_and_a_pause_keep_everybody(door: Door) -> None:
    door.spare()
    door.station.freezes.note(LostZone("use1-az4", "us-east-1a"), START)
    assert "Nothing is drained there" in door.ask().reason


def test_a_pod_that_is_told_to_stop_or_is_not_kafkas_passes(door: Door) -> None:
    cluster = door.station.cluster
    cluster.kafka = None
    judges = door.gate
    door.gate = replace(judges, namespace="another")
    assert door.ask().allowed
    door.gate = judges
    assert not door.ask().allowed
    cluster.change_pod(10, stopping=True)
    assert door.ask().allowed
    del cluster.pods[20]
    assert door.ask(20).allowed


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("orders-web-0", "is not a running pod of Kafka's"),
        # The broker that is out, and the one beside it that Kafka needs.
        ("orders-broker-a-10", "Node 10 may not leave: broker 20 is fenced"),
    ],
    ids=["invented", "needed"],
)
def test_what_a_request_shows_of_its_pod_is_no_proof(door: Door, name: str, answer: str) -> None:
    door.station.cluster.kafka = healthy_kafka(out=20)
    shown = {
        "metadata": {
            "name": name,
            "labels": {"strimzi.io/cluster": "orders", "strimzi.io/pool-name": "broker-a"},
            "deletionTimestamp": "2026-11-20T00:00:00Z" if name == "orders-broker-a-10" else None,
        },
        "spec": {"nodeName": node_named("i-0c")},
    }
    request = {
        "uid": "u-1",
        "operation": "DELETE",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": name,
        "namespace": NAMESPACE,
        "userInfo": {"username": "ada"},
        "oldObject": shown,
    }
    given = door.gate.ask(asked_in({"request": request}), door.station.now + 8)
    assert answer in given.reason
    assert {each.id for each in door.station.ledger.open_incidents()} <= {OLD}
    assert given.allowed is (name == "orders-web-0")
    assert door.station.ledger.leases() == ()


@pytest.mark.parametrize("delete", [False, True], ids=["evict", "delete"])
def test_a_broker_is_not_cut_off_in_the_middle_of_its_shutdown(door: Door, *, delete: bool) -> None:
    """`kubectl delete --force`, or a drain with a grace period of its own."""
    door.spare()
    door.station.cluster.change_pod(10, grace_seconds=300)
    answer = door.ask(delete=delete, grace_seconds=0)
    assert not answer.allowed
    assert "has 300 s to stop in, and this gives it 0" in answer.reason
    assert door.station.ledger.leases() == ()
    assert door.ask(delete=delete, grace_seconds=300).allowed


def test_a_machine_that_ends_anyway_leaves_what_time_there_is(door: Door) -> None:
    door.spare()
    door.station.announce(hook_event("drain"))
    door.station.cluster.change_pod(10, grace_seconds=300)
    ends = NodeDisruption(reason="expiry", forced_at=START + 20)
    door.station.ledger.put(replace(door.station.incident(), disruption=ends))
    assert "this gives it" not in door.ask(grace_seconds=5).reason


def node_deletion(user: str, *finalizers: str) -> dict[str, Any]:
    request = {
        "uid": "u-1",
        "operation": "DELETE",
        "resource": {"group": "", "version": "v1", "resource": "nodes"},
        "name": node_named(OLD),
        "userInfo": {"username": user},
        "oldObject": {
            "metadata": {"finalizers": list(finalizers)},
            "spec": {"providerID": f"aws:///us-east-1a/{OLD}"},
        },
    }
    return {"request": request}


def test_karpenter_deletes_no_node_under_a_pod_that_it_would_not_evict(door: Door) -> None:
    asked = asked_in(node_deletion(KARPENTER, "karpenter.sh/termination"))
    cluster = door.station.cluster
    assert door.gate.ask(asked, START + 8).allowed
    cluster.change_pod(10, ignores_disruption=True)
    answer = door.gate.ask(asked, START + 8)
    assert not answer.allowed
    assert answer.reason == (
        "orders-broker-a-10 tolerates the taint karpenter.sh/disrupted: Karpenter would not evict "
        "it, and end its node under it. Narrow its tolerations."
    )
    cluster.set_state(OLD, "terminated")
    assert door.gate.ask(asked, START + 8).allowed


def test_what_may_start_in_place_is_not_evicted_without_another(door: Door) -> None:
    assert door.ask(delete=True).allowed
    # It has started again on its node, and somebody drains that within the incident's time.
    answer = door.ask()
    assert not answer.allowed
    assert answer.reason.startswith(
        "orders-broker-a-10 was let go to start again on ip-i-0a.ec2.internal, and no other node "
        "of us-east-1a is ready to take it."
    )
    assert door.ask(delete=True).allowed
    door.spare()
    assert door.ask().allowed


SYSTEM = "system:serviceaccount:kube-system:"
NODE_MANAGER = "eks:node-manager"
AUTO_MODE = "eks:a-controller-of-auto-mode"
EVICT, DELETE, DELETE_NODE = "evict", "delete", "delete node"


# Every drainer we know of, and those that wait for ever. Sources of the accounts and of what each
# asks: the charts we install (NTH, Cluster Autoscaler), Karpenter 1.14's `karpenter` account and
# finalizers, AWS's page on managed node group updates (`eks:node-manager`), Kubernetes' controller
# roles. EKS Auto Mode's own account is in no document: whoever is not on the list of those who
# clean up is asked, so that it needs no name.
@dataclass(frozen=True)
class Remover:
    """Somebody who empties nodes, in one of its ways."""

    name: str
    user: str
    asks: str = EVICT
    finalizers: tuple[str, ...] = ()

    def ask(self, gated: Door) -> GateAnswer:
        if self.asks != DELETE_NODE:
            return gated.ask(user=self.user, delete=self.asks == DELETE)
        asked = asked_in(node_deletion(self.user, *self.finalizers))
        return gated.gate.ask(asked, gated.station.now + 8)


EVICTING = (
    Remover("NTH that hears AWS itself", f"{SYSTEM}aws-node-termination-handler"),
    Remover("kubectl drain", PERSON),
    Remover("Karpenter: expiry, drift, consolidation, interruption, repair", KARPENTER),
    Remover("a managed node group's update, force or not", NODE_MANAGER),
    Remover("Cluster Autoscaler", f"{SYSTEM}cluster-autoscaler"),
    Remover("Auto Mode: 21 days, consolidation, repair", AUTO_MODE),
    Remover("the descheduler", f"{SYSTEM}descheduler"),
)
DELETING = (
    Remover("kubectl delete pod", PERSON, DELETE),
    Remover("kubectl drain --disable-eviction", PERSON, DELETE),
    Remover("Karpenter near the end of a terminationGracePeriod", KARPENTER, DELETE),
    Remover("a taint on a node that serves", f"{SYSTEM}taint-eviction-controller", DELETE),
    Remover("another node's kubelet", "system:node:another", DELETE),
)
UNASKED = (
    Remover("Strimzi's operator", OPERATOR, DELETE),
    Remover("the node's own kubelet", f"system:node:{node_named(OLD)}", DELETE),
    Remover("the garbage collector", f"{SYSTEM}generic-garbage-collector", DELETE),
    Remover("the pods' garbage collector", f"{SYSTEM}pod-garbage-collector", DELETE),
    Remover(
        "Karpenter's own deletion of a Node", KARPENTER, DELETE_NODE, ("karpenter.sh/termination",)
    ),
)
NODE_DELETING = (
    Remover("kubectl delete node", PERSON, DELETE_NODE),
    Remover("a cloud controller that lost sight of it", f"{SYSTEM}node-lifecycle", DELETE_NODE),
)
Situation = Callable[[Door], None]


def whole(gated: Door) -> None:
    """Another node is Ready in the zone."""
    gated.spare()


def no_place(gated: Door) -> None:
    """No other node is there: who brings none, or has not yet."""


def lagging(gated: Door) -> None:
    """A replica of another broker is out of sync, its pod Ready all the same."""
    gated.spare()
    lag(gated)


def another_out(gated: Door) -> None:
    """Another zone's broker was let go a moment ago."""
    gated.spare()
    gated.spare("i-0e", "us-east-1b")
    assert gated.ask(20).allowed


def kafka_silent(gated: Door) -> None:
    """Nobody of Kafka answers."""
    gated.spare()
    gated.station.cluster.kafka = None


def doubtful(gated: Door) -> None:
    """Kafka is read in part."""
    gated.spare()
    gated.station.cluster.kafka = ClusterView(frozenset({10}), frozenset(), (), None, ())


def blind(gated: Door) -> None:
    """The API server does not answer."""
    gated.spare()
    gated.station.cluster.kubernetes_answers = False


REFUSED: dict[Situation, str] = {
    no_place: "No other node of us-east-1a is ready to take",
    lagging: "may not leave: partition t-0 would keep",
    another_out: "takes a Kafka node out first",
    kafka_silent: "No Kafka broker could be reached",
    doubtful: "the controllers have no quorum",
}
UNSEEN: dict[Situation, str] = {blind: "is unknown: The Kubernetes API did not answer"}


def named(each: object) -> str:
    return each.name if isinstance(each, Remover) else getattr(each, "__name__", str(each))


@every_case("drainer", EVICTING, ids=named)
def test_whoever_evicts_is_let_through_where_kafka_and_a_place_allow_it(drainer: Remover) -> None:
    gated = Door()
    whole(gated)
    assert drainer.ask(gated).allowed
    incident = gated.station.incident()
    assert (incident.state, incident.drainer.name) == (State.DRAINING, drainer.user)


@every_case("situation", REFUSED | UNSEEN, ids=named)
@every_case("drainer", EVICTING, ids=named)
def test_who_evicts_waits_and_is_told_for_what(drainer: Remover, situation: Situation) -> None:
    gated = Door()
    situation(gated)
    before = gated.station.ledger.leases()
    answer = drainer.ask(gated)
    assert not answer.allowed
    assert (REFUSED | UNSEEN)[situation] in answer.reason
    assert answer.reason.endswith("Ask again in 5 s.")
    assert gated.station.ledger.leases() == before


@every_case("drainer", DELETING, ids=named)
def test_a_deletion_is_asked_as_an_eviction_and_starts_in_place(drainer: Remover) -> None:
    gated = Door()
    assert drainer.ask(gated).allowed
    for situation in (lagging, another_out, kafka_silent):
        refusing = Door()
        situation(refusing)
        assert not drainer.ask(refusing).allowed


@every_case("situation", [whole, *REFUSED], ids=named)
@every_case("drainer", UNASKED, ids=named)
def test_who_cleans_up_or_rolls_is_never_kept(drainer: Remover, situation: Situation) -> None:
    gated = Door()
    situation(gated)
    assert drainer.ask(gated).allowed


@every_case("drainer", UNASKED[:-1], ids=named)
def test_who_cleans_up_is_asked_before_it_evicts(drainer: Remover) -> None:
    gated = Door()
    kafka_silent(gated)
    assert not replace(drainer, asks=EVICT).ask(gated).allowed


@every_case("situation", [whole, *REFUSED], ids=named)
@every_case("drainer", NODE_DELETING, ids=named)
def test_a_running_brokers_node_is_deleted_by_none(drainer: Remover, situation: Situation) -> None:
    gated = Door()
    situation(gated)
    answer = drainer.ask(gated)
    assert not answer.allowed
    assert "drain it" in answer.reason


@every_case("state", ["stopped", "terminated"])
@every_case("drainer", NODE_DELETING, ids=named)
def test_the_node_of_a_machine_that_has_ended_may_go(drainer: Remover, state: str) -> None:
    gated = Door()
    gated.station.cluster.set_state(OLD, state)
    assert drainer.ask(gated).allowed


@every_case("drainer", EVICTING, ids=named)
def test_a_two_minute_warning_is_kept_by_nobody(drainer: Remover) -> None:
    """A forced end of AWS's is past every gate; what can be had of the time is had."""
    gated = Door()
    another_out(gated)
    gated.station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    assert gated.station.tick().incident().state is State.DRAINING
    assert drainer.ask(gated).allowed


@every_case("drainer", EVICTING, ids=named)
def test_our_own_drain_of_a_node_lets_everybody_through(drainer: Remover) -> None:
    gated = Door()
    gated.station.cluster.terminate(OLD)
    for hook in ("drain", "gate"):
        gated.station.announce(hook_event(hook))
    gated.spare()
    gated.tick_until(State.DRAINING)
    assert gated.station.forwarded
    assert drainer.ask(gated).allowed
    gated.station.cluster.kafka = healthy_kafka(out=20)
    assert not drainer.ask(gated).allowed


@pytest.fixture
def gated() -> Door:
    """Karpenter ends a node, and Kafka does not let its broker go."""
    gated = of_karpenter(Door())
    bring_node(gated, NEW)
    end(gated, delete_claim())
    gated.station.cluster.kafka = healthy_kafka(out=30)
    assert not gated.ask(user=KARPENTER).allowed
    assert gated.station.tick(4).incident().state is State.HOLDING
    return gated


def test_a_drain_that_kafka_refuses_for_long_calls_a_person_once(gated: Door) -> None:
    station = gated.station
    for _ in range(2):
        station.now += station.policy.hold_limit_seconds
        station.tick()
    (page,) = [page for page in station.ticks.pages if page["page"] == "waits_long"]
    assert "broker 30 is fenced" in page["reason"]


def test_a_drain_that_a_pause_keeps_is_nobodys_news(gated: Door) -> None:
    station = gated.station
    pause = Pause("ann", "maintenance", station.now)
    Pauses(station.records, "orders").write(pause)
    for _ in range(2):
        station.now += station.policy.hold_limit_seconds
        station.tick()
    assert station.ticks.pages == []
