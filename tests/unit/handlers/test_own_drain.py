"""Where no termination handler drains, the tick empties nodes itself, raced or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.incidents.observation import BudgetView, PodOnNode
from core.incidents.record import State
from core.incidents.terminating import LATE_EVICTION_SECONDS, OTHERS_SECONDS
from tests.unit.handlers.announced import ec2_event
from tests.unit.handlers.asking import Door
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.test_pause import paused
from tests.unit.handlers.walks import announce, replace_machine

NODE = node_named(OLD)
POD = "orders-broker-a-10"
EVICTING = replace(POLICY, drain_route="evict", drain_life_seconds=400)
OPERATOR = PodOnNode(namespace="strimzi", name="operator", uid="1")
AGENT = PodOnNode(namespace="kube-system", name="agent", uid="2", stays=True)
BARE = PodOnNode(namespace="default", name="debug", uid="3", owned=False)


def station(*beside: PodOnNode, **changes: object) -> Station:
    made = Station(policy=replace(EVICTING, **changes))  # type: ignore[arg-type]
    made.cluster.beside[NODE] = list(beside)
    return made


def leave(made: Station) -> None:
    """The evicted pod ends, and starts again on the replacement."""
    made.cluster.kafka = healthy_kafka(out=10)
    made.cluster.place_pod(10, NEW, ready=False)
    made.tick_until_quiet()


def come_back(made: Station) -> None:
    made.cluster.place_pod(10, NEW)
    made.cluster.kafka = healthy_kafka()
    for _ in range(6):
        made.tick()


def test_the_tick_cordons_evicts_and_completes_the_hooks_by_itself() -> None:
    made = replace_machine(station(AGENT))
    assert made.cluster.cordons == {NODE: OLD}
    assert made.cluster.evicted == [POD]
    assert made.termination_handler.sent == []
    leave(made)
    assert made.incident().state is State.GATING
    assert made.cluster.completed == []
    come_back(made)
    assert made.incident().state is State.RELEASED
    assert {hook for _, hook, result in made.cluster.completed if result == "CONTINUE"} == {
        *("drain", "gate")
    }
    assert made.ledger.leases() == ()


def test_nothing_is_evicted_before_a_replacement_is_there() -> None:
    made = announce(station(OPERATOR))
    assert (made.cluster.evicted, made.cluster.cordons) == ([], {})


def test_everything_else_leaves_before_kafka() -> None:
    made = replace_machine(station(OPERATOR, AGENT))
    assert made.cluster.evicted == ["operator"]
    assert "First to leave: strimzi/operator." in made.incident().reason
    made.tick()
    assert made.cluster.evicted == ["operator", POD]


def test_a_pod_that_its_budget_keeps_holds_kafka_up_for_a_while_and_is_never_forced() -> None:
    made = station(OPERATOR)
    made.cluster.refusals["operator"] = "Cannot evict pod: it would violate its budget."
    replace_machine(made)
    made.tick()
    assert made.cluster.evicted == []
    made.now += OTHERS_SECONDS
    made.tick()
    assert made.cluster.evicted == [POD]
    leave(made)
    come_back(made)
    # The broker is back, and the machine waits for the pod that may not leave yet.
    assert (made.incident().state, made.cluster.completed) == (State.GATING, [])
    assert "strimzi/operator" in made.incident().reason
    made.now += LATE_EVICTION_SECONDS
    made.tick()
    assert "drain_stuck" in {page["page"] for page in made.ticks.pages}
    del made.cluster.refusals["operator"]
    for _ in range(3):
        made.tick()
    assert made.cluster.evicted == [POD, "operator"]
    assert made.incident().state is State.RELEASED


def test_a_refused_eviction_of_kafkas_pod_is_asked_again_at_the_next_tick() -> None:
    made = station()
    made.cluster.refusals[POD] = "Cannot evict pod: it would violate its budget."
    made.cluster.disruption_budgets = (
        BudgetView(name="orders-kafka", pods=frozenset({POD}), disruptions_allowed=0),
    )
    replace_machine(made)
    assert made.incident().state is State.DRAINING
    assert "PodDisruptionBudget orders-kafka allows no disruption" in made.incident().reason
    del made.cluster.refusals[POD]
    made.tick()
    assert made.cluster.evicted == [POD]


def test_kafkas_consent_counts_at_the_moment_of_the_eviction() -> None:
    made = station(OPERATOR)
    replace_machine(made)
    made.cluster.kafka = healthy_kafka(out=20)
    made.tick()
    assert made.cluster.evicted == ["operator"]
    assert f"{POD} is still on {NODE}." in made.incident().reason
    made.cluster.kafka = healthy_kafka()
    made.tick()
    assert made.cluster.evicted == ["operator", POD]


def test_a_pause_keeps_kafkas_pod_where_it_is() -> None:
    made = replace_machine(station(OPERATOR))
    paused(made)
    made.tick()
    assert made.cluster.evicted == ["operator"]
    assert "Paused by ada" in made.incident().reason


def test_a_drain_that_cannot_end_is_kept_and_its_node_takes_pods_again() -> None:
    made = station()
    made.cluster.refusals[POD] = "Cannot evict pod: it would violate its budget."
    replace_machine(made)
    made.now += EVICTING.hold_limit_seconds - EVICTING.drain_life_seconds / 2
    del made.cluster.refusals[POD]
    made.tick()
    assert made.cluster.evicted == []  # what is evicted so late could outlive the decision to keep
    made.now += EVICTING.drain_life_seconds
    made.tick()
    assert made.incident().state is State.RETAINED
    assert {result for _, _, result in made.cluster.completed} == {"ABANDON"}
    assert made.cluster.cordons == {}


def test_a_pod_without_owner_is_named_and_left_to_end_with_its_machine() -> None:
    made = replace_machine(station(BARE))
    (page,) = [p for p in made.ticks.pages if p["page"] == "pods_without_owner"]
    assert "default/debug" in page["reason"]
    leave(made)
    come_back(made)
    assert made.cluster.evicted == [POD]
    assert made.incident().state is State.RELEASED


def test_two_pods_of_one_kafka_on_one_node_wait_for_a_person() -> None:
    made = station()
    made.cluster.place_pod(20, OLD)
    replace_machine(made)
    assert (made.incident().state, made.cluster.evicted) == (State.HOLDING, [])
    assert "shared_node" in {page["page"] for page in made.ticks.pages}


def test_a_two_minute_warning_evicts_everything_at_once() -> None:
    made = station(OPERATOR)
    made.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    for _ in range(2):
        made.tick()
    assert set(made.cluster.evicted) == {"operator", POD}


def test_a_node_without_kafka_is_emptied_and_both_hooks_completed() -> None:
    made = station(OPERATOR)
    made.cluster.pods[10] = replace(made.cluster.pods[10], node_name=node_named("i-0b"))
    made.cluster.attached.pop(NODE)
    announce(made)
    for _ in range(12):
        made.tick()
        if not made.ledger.open_incidents():
            break
    assert made.cluster.evicted == ["operator"]
    assert made.incident().state is State.RELEASED
    assert made.ledger.leases() == ()


def test_a_node_without_kafka_takes_no_new_pod_before_its_hooks_are_completed() -> None:
    made = station(AGENT)
    made.cluster.pods[10] = replace(made.cluster.pods[10], node_name=node_named("i-0b"))
    made.cluster.attached.pop(NODE)
    announce(made)
    while made.incident().state is not State.DRAINING or not made.cluster.cordons:
        assert made.cluster.completed == []
        made.tick()
    assert made.cluster.completed == []
    made.tick()
    assert {hook for _, hook, _ in made.cluster.completed} == {"drain", "gate"}


def test_the_gate_beside_it_lets_our_own_eviction_through_with_kafkas_consent() -> None:
    door = Door(replace_machine(station(OPERATOR)))
    assert door.ask(10, user="stillwater-tick").allowed
    assert not door.ask(20, user="stillwater-tick").allowed
    door.station.cluster.kafka = healthy_kafka(out=20)
    assert not door.ask(10, user="stillwater-tick").allowed


def test_a_tick_that_dies_after_the_eviction_does_no_harm_a_second_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = station()
    announce(made)
    made.cluster.add_instance(NEW, "us-east-1a")
    made.cluster.add_node(NEW)
    while made.incident().state is not State.DRAINING:
        made.tick()
    body, delay = made.ticks.sent[-1]
    put, calls = made.ledger.put, []

    def dying(incident: object) -> object:
        calls.append(incident)
        if len(calls) == 2:
            raise RuntimeError("the function died")
        return put(incident)  # type: ignore[arg-type]

    monkeypatch.setattr(made.ledger, "put", dying)
    with pytest.raises(RuntimeError):
        made.loop.turn(body, made.now + delay)
    monkeypatch.undo()
    assert made.cluster.evicted == [POD]
    made.now += 60
    made.loop.turn(body, made.now)
    assert made.cluster.evicted == [POD]
    assert made.incident().state is State.DRAINING


def changed(made: Station) -> None:
    """Another invocation takes the incident over."""
    made.ledger.put(made.ledger.get(OLD))  # type: ignore[arg-type]


def let_go(made: Station) -> None:
    """The lease is lost: its table was restored to an older moment, and another has it."""
    made.ledger.drop_lease(OLD, ended=True)
    made.ledger.take_lease("i-0b", made.now, 900, node_id=20)


@pytest.mark.parametrize(
    "meanwhile", [paused, changed, let_go], ids=["a pause", "another invocation", "no lease"]
)
def test_what_comes_between_decision_and_eviction_keeps_kafka(
    meanwhile: Callable[[Station], object],
) -> None:
    made = replace_machine(station(OPERATOR))
    assert made.cluster.evicted == ["operator"]
    real: Callable[..., Any] = made.ledger.take_lease

    def slow(*arguments: Any, **named: Any) -> Any:
        made.ledger.take_lease = real  # type: ignore[method-assign]
        granted = real(*arguments, **named)
        meanwhile(made)
        return granted

    made.ledger.take_lease = slow  # type: ignore[method-assign]
    made.tick()
    assert made.cluster.evicted == ["operator"]
