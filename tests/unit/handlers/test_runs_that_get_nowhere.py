"""A run that gets nowhere calls a person once and begins with nobody; one that gets on does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.ground.errors import StillwaterError
from core.incidents.record import State
from core.rotation.run_record import Phase, RunState
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fakes import OLD, six_brokers
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_parallel_rotation import outsider_lost
from tests.unit.handlers.test_rotations import ask, current, start, turn
from tests.unit.handlers.walks import come_back


@pytest.fixture
def station() -> Station:
    return Station()


def called(station: Station) -> list[str]:
    return [page["page"] for page in station.ticks.pages if "run" in page]


def turns(station: Station, seconds: float) -> None:
    until = station.now + seconds
    while station.now < until:
        station.now += 280
        turn(station)


def test_an_election_that_is_refused_stops_the_run_at_its_deadline_and_calls_once(
    station: Station,
) -> None:
    fail(station.cluster, "elect", StillwaterError("The functions' user may not do that."))
    start(station)
    turn(station)
    come_back(station, OLD)
    view = station.cluster.read()
    led = tuple(replace(p, leader=20) for p in view.partitions)
    station.cluster.kafka = replace(view, partitions=led)
    turns(station, current(station).options.deadline_seconds + 1200)
    assert current(station).state is RunState.STOPPED
    assert called(station) == ["action_fails", "deadline:10"]


def test_a_node_that_could_not_be_begun_with_until_its_deadline_is_not_begun_with_after_it(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(station)
    with monkeypatch.context() as patch:
        patch.setattr(type(station.reception), "rotate", lambda *_: None)
        turns(station, current(station).options.deadline_seconds - 600)
        assert current(station).turn_of(10).phase is Phase.LEAVING
    station.now += 1200
    turn(station)
    assert current(station).state is RunState.STOPPED
    assert station.ledger.open_incidents() == ()
    assert called(station) == ["deadline:10"]


def test_a_run_that_sees_nothing_for_a_quarter_of_an_hour_calls_once_each_time(
    station: Station,
) -> None:
    start(station, deadline_seconds=86_400)
    for number in (1, 2):
        station.cluster.kubernetes_answers = False
        turns(station, 600)
        assert len(called(station)) == number - 1
        turns(station, 3600)
        assert called(station) == ["blind"] * number
        station.cluster.kubernetes_answers = True
        turn(station)
    assert current(station).state is RunState.RUNNING
    assert "problems" not in ask(station, "abort")


def test_a_party_that_is_back_has_nobody_beside_it_who_leaves_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """AWS takes a broker of another zone as soon as the party has given the lease back."""
    for node_id, zone in ((11, "us-east-1a"), (21, "us-east-1b"), (31, "us-east-1c")):
        monkeypatch.setitem(ZONES, node_id, zone)
    station = Station(cluster=six_brokers())
    start(station, at_once="zone")
    turn(station)
    for id_ in ("i-0a", "i-1a"):
        come_back(station, id_)
    assert {station.incident(id_).state for id_ in ("i-0a", "i-1a")} == {State.RELEASED}
    outsider_lost(station)
    for _ in range(6):
        run = turn(station)
    assert run.state is RunState.RUNNING, run.reason
    assert {t.phase for t in run.turns if t.zone == "us-east-1a"} == {Phase.DONE}
    assert [page["page"] for page in station.ticks.pages] == []
