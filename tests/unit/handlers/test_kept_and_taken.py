"""An instance that its group keeps, and AWS takes all the same; a date that Kafka lets pass."""

from __future__ import annotations

import pytest

from core.events import Kind
from core.incidents.record import State
from tests.every_case import every_case
from tests.unit.handlers.announced import ec2_event
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.health_events import health_event
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce

WARNING = "EC2 Spot Instance Interruption Warning"


@pytest.fixture
def station() -> Station:
    """A group keeps an instance, whose hook somebody abandoned before its broker could leave."""
    station = announce(Station())
    station.cluster.set_lifecycle(OLD, "Terminating:Retained")
    station.cluster.waiting_hooks.clear()
    station.tick_until_quiet()
    assert station.incident().state is State.RETAINED
    assert station.forwarded == []
    station.now += 600
    return station


def test_a_kept_instance_that_ec2_takes_within_two_minutes_is_drained(station: Station) -> None:
    station.announce(ec2_event(WARNING, OLD).replace("10:00:00Z", "10:10:00Z"))
    station.tick()
    second = station.incident(f"{OLD}.2")
    assert (second.kind, second.state) == (Kind.SPOT_INTERRUPTION, State.DRAINING)
    assert len(station.forwarded) == 1
    station.broom.sweep(station.now)
    station.tick()
    assert station.incident(f"{OLD}.2").open


def test_a_kept_instance_that_aws_retires_is_replaced_before_that(station: Station) -> None:
    station.announce(health_event(due=station.now + 3600, said_at=station.now))
    for _ in range(3):
        station.tick()
    station.broom.sweep(station.now)
    station.tick()
    second = station.incident(f"{OLD}.2")
    assert (second.kind, second.state) == (Kind.SCHEDULED_CHANGE, State.REPLACING)
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    for _ in range(4):
        station.tick()
    assert station.cluster.asked_to_terminate[-1][0] == OLD


@every_case("due_in, waits, called", [(600, 120, True), (3600, 1000, True), (3600, 60, False)])
def test_a_person_is_called_before_a_date_that_kafka_lets_pass(
    due_in: float, waits: float, called: bool
) -> None:
    station = Station()
    station.announce(health_event(due=station.now + due_in, said_at=station.now))
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster.kafka = healthy_kafka(out=20)
    station.tick_until_quiet()
    station.tick()
    station.now += waits
    station.tick()
    assert station.incident().state is State.HOLDING
    assert ("waits_long" in station.incident().pages) is called


def test_a_replacement_that_somebody_has_cordoned_is_called_so() -> None:
    station = announce(Station())
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster._change(f"ip-{NEW}.ec2.internal", schedulable=False)
    station.tick()
    assert station.incident().reason.endswith("is cordoned, and takes no pods.")


def test_one_machine_after_another_of_one_broker_is_no_lost_zone() -> None:
    station = announce(Station())
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    station.tick_until_quiet()
    assert station.incident().lost_at is not None
    del station.cluster.node_views[OLD]
    station.cluster.place_pod(10, NEW, ready=False)
    station.cluster.set_state(NEW, "terminated")
    station.cluster.set_groups_without(NEW)
    state = "EC2 Instance State-change Notification"
    station.announce(ec2_event(state, NEW, state="terminated"))
    station.tick_until_quiet()
    assert station.incident(NEW).node_id == 10
    assert station.freezes.current(station.now) == ()
