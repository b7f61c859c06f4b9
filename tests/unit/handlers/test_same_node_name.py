"""A Node is called by its machine's address, which the next may get: names are no machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.incidents.record import State
from tests.unit.handlers.announced import ec2_event
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.lost_machines import end_instance
from tests.unit.handlers.station import Station

STATE_CHANGE = "EC2 Instance State-change Notification"
WARNING = "EC2 Spot Instance Interruption Warning"


@pytest.fixture
def station() -> Station:
    return Station()


def lost(station: Station) -> None:
    end_instance(station.cluster, OLD, "terminated")
    station.announce(ec2_event(STATE_CHANGE, OLD, state="terminated"))
    station.tick()
    _ends(station)


def taken(station: Station) -> None:
    station.announce(ec2_event(WARNING, OLD))
    station.tick()
    assert station.incident().state is State.DRAINING
    _ends(station)
    station.tick()


def taken_before_anybody_looked(station: Station) -> None:
    station.announce(ec2_event(WARNING, OLD))
    station.tick()
    _ends(station)


def _ends(station: Station) -> None:
    end_instance(station.cluster, OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    del station.cluster.node_views[OLD]
    station.cluster.kafka = healthy_kafka(out=10)
    pod = station.cluster.pods[10]
    station.cluster.pods[10] = replace(pod, node_name=None, ready=False)


def replaced(station: Station) -> None:
    """The group's next machine gets the address, the broker and its volume."""
    cluster = station.cluster
    cluster.attached.pop(node_named(OLD), None)
    cluster.add_instance(NEW, "us-east-1a")
    address = node_named(OLD)
    cluster.instances[NEW] = replace(cluster.instances[NEW], private_dns_name=address)
    cluster.add_node(NEW)
    cluster.place_pod(10, NEW)
    cluster.attached[address] = ("pvc-10",)
    cluster.kafka = healthy_kafka()


@pytest.mark.parametrize("leave", [lost, taken, taken_before_anybody_looked])
def test_a_broker_on_the_next_machine_of_its_nodes_name_is_back(
    station: Station, leave: Callable[[Station], None]
) -> None:
    leave(station)
    replaced(station)
    for _ in range(8):
        if station.ledger.open_incidents():
            station.tick()
    incident = station.incident()
    assert incident.state in {State.LOST, State.RELEASED}, incident.reason
    assert "is back on" in incident.reason
    assert "not_back" not in incident.pages


def test_a_late_word_about_a_dead_machine_is_not_about_the_next_one_of_its_name(
    station: Station,
) -> None:
    _ends(station)
    replaced(station)
    station.announce(ec2_event(STATE_CHANGE, OLD, state="terminated"))
    for _ in range(8):
        if station.ledger.open_incidents():
            station.tick()
            station.now += 10
    incident = station.incident()
    assert (incident.state, incident.node_id, incident.pages) == (State.LOST, None, ())
