from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents import State
from handlers import sweep
from tests.unit.handlers.fakes import NEW, OLD, hook_event
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_walk import announced


@pytest.fixture
def station() -> Station:
    return Station()


def swept(station: Station, later: float = 0.0) -> dict[str, int]:
    """Return what one run of the sweep did."""
    done = station.broom.sweep(station.now + later)
    return {key: done[key] for key in ("revived", "opened")}


def test_an_incident_without_a_tick_gets_one(station: Station) -> None:
    announced(station)
    sent = len(station.ticks.sent)
    assert swept(station, 40) == {"revived": 0, "opened": 0}
    assert swept(station, 60) == {"revived": 1, "opened": 0}
    assert len(station.ticks.sent) == sent + 1
    station.tick()
    assert len(station.ticks.sent) == sent + 2


def test_a_revived_tick_and_the_one_believed_lost_make_one_chain(station: Station) -> None:
    announced(station)
    believed_lost, _ = station.ticks.sent[-1]
    station.now += 60
    station.broom.sweep(station.now)
    station.tick()
    sent = len(station.ticks.sent)
    station.loop.turn(believed_lost, station.now)
    assert len(station.ticks.sent) == sent


def test_an_instance_nobody_announced_gets_an_incident(station: Station) -> None:
    station.cluster.terminate(OLD)
    assert swept(station) == {"revived": 0, "opened": 1}
    assert swept(station) == {"revived": 0, "opened": 0}
    incident = station.incident()
    assert incident.transitions[0].actor == "sweep"
    station.tick_until_quiet()
    assert station.incident().state is State.REPLACING


def test_the_announcement_that_comes_late_joins_what_the_sweep_opened(station: Station) -> None:
    station.cluster.terminate(OLD)
    station.broom.sweep(station.now)
    station.announce(hook_event("drain"))
    assert station.incident().drain_event == hook_event("drain")
    assert station.incident().hooks == {"gate": None, "drain": "token-drain"}


def test_an_idle_instance_nobody_announced_is_let_go_without_a_drain(station: Station) -> None:
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster.terminate(NEW)
    station.broom.sweep(station.now)
    station.tick_until_quiet()
    assert station.cluster.completed == [(NEW, "drain", "CONTINUE"), (NEW, "gate", "CONTINUE")]
    assert station.forwarded == []


@pytest.mark.parametrize("state", ["Pending", "InService", "Terminating:Proceed"])
def test_an_instance_that_does_not_wait_is_left_alone(station: Station, state: str) -> None:
    station.cluster.set_lifecycle(OLD, state)
    assert station.broom.sweep(station.now)["opened"] == 0


@pytest.mark.parametrize(("state", "opened"), [(State.RELEASED, 0), (State.CANCELLED, 1)])
def test_only_an_instance_that_stays_after_an_incident_gets_another(
    station: Station, state: State, opened: int
) -> None:
    announced(station)
    station.ledger.put(replace(station.incident(), state=state))
    assert station.broom.sweep(station.now)["opened"] == opened


def test_the_function_says_what_it_swept(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_broom", lambda: station.broom)
    assert sweep.handler({}, None) == {"revived": 0, "opened": 0, "looked_at": 3, "filed": 0}
