"""A machine that is sick and not dead: replaced through the loop, or told; never two at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.events import Kind
from core.ground.constants import PAGES_SENT
from core.incidents.observation import NodeClaim, StatusView
from core.incidents.record import State
from core.zones.incident import LostZone
from handlers.adapters import metrics
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import NEW, OLD, group_of
from tests.unit.handlers.station import START, Station

ZONE = "us-east-1a"
HOUR = 3600.0


def fall_sick(station: Station, instance_id: str = OLD, since: float = START - HOUR) -> None:
    ill = replace(station.cluster.node_views[instance_id], sick={"StorageReady": since})
    station.cluster.node_views[instance_id] = ill


@pytest.fixture
def station() -> Station:
    station = Station()
    station.cluster.checks = {id_: StatusView(instance_id=id_) for id_ in (OLD, "i-0b", "i-0c")}
    fall_sick(station)
    return station


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    counted: list[str] = []
    monkeypatch.setattr(metrics, "count", counted.append)
    return counted


def until(station: Station, state: State) -> None:
    for _ in range(40):
        if station.incident().state is state:
            return
        station.tick()
    raise AssertionError(f"never {state}: {station.incident().reason}")


def opened(station: Station) -> int:
    return station.broom.sweep(station.now)["opened"]


def test_a_sick_machine_is_replaced_before_it_dies(station: Station) -> None:
    cluster = station.cluster
    assert opened(station) == 1
    assert station.incident().kind is Kind.SICK_NODE
    until(station, State.REPLACING)
    station.tick()
    station.tick()
    assert cluster.desired_calls == [(group_of(ZONE), 2)]
    assert cluster.terminated == []
    cluster.add_instance(NEW, ZONE)
    cluster.add_node(NEW)
    for _ in range(4):
        station.tick()
    assert cluster.terminated == [(OLD, True)]
    station.announce(hook_event("drain"))
    station.announce(hook_event("gate"))
    until(station, State.DRAINING)
    cluster.place_pod(10, NEW)
    until(station, State.RELEASED)
    assert opened(station) == 0


def test_the_next_sick_machine_waits_until_the_first_has_left(station: Station) -> None:
    for id_ in ("i-0e", "i-0f", "i-0g"):  # so many that two are no more than a share
        station.cluster.add_instance(id_, "us-east-1c")
        station.cluster.add_node(id_)
    assert opened(station) == 1
    fall_sick(station, "i-0b")
    station.now += 60
    assert opened(station) == 0
    # Its termination governs it by now, and it still is what leaves.
    station.ledger.put(replace(station.incident(), kind=Kind.ASG_TERMINATE))
    assert opened(station) == 0
    station.ledger.put(replace(station.incident(), state=State.RELEASED))
    station.cluster.node_views.pop(OLD)
    assert opened(station) == 1
    assert station.incident("i-0b").kind is Kind.SICK_NODE


def test_one_that_gets_well_is_not_replaced_after_all(station: Station) -> None:
    opened(station)
    until(station, State.REPLACING)
    station.cluster.node_views[OLD] = replace(station.cluster.node_views[OLD], sick={})
    station.now += 60
    assert opened(station) == 1  # the word that calls it off
    until(station, State.CANCELLED)
    assert "well again" in station.incident().reason
    assert station.cluster.terminated == []
    fall_sick(station, since=station.now)
    station.now += HOUR
    assert opened(station) == 1
    assert station.incident(f"{OLD}.2").open


def test_a_sick_spare_takes_nobodys_pod(station: Station) -> None:
    opened(station)
    until(station, State.REPLACING)
    station.cluster.add_instance(NEW, ZONE)
    station.cluster.add_node(NEW)
    fall_sick(station, NEW)
    for _ in range(3):
        station.tick()
    assert station.incident().state is State.REPLACING
    assert "StorageReady" in station.incident().reason


def test_a_frozen_zone_keeps_its_sick_machines(station: Station) -> None:
    station.freezes.note(
        LostZone("use1-az4", ZONE, source="autoshift", occurred_at=station.now), station.now
    )
    assert opened(station) == 0


def test_several_sick_machines_are_told_once_and_stay(station: Station, pages: list[str]) -> None:
    fall_sick(station, "i-0b")
    for _ in range(3):
        station.now += 60
        assert opened(station) == 0
    assert pages == [PAGES_SENT]


@pytest.mark.parametrize("lifecycle", ["Standby", "EnteringStandby", "ReplacingRootVolume", None])
def test_a_machine_that_its_group_set_aside_is_told_once_a_day(
    station: Station, pages: list[str], lifecycle: str | None
) -> None:
    station.cluster.node_views[OLD] = replace(station.cluster.node_views[OLD], sick={})
    if lifecycle is None:
        station.cluster.set_groups_without(OLD)
    else:
        station.cluster.set_lifecycle(OLD, lifecycle)
    for _ in range(3):
        station.now += 60
        assert opened(station) == 0
    assert pages == [PAGES_SENT]
    station.now += 86_400
    station.broom.sweep(station.now)
    assert pages == 2 * [PAGES_SENT]


def set_aside_pages(station: Station) -> list[str]:
    """Return whom one sweep of machines that are well calls for those that no group looks after."""
    station.cluster.node_views[OLD] = replace(station.cluster.node_views[OLD], sick={})
    station.broom.sweep(station.now)
    return [p["reason"] for p in station.ticks.pages if p["page"] == "set_aside"]


def launched_by_karpenter(station: Station, *instance_ids: str) -> None:
    station.cluster.node_claims = tuple(
        NodeClaim(name=f"kafka-{id_}", uid=id_, instance_id=id_, pool="broker")
        for id_ in instance_ids
    )
    for id_ in instance_ids:
        station.cluster.set_groups_without(id_)


def test_machines_whose_groups_are_all_gone_are_told_in_one_call(station: Station) -> None:
    station.cluster.groups.clear()
    (told,) = set_aside_pages(station)
    assert "Kafka runs on machines (i-0a, i-0b, i-0c) for which the cluster has no Auto" in told
    station.now += 3600
    assert set_aside_pages(station) == [told]


def test_a_cluster_of_karpenters_machines_has_no_groups_and_lacks_none(station: Station) -> None:
    launched_by_karpenter(station, OLD, "i-0b", "i-0c")
    station.cluster.groups.clear()
    assert set_aside_pages(station) == []


def test_karpenters_machines_beside_a_groups_belong_to_nobody_elses_group(station: Station) -> None:
    launched_by_karpenter(station, OLD)
    station.cluster.set_groups_without("i-0b")
    (told,) = set_aside_pages(station)
    assert "Instance i-0b" in told


def test_a_detached_machine_that_lost_its_tags_is_known_by_the_broker_on_it(
    station: Station,
) -> None:
    for id_ in (OLD, "i-0b"):
        untagged = replace(station.cluster.instances[id_], tags={})
        station.cluster.instances[id_] = untagged
        station.cluster.set_groups_without(id_)
    station.cluster.place_pod(20, None)
    (told,) = set_aside_pages(station)
    assert f"Instance {OLD}" in told


def test_who_belongs_nowhere_is_not_known_while_karpenters_machines_cannot_be_read(
    station: Station,
) -> None:
    station.cluster.set_groups_without(OLD)
    station.cluster.set_lifecycle("i-0b", "Standby")
    station.cluster.node_claims = None
    (told,) = set_aside_pages(station)
    assert "Instance i-0b" in told


def test_a_sick_machine_that_was_retained_is_not_opened_every_minute(station: Station) -> None:
    opened(station)
    station.ledger.put(replace(station.incident(), state=State.RETAINED))
    assert opened(station) == 0
