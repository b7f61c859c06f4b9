"""Never two brokers out, over several turns: whatever is lost, late, blind or dead in between.

A drain that was forwarded may still be carried out, so its incident keeps everybody else where they
are until it has ended safely, whatever the lease's clock says.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.events import Kind
from core.ground.errors import Conflict
from core.incidents.actions import ForwardDrain, TakeLease
from core.incidents.joining import ask_release, ignore
from core.incidents.record import State
from handlers.incidents.act import perform
from tests.unit.handlers.announced import ec2_event, health_event, hook_event
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.walks import drain_node, replace_machine

SECOND, SPARE = "i-0b", "i-0e"
LEASE_SECONDS = 900


def second_waits(station: Station) -> Station:
    """Another zone's broker stands in its hooks, with its replacement Ready."""
    station.cluster.terminate(SECOND)
    station.cluster.join(SPARE, "us-east-1b")
    station.announce(hook_event("drain", instance_id=SECOND, zone="us-east-1b"))
    turns(station, SECOND)
    return station


def turns(station: Station, instance_id: str, most: int = 6, seconds: float = 5.0) -> None:
    """Let the loop look at one incident several times, whatever became of its messages."""
    for _ in range(most):
        incident = station.incident(instance_id)
        if not incident.open:
            return
        station.now += seconds
        station.reception.wake(incident)
        station.loop.turn(station.ticks.sent[-1][0], station.now)


def sent_at(station: Station) -> float:
    return station.incident().forwarded.last_at


def forwarded_to(station: Station) -> list[str]:
    said = [body.get("detail", body) for body in station.forwarded]
    return [str(detail["EC2InstanceId"]) for detail in said]


def test_a_forwarded_drain_keeps_others_though_its_lease_lapsed_blind(station: Station) -> None:
    second_waits(replace_machine(station))
    station.cluster.kubernetes_answers = False
    for instance_id in (OLD, SECOND):
        turns(station, instance_id)
    station.now += LEASE_SECONDS + 1
    turns(station, SECOND)
    station.cluster.kubernetes_answers = True
    turns(station, SECOND)
    assert forwarded_to(station) == [OLD]
    assert OLD in station.incident(SECOND).reason


@pytest.mark.parametrize("until", [replace_machine, drain_node])
def test_a_drain_under_way_keeps_others_waiting_though_somebody_deleted_the_lease(
    station: Station, until: Callable[[Station], Station]
) -> None:
    """The pod has not stopped yet, or is back and not for long: Kafka alone would let the next."""
    second_waits(until(station))
    station.cluster.kafka = healthy_kafka()
    station.ledger.forget_leases()
    turns(station, SECOND)
    assert forwarded_to(station) == [OLD]
    assert OLD in station.incident(SECOND).reason
    turns(station, OLD, most=1)
    assert [lease.holder for lease in station.ledger.leases()] == [OLD]


def test_a_retained_nodes_message_counts_though_its_lease_was_deleted(station: Station) -> None:
    replace_machine(station)
    station.ledger.forget_leases()
    turns(station, OLD, most=1)
    station.now += POLICY.hold_limit_seconds + 1
    turns(station, OLD, most=1)
    assert station.incident().state is State.RETAINED
    station.now = sent_at(station) + POLICY.drain_life_seconds - 200
    second_waits(station)
    turns(station, SECOND)
    assert forwarded_to(station) == [OLD]


def test_a_lease_that_lapsed_unused_goes_to_whoever_asks(station: Station) -> None:
    second_waits(station)
    station.ledger.take_lease(OLD, station.now, 10)
    station.now += 10
    turns(station, SECOND)
    assert forwarded_to(station) == [SECOND]


def test_a_retained_nodes_drain_keeps_others_until_its_message_lapses(station: Station) -> None:
    replace_machine(station)
    station.now += POLICY.hold_limit_seconds + 1
    assert station.tick().incident().state is State.RETAINED
    station.now = sent_at(station) + POLICY.drain_life_seconds - 200
    second_waits(station)
    turns(station, SECOND)
    assert forwarded_to(station) == [OLD]
    assert "the termination handler may still be given its drain" in station.incident(SECOND).reason
    station.now += 300
    turns(station, SECOND)
    assert forwarded_to(station) == [OLD, SECOND]


def test_a_broker_that_never_came_back_keeps_others_waiting(station: Station) -> None:
    drain_node(station)
    station.now += POLICY.post_condition_wait_seconds + 1
    assert station.tick().incident().state is State.RETAINED
    station.now += POLICY.drain_life_seconds + LEASE_SECONDS
    station.cluster.kafka = replace(healthy_kafka(out=10), fenced=frozenset())
    second_waits(station)
    turns(station, SECOND)
    assert forwarded_to(station) == [OLD]
    station.cluster.place_pod(10, NEW)
    station.cluster.kafka = healthy_kafka()
    turns(station, SECOND)
    assert forwarded_to(station) == [OLD, SECOND]


def test_who_ended_with_its_drain_under_way_keeps_others_waiting(station: Station) -> None:
    """The incident is lost, and its broker is registered but catches up."""
    drain_node(station)
    station.cluster.set_state(OLD, "terminated")
    station.now += POLICY.post_condition_wait_seconds + 1
    assert station.tick().incident().state is State.LOST
    station.cluster.kafka = replace(healthy_kafka(out=10), fenced=frozenset())
    second_waits(station)
    turns(station, SECOND)
    assert forwarded_to(station) == [OLD]


def test_a_two_minute_warning_goes_at_once_and_keeps_everybody_else(station: Station) -> None:
    second_waits(station)
    warning = ec2_event("EC2 Spot Instance Interruption Warning", OLD)
    station.announce(warning)
    turns(station, OLD, most=1)
    assert station.incident().kind is Kind.SPOT_INTERRUPTION
    assert len(station.forwarded) == 2
    third = "i-0c"
    station.cluster.terminate(third)
    station.cluster.join("i-0f", "us-east-1c")
    station.announce(hook_event("drain", instance_id=third, zone="us-east-1c"))
    station.now += LEASE_SECONDS + 1
    turns(station, third)
    assert len(station.forwarded) == 2


def test_a_warning_keeps_back_whoever_holds_the_lease_and_has_not_gone(station: Station) -> None:
    second_waits(station)
    station.ledger.drop_lease(SECOND, ended=True)
    waiting = replace(station.incident(SECOND), state=State.HOLDING, forwarded=None)
    station.ledger.put(waiting)
    station.ledger.take_lease(SECOND, station.now, LEASE_SECONDS, node_id=20)
    before = len(station.forwarded)
    station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    turns(station, OLD, most=1)
    turns(station, SECOND)
    assert len(station.forwarded) == before + 1


def test_a_function_that_wakes_after_its_lease_forwards_nothing(station: Station) -> None:
    """It took the lease, slept, and another went and came back meanwhile."""
    second_waits(station)
    station.ledger.drop_lease(SECOND, ended=True)
    asleep = station.incident(SECOND)
    perform(asleep, (TakeLease(),), station.loop.effects, station.now)
    before = len(station.forwarded)
    station.now += LEASE_SECONDS + 1
    with pytest.raises(Conflict, match="no longer holds the lease"):
        perform(asleep, (ForwardDrain(),), station.loop.effects, station.now)
    station.ledger.take_lease(OLD, station.now, LEASE_SECONDS, node_id=10)
    with pytest.raises(Conflict):
        perform(asleep, (ForwardDrain(),), station.loop.effects, station.now)
    assert len(station.forwarded) == before


def test_a_function_that_sleeps_between_lease_and_drain_forwards_nothing(station: Station) -> None:
    replace_machine(station)
    station.ledger.drop_lease(OLD, ended=True)
    incident, began = station.incident(), station.now
    before = len(station.forwarded)
    take = station.ledger.take_lease

    def slept(*args: object, **kwargs: object) -> object:
        answer = take(*args, **kwargs)
        station.now += LEASE_SECONDS + 1
        return answer

    station.ledger.take_lease = slept
    with pytest.raises(Conflict):
        perform(incident, (TakeLease(), ForwardDrain()), station.loop.effects, began)
    assert len(station.forwarded) == before


def test_a_drain_sent_by_a_function_that_died_before_recording_it_is_followed(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    second_waits(station)
    station.ledger.drop_lease(SECOND, ended=True)
    station.termination_handler.sent.clear()
    waiting = replace(station.incident(SECOND), state=State.HOLDING, forwarded=None)
    waiting = station.ledger.put(waiting)
    actions = (TakeLease(), ForwardDrain())
    perform(waiting, actions, station.loop.effects, station.now)  # and dies here
    # Kafka would refuse it now; the drain may be carried out all the same.
    station.cluster.kafka = healthy_kafka(out=30)
    station.now += LEASE_SECONDS + 1
    turns(station, SECOND)
    assert station.incident(SECOND).state is State.DRAINING
    assert station.incident(SECOND).forwarded is not None
    assert len(station.forwarded) == 1


def test_a_drain_is_not_sent_again_without_consent(station: Station) -> None:
    replace_machine(station)
    station.cluster.kafka = healthy_kafka(out=30)
    station.now += POLICY.forward_again_seconds + 1
    station.tick()
    assert len(station.forwarded) == 1
    assert "broker 30 is fenced" in station.incident().reason
    station.cluster.kafka = healthy_kafka()
    station.tick()
    assert len(station.forwarded) == 2


def test_one_that_aws_takes_within_minutes_is_drained_again_whatever_kafka_says(
    station: Station,
) -> None:
    replace_machine(station)
    station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    station.cluster.kafka = healthy_kafka(out=30)
    station.now += POLICY.forward_again_seconds + 1
    station.tick()
    assert len(station.forwarded) == 2


def test_who_is_let_go_waits_for_a_drain_before_it_and_ends_it(station: Station) -> None:
    """The incident before it is over, and was not alive to give its lease back."""
    replace_machine(station)
    station.now += POLICY.hold_limit_seconds + 1
    station.tick()
    station.now = sent_at(station) + POLICY.drain_life_seconds - 200
    second_waits(station)
    station.ledger.put(ignore(station.incident(SECOND), "ada", "known", station.now))
    turns(station, SECOND)
    assert station.incident(SECOND).state is State.RETAINED
    station.ledger.put(ask_release(station.incident(SECOND), "ada", station.now))
    turns(station, f"{SECOND}.2")
    assert station.cluster.terminated == []
    assert "may still be given its drain" in station.incident(f"{SECOND}.2").reason
    station.now += 300
    turns(station, f"{SECOND}.2")
    assert station.cluster.terminated == [(SECOND, False)]


@pytest.fixture
def ended() -> Station:
    made = Station()
    made.cluster.terminate(OLD)
    return made


@pytest.mark.parametrize("deleted", [False, True], ids=["no node", "no pod"])
def test_a_pod_that_its_operator_restarts_is_not_drained_unasked(
    ended: Station, *, deleted: bool
) -> None:
    """For a moment it has no node, or is not there at all; its node would be drained at once."""
    ended.cluster.kafka = healthy_kafka(out=30)
    ended.cluster.place_pod(10, None, ready=False)
    if deleted:
        del ended.cluster.pods[10]
    ended.cluster.attached.clear()
    ended.announce(hook_event("drain"))
    ended.tick(3)
    assert ended.forwarded == []
    ended.cluster.place_pod(10, OLD)
    ended.tick(3)
    assert ended.incident().node_id == 10
    assert ended.incident().state is State.REPLACING


def test_a_node_that_has_a_volume_of_kafkas_is_kept_and_told(ended: Station) -> None:
    del ended.cluster.pods[10]
    ended.announce(hook_event("drain"))
    ended.tick(80)
    assert ended.forwarded == []
    assert ended.incident().pages == ("volume_on_idle_node",)
    ended.now += POLICY.hold_limit_seconds
    ended.tick()
    assert ended.incident().state is State.RETAINED


def test_a_pod_without_a_node_is_waited_for_a_stated_time(ended: Station) -> None:
    ended.cluster.join(NEW)
    ended.cluster.terminate(NEW)
    ended.cluster.place_pod(20, None, ready=False)
    ended.announce(hook_event("drain", instance_id=NEW))
    ended.tick(10)
    assert ended.forwarded == []
    ended.now += 301
    ended.tick(2)
    assert len(ended.forwarded) == 1


def test_a_reading_that_failed_proves_nothing_about_what_came_before(ended: Station) -> None:
    ended.cluster.pods.pop(10)
    ended.cluster.attached.clear()
    ended.announce(hook_event("drain"))
    ended.tick(2)
    ended.cluster.kubernetes_answers = False
    ended.now += 60
    ended.tick()
    ended.cluster.kubernetes_answers = True
    ended.tick()
    assert ended.forwarded == []


def test_the_gate_stays_closed_for_a_kafka_pod_that_came_to_an_idle_node(ended: Station) -> None:
    ended.cluster.pods.pop(10)
    ended.cluster.attached.clear()
    ended.announce(hook_event("drain"))
    while not ended.forwarded:
        ended.tick()
    ended.cluster.place_pod(10, OLD)
    ended.tick()
    assert (OLD, "gate", "CONTINUE") not in ended.cluster.completed
    assert ended.incident().node_id == 10


def test_a_planned_departure_does_not_end_a_node_on_one_reading() -> None:
    station = Station()
    pod = station.cluster.pods.pop(10)
    station.announce(health_event())
    station.tick(2)
    assert station.cluster.asked_to_terminate == []
    station.cluster.pods[10] = replace(pod, node_name=node_named(OLD))
    station.tick(2)
    assert station.incident().state is State.REPLACING


def test_back_is_not_believed_across_a_silence_of_kafka(ended: Station) -> None:
    ended.announce(hook_event("drain"))
    ended.cluster.join(NEW)
    while not ended.forwarded:
        ended.tick()
    ended.cluster.place_pod(10, NEW)
    while ended.incident().broker_back_at is None:
        ended.tick()
    whole = ended.cluster.kafka
    ended.cluster.kafka = None
    ended.now += 10 * POLICY.post_condition_hold_seconds
    ended.tick()
    ended.cluster.kafka = whole
    assert ended.tick().incident().state is State.GATING
    assert ended.incident().completed_at is None


@pytest.mark.parametrize("state", [State.DRAINING, State.GATING])
def test_a_word_after_the_sweep_found_the_node_blocks_nobody(ended: Station, state: State) -> None:
    """The sweep knows no announcement to forward; the one that comes later is sent to nobody."""
    ended.cluster.pods.pop(10)
    ended.cluster.attached.clear()
    ended.sweep(120)
    while ended.incident().state is not state:
        ended.cluster.waiting_hooks |= {(OLD, "drain"), (OLD, "gate")}
        ended.tick()
    ended.announce(hook_event("drain"))
    ended.announce(hook_event("gate"))
    ended.cluster.waiting_hooks |= {(OLD, "drain"), (OLD, "gate")}
    ended.cluster.set_lifecycle(OLD, "Terminating:Wait")
    ended.tick(8)
    assert ended.forwarded == []
    assert (OLD, "drain", "CONTINUE") in ended.cluster.completed
    assert ended.incident().state is State.RELEASED


@pytest.mark.parametrize("pod", ["runs on", "has no node", "is made anew"])
def test_a_deleted_node_is_not_one_that_never_joined(ended: Station, pod: str) -> None:
    """Somebody deleted the Node before anything was learned of it; EC2 knows what it was called."""
    del ended.cluster.node_views[OLD]
    if pod == "has no node":
        ended.cluster.place_pod(10, None, ready=False)
    if pod == "is made anew":
        del ended.cluster.pods[10]  # Its volume is attached there still.
    ended.announce(hook_event("drain"))
    ended.tick(10)
    assert ended.forwarded == []
    assert (OLD, "gate", "CONTINUE") not in ended.cluster.completed
    if pod == "runs on":
        assert ended.incident().node_id == 10
        assert ended.incident().state is State.REPLACING
