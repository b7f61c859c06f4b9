"""A rotation run on the station: one node after another, whoever dies on the way."""

from __future__ import annotations

import pytest

from core.incident_record import State
from core.rotation.run_record import Phase, Run, RunState
from tests.unit.handlers.station import Station
from tests.unit.handlers.world import World

EVERYTHING = {"selection": {"everything": True}}


@pytest.fixture
def station() -> Station:
    return Station()


def start(station: Station, **said: object) -> Run:
    answer = station.conductor.take(
        {"command": "start", "actor": "ada", **EVERYTHING, **said}, station.now
    )
    assert "problems" not in answer, answer
    return current(station)


def current(station: Station) -> Run:
    run = station.runs.current()
    assert run is not None
    return run


def ask(station: Station, command: str, **said: object) -> dict[str, object]:
    return station.conductor.take({"command": command, "actor": "ada", **said}, station.now)


def carry(station: Station, world: World, most: int = 60) -> Run:
    """Let the world turn, and the run with it, until the run stands still."""
    for _ in range(most):
        if current(station).state is not RunState.RUNNING:
            return current(station)
        turn(station)
        if station.ledger.open_incidents():
            world.settle(60)
    raise AssertionError(current(station).reason)


def turn(station: Station) -> Run:
    station.now += 20
    station.rotations.turn(current(station).version, station.now)
    return current(station)


def test_a_run_replaces_every_instance_one_after_another(station: Station) -> None:
    world = World(station, choose=lambda _: 0)
    before = {id_: pod.node_name for id_, pod in station.cluster.pods.items()}
    run = start(station)
    assert [t.node_id for t in run.turns] == [10, 20, 30]
    run = carry(station, world)
    assert run.state is RunState.DONE, run.reason
    assert {t.phase for t in run.turns} == {Phase.DONE}
    after = {id_: pod.node_name for id_, pod in station.cluster.pods.items()}
    assert not set(before.values()) & set(after.values())
    assert world.most_out == 1
    assert world.bare == []
    incidents = [station.incident(t.instance_id) for t in run.turns]
    assert {i.state for i in incidents} == {State.RELEASED}
