"""A zone's machines stay and boot together: one party, one consent, in any order of events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.record import State
from tests.unit.handlers.fakes import node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_budgets import station_of_six
from tests.unit.handlers.test_in_place import boots, launched, reported
from tests.unit.handlers.test_rotations import look, start, turn

pytestmark = pytest.mark.usefixtures("quiet")

PARTY = ("i-0a", "i-1a")


@pytest.fixture
def station(monkeypatch: pytest.MonkeyPatch) -> Station:
    found = station_of_six(monkeypatch)
    for instance_id in list(found.cluster.node_views):
        found.cluster.builds[instance_id] = launched()
        boots(found, instance_id, "boot-1")
    return found


def leave_together(station: Station) -> None:
    """Carry both of a zone to where their pods have left, and EC2 has not been asked."""
    start(station, in_place=True, at_once="zone")
    turn(station)
    for _ in range(12):
        for id_ in PARTY:
            look(station, id_)
    for id_, node_id in zip(PARTY, (10, 11), strict=True):
        assert station.incident(id_).state is State.DRAINING
        pod = station.cluster.pods[node_id]
        station.cluster.pods[node_id] = replace(pod, node_name=None, ready=False, may_leave=None)
        station.cluster.attached.pop(node_named(id_))
        reported(station, id_)
    station.cluster.kafka = healthy_kafka(out=(10, 11))


def asked_of_ec2(station: Station) -> set[str]:
    return {id_ for id_, _, trial in station.roots.asked if not trial}


def test_a_broker_of_another_zone_that_is_lost_brings_back_who_does_not_boot_yet(
    station: Station,
) -> None:
    leave_together(station)
    station.cluster.pods[30] = replace(station.cluster.pods[30], ready=False)
    station.cluster.kafka = healthy_kafka(out=(10, 11, 30))
    for id_ in PARTY:
        look(station, id_)
        assert station.cluster.node_views[id_].schedulable
        assert station.incident(id_).state is State.GATING
    assert asked_of_ec2(station) == set()


def test_a_companion_that_is_away_brings_nobody_back(station: Station) -> None:
    leave_together(station)
    for id_ in PARTY:
        look(station, id_)
    assert asked_of_ec2(station) == {station.incident(id_).id for id_ in PARTY}
    assert not any(station.cluster.node_views[id_].schedulable for id_ in PARTY)


def test_one_that_stays_and_one_that_goes_are_no_party(station: Station) -> None:
    station.cluster.builds["i-1a"] = launched(traits=None)
    said = {"in_place": True, "at_once": "zone", "selection": {"everything": True}}
    planned = station.conductor.take({"command": "plan", **said}, station.now)["plan"]
    batch_of = {node["node_id"]: node["batch"] for node in planned["nodes"]}
    assert batch_of[10] != batch_of[11]
    assert batch_of[20] == batch_of[21]
