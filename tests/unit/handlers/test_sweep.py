"""The sweep, and instances that are kept or taken all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.events import Kind
from core.incidents.record import State
from handlers import sweep
from tests.every_case import every_case
from tests.unit.handlers.announced import health_event
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce


def swept(station: Station, later: float = 0.0) -> dict[str, int]:
    """Return what one run of the sweep did."""
    done = station.broom.sweep(station.now + later)
    return {key: done[key] for key in ("revived", "opened")}


def test_an_incident_without_a_tick_gets_one(station: Station) -> None:
    announce(station)
    sent = len(station.ticks.sent)
    assert swept(station, 40) == {"revived": 0, "opened": 0}
    assert swept(station, 60) == {"revived": 1, "opened": 0}
    assert len(station.ticks.sent) == sent + 1
    station.tick()
    assert len(station.ticks.sent) == sent + 2


def test_hooks_that_nobody_announced_are_beaten_at_once(station: Station) -> None:
    """Since when they run nobody has said: the ledger may have been away for an hour."""
    station.cluster.terminate(OLD)
    station.broom.sweep(station.now)
    station.tick()
    assert {hook for _, hook, _ in station.cluster.beats} == {"drain", "gate"}
    station.tick()
    assert len(station.cluster.beats) == 2


@pytest.mark.parametrize(("state", "opened"), [(State.RELEASED, 0), (State.CANCELLED, 1)])
def test_only_who_stays_gets_another_incident(station: Station, state: State, opened: int) -> None:
    announce(station)
    station.ledger.put(replace(station.incident(), state=state))
    assert station.broom.sweep(station.now)["opened"] == opened


def test_the_function_says_what_it_swept(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_broom", lambda: station.broom)
    assert sweep.handler({}, None) == {
        "revived": 0,
        "opened": 0,
        "looked_at": 3,
        "filed": 0,
        "freed": 0,
    }


def test_a_node_whose_instance_ec2_has_forgotten_gets_an_incident(station: Station) -> None:
    del station.cluster.instances[OLD]
    station.cluster.set_groups_without(OLD)
    assert station.broom.sweep(station.now)["opened"] == 1
    assert station.incident().kind is Kind.STATE_CHANGE


def test_a_lease_that_was_taken_for_an_incident_which_is_over_is_freed(station: Station) -> None:
    announce(station)
    station.ledger.put(replace(station.incident(), state=State.RELEASED))
    # What a slow invocation does that dies before it learns that its incident has ended.
    station.ledger.take_lease(OLD, station.now, 900)
    assert station.broom.sweep(station.now)["freed"] == 1
    assert station.ledger.take_lease("i-0b", station.now, 900).granted


@pytest.mark.parametrize("most", [1, 2, 5, 7])
def test_every_lost_instance_is_found_in_as_many_runs(station: Station, most: int) -> None:
    lost = [f"i-0lost{number}" for number in range(10)]
    for instance_id in lost:
        station.cluster.add_instance(instance_id, "us-east-1b")
        station.cluster.terminate(instance_id)
    broom = replace(station.broom, most_instances=most)
    for _ in range(-(-len(station.cluster.instances) // most)):
        assert broom.sweep(station.now)["looked_at"] <= most
    assert {i.instance_id for i in station.ledger.open_incidents()} == set(lost)
    before = dict(station.ledger._incidents)
    for _ in range(20):
        broom.sweep(station.now)
    assert station.ledger._incidents == before


@pytest.mark.parametrize("drained", [True, False])
def test_a_restored_ledger_is_told_of_what_it_forgot(station: Station, drained: bool) -> None:
    """Incident i-0a waited for a node of its own, or was drained, when the table was exchanged."""
    station.cluster.terminate(OLD)
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster.mark_spare(node_named(NEW), OLD)
    old = station.cluster.node_views[OLD]
    station.cluster.node_views[OLD] = replace(old, schedulable=not drained)
    for _ in range(3):
        station.broom.sweep(station.now)
    assert [sent["page"] for sent in station.ticks.pages] == ["forgotten"]
    assert station.incident().open
    assert [lease.out_at is not None for lease in station.ledger.leases()] == [True] * drained


def test_a_broker_out_without_an_incident_calls_once_a_day(station: Station) -> None:
    station.cluster.place_pod(20, None, ready=False)
    out = station.cluster.pods[20]
    station.cluster.pods[20] = replace(out, out_since=station.now, trouble="Unschedulable")
    swept(station, 1799)
    assert station.ticks.pages == []
    for later in (1800, 1860, 5000):
        swept(station, later)
    assert [sent["page"] for sent in station.ticks.pages] == ["left_out"]
    swept(station, 90_000)
    assert [sent["page"] for sent in station.ticks.pages] == 2 * ["left_out"]


WARNING = "EC2 Spot Instance Interruption Warning"


@pytest.fixture
def kept() -> Station:
    """A group keeps an instance, whose hook somebody abandoned before its broker could leave."""
    station = announce(Station())
    station.cluster.set_lifecycle(OLD, "Terminating:Retained")
    station.cluster.waiting_hooks.clear()
    station.tick_until_quiet()
    assert station.incident().state is State.RETAINED
    assert station.forwarded == []
    station.now += 600
    return station


@every_case("due_in, waits, called", [(600, 120, True), (3600, 1000, True), (3600, 60, False)])
def test_a_date_that_kafka_lets_pass_is_paged(due_in: float, waits: float, called: bool) -> None:
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
