"""A zone's machines stay and boot together: one party, one consent, in any order of events."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from core.incidents.observation import PodView
from core.incidents.record import State
from core.rotation.run_record import Phase, Run, RunState
from tests.effort import EFFORT
from tests.unit.handlers.fakes import node_named
from tests.unit.handlers.healthy import ZONES
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_budgets import SLOW_RETURN, BudgetedWorld, labels, station_of_six
from tests.unit.handlers.test_in_place import boots, launched, reported
from tests.unit.handlers.test_rotations import current, start, turn

pytestmark = pytest.mark.usefixtures("quiet")

PARTY = ("i-0a", "i-1a")


@dataclass
class Booting(BudgetedWorld):
    """Machines whose root volume is replaced boot, in any order; a pod's node stays its own."""

    booted: dict[str, str] = field(default_factory=dict)  # by instance, with which of EC2's tasks
    fails: frozenset[str] = frozenset()  # instances whose task comes to nothing

    @property
    def _steps(self) -> tuple[Callable[[], None], ...]:
        return (*super()._steps, self._boot)

    def _boot(self) -> None:
        roots = self.station.roots
        for incident in self.station.ledger.open_incidents():
            task, instance_id = roots.tasks.get(incident.id), incident.instance_id
            if task is None or self.booted.get(instance_id) == task.id:
                continue
            pod = self.station.cluster.pods[incident.node_id or 0]
            assert pod.node_name != node_named(instance_id), "it boots under its broker"
            self.booted[instance_id] = task.id
            roots.go(incident.id, "failed" if instance_id in self.fails else "succeeded")
            boots(self.station, instance_id, f"boot-{task.id}")
            return

    def _stop(self, node_id: int, pod: PodView) -> None:
        super()._stop(node_id, pod)
        for incident in self.station.ledger.open_incidents():
            if node_id in self.out and incident.node_id == node_id and incident.forwarded:
                reported(self.station, incident.instance_id)

    def _lacks_a_place(self, instance_id: str) -> bool:
        place = self.station.incident(instance_id).in_place
        stays = place is not None and place.refusal is None
        return not stays and super()._lacks_a_place(instance_id)

    def _idle(self, zone: str) -> list[str]:
        nodes = self.station.cluster.node_views
        return [id_ for id_ in super()._idle(zone) if nodes[id_].schedulable]


@pytest.fixture
def station(monkeypatch: pytest.MonkeyPatch) -> Station:
    found = station_of_six(monkeypatch)
    for instance_id in list(found.cluster.node_views):
        found.cluster.builds[instance_id] = launched()
        boots(found, instance_id, "boot-1")
    return found


def world_of(station: Station, *, fails: frozenset[str] = frozenset()) -> Booting:
    return Booting(station, choose=lambda _: 0, fails=fails)


def carried(station: Station, world: Booting) -> Run:
    run = current(station)
    for _ in range(400):
        if run.state is not RunState.RUNNING:
            break
        run = turn(station)
        if station.ledger.open_incidents():
            world.settle(200, paces=(*SLOW_RETURN, 1))
    return run


def test_machines_of_a_zone_boot_together(station: Station) -> None:
    world = world_of(station)
    start(station, in_place=True, at_once="zone")
    run = carried(station, world)
    assert run.state is RunState.DONE, run.reason
    assert world.most_out == 2
    assert set(world.booted) == {node.instance_id for node in run.turns}
    assert {turn.phase for turn in run.turns} == {Phase.DONE}
    assert set(station.cluster.node_views) == set(world.booted)
    assert labels(station) == {}
    assert all(node.schedulable for node in station.cluster.node_views.values())


def test_only_so_many_boot_as_was_said(station: Station) -> None:
    world = world_of(station)
    start(station, in_place=True, at_once=1)
    assert carried(station, world).state is RunState.DONE
    assert world.most_out == 1


def test_where_one_tasks_fails_its_machine_alone_is_replaced(station: Station) -> None:
    world = world_of(station, fails=frozenset({"i-1a"}))
    start(station, in_place=True, at_once="zone")
    run = carried(station, world)
    assert run.state is RunState.DONE, run.reason
    assert station.cluster.pods[10].node_name == node_named("i-0a")
    assert station.cluster.pods[11].node_name == node_named("i-new1")
    assert world.most_out == 2


@pytest.mark.parametrize("seed", range(2 * EFFORT))
def test_in_any_order_brokers_of_one_zone_alone_are_away(station: Station, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a seed repeats it
    world = world_of(station, fails=frozenset(chance.sample(["i-0b", "i-1c", "i-1a"], k=1)))
    world.choose = chance.randrange
    start(station, in_place=True, at_once="zone")
    for _ in range(300):
        chance.choice(world._steps)()
        if chance.random() < 0.3:
            turn(station)
        assert len({ZONES[node_id] for node_id in world.out}) <= 1
    # A world this slow may keep a broker away for longer than a run waits.
    carried(station, world)
    world.settle(400, paces=(*SLOW_RETURN, 1))
    assert labels(station) == {}
    assert world.bare == []


def leave_together(station: Station, world: Booting) -> None:
    """Carry both of a zone to where their pods have left, and EC2 has not been asked."""
    start(station, in_place=True, at_once="zone")
    turn(station)
    for _ in range(60):
        if world.out == {10, 11}:
            return
        world._tick()
        world._drain()
    raise AssertionError([i.reason for i in station.ledger.open_incidents()])


def lost(station: Station, world: Booting, node_id: int) -> None:
    pod: PodView = station.cluster.pods[node_id]
    station.cluster.pods[node_id] = replace(pod, ready=False)
    world.out.add(node_id)
    world._show_kafka()


def test_a_broker_of_another_zone_that_is_lost_brings_back_who_does_not_boot_yet(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(station)
    monkeypatch.setattr(world, "_boot", lambda: None)
    leave_together(station, world)
    asked = [id_ for id_, _, trial in station.roots.asked if not trial]
    lost(station, world, 30)
    for _ in range(12):
        world._tick()
    assert [id_ for id_, _, trial in station.roots.asked if not trial] == asked
    incidents = {id_: station.incident(id_) for id_ in PARTY}
    back = [id_ for id_, incident in incidents.items() if incident.id not in asked]
    assert back
    for id_ in back:
        assert station.cluster.node_views[id_].schedulable
        assert incidents[id_].state is State.GATING


def test_a_companion_that_is_away_brings_nobody_back(station: Station) -> None:
    world = world_of(station)
    leave_together(station, world)
    for _ in range(12):
        world._tick()
    tasks = {id_ for id_, _, trial in station.roots.asked if not trial}
    assert tasks == {station.incident(id_).id for id_ in PARTY}
    assert not any(station.cluster.node_views[id_].schedulable for id_ in PARTY)


def test_one_that_stays_and_one_that_goes_are_no_party(station: Station) -> None:
    station.cluster.builds["i-1a"] = launched(traits=None)
    said = {"in_place": True, "at_once": "zone", "selection": {"everything": True}}
    planned = station.conductor.take({"command": "plan", **said}, station.now)["plan"]
    batch_of = {node["node_id"]: node["batch"] for node in planned["nodes"]}
    assert batch_of[10] != batch_of[11]
    assert batch_of[20] == batch_of[21]
    world = world_of(station)
    start(station, in_place=True, at_once="zone")
    run = carried(station, world)
    assert run.state is RunState.DONE, run.reason
    # The spare of the one that goes was not there while the other's pod looked for a node.
    assert station.cluster.pods[10].node_name == node_named("i-0a")
    assert station.cluster.pods[11].node_name == node_named("i-new1")
    assert {turn.party for turn in run.turns} == {(), (20, 21), (30, 31)}
