"""`rotate` on machines of Karpenter's: a NodeClaim at a time, its successor first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.events import Kind
from core.incidents.joining import Pause
from core.incidents.observation import Condition
from core.incidents.record import NodeDisruption, State
from core.rotation.run_record import Run, RunState
from handlers.adapters.aws import tick_message
from handlers.store.documents import Pauses
from tests.unit.handlers.asking import Door
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.karpenter_machines import (
    INITIALIZED,
    KARPENTER,
    claim_of,
    end,
    of_karpenter,
)
from tests.unit.handlers.station import POLICY, Station

GATED = replace(POLICY, drain_route="asked")
EVERYTHING = {"selection": {"everything": True}}
DRIFTED = {**INITIALIZED, "Drifted": Condition(holds=True, reason="AMIDrift")}


@pytest.fixture
def door() -> Door:
    return of_karpenter(Door(Station(policy=GATED)))


def ask(door: Door, command: str, **said: object) -> dict[str, object]:
    station = door.station
    return station.conductor.take({"command": command, "actor": "ada", **said}, station.now)


def current(door: Door) -> Run:
    run = door.station.runs.current()
    assert run is not None
    return run


def turn(door: Door) -> Run:
    station = door.station
    station.now += 20
    station.rotations.turn(current(door).version, station.now)
    for _ in range(4):
        for incident in station.ledger.open_incidents():
            station.now += 1
            station.loop.turn(tick_message(incident.id, incident.version), station.now)
    return current(door)


def test_the_sweep_finds_nothing_new_in_a_claim_that_a_run_ends(door: Door) -> None:
    ask(door, "start", selection={"node_ids": [10]})
    turn(door)
    assert door.station.cluster.ended_claims
    door.station.sweep()
    turn(door)
    incident = door.station.incident()
    assert incident.kind is Kind.ROTATION
    assert incident.disruption == NodeDisruption(reason="rotation")


def test_what_has_drifted_is_outdated(door: Door) -> None:
    end(door, claim_of(conditions=DRIFTED))
    plan = ask(door, "plan")["plan"]
    assert isinstance(plan, dict)
    assert [(n["node_id"], n["why"]) for n in plan["nodes"]] == [(10, "drifted: AMIDrift")]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"grace_seconds": 3600.0}, "has a terminationGracePeriod"),
        ({"unreadable": ("terminationGracePeriod",)}, "a field that cannot be read"),
        ({"do_not_disrupt": True}, "is marked karpenter.sh/do-not-disrupt"),
        ({"deleted": True}, "already"),
        ({"conditions": {}}, "is not initialized yet"),
    ],
    ids=["deadline", "unreadable", "kept", "ending", "young"],
)
def test_a_claim_whose_end_could_not_be_held_is_not_begun_with(
    door: Door, changes: dict[str, object], sentence: str
) -> None:
    end(door, claim_of(**changes))
    plan = ask(door, "plan", selection={"node_ids": [10]})["plan"]
    assert isinstance(plan, dict)
    assert sentence in " ".join(plan["nodes"][0]["objections"])
    ask(door, "start", selection={"node_ids": [10]})
    assert sentence in turn(door).reason
    assert door.station.cluster.ended_claims == []


@pytest.mark.parametrize(
    ("pod", "sentence"),
    [
        (
            {"undisturbed_until": float("inf")},
            (
                "orders-broker-a-10 says karpenter.sh/do-not-disrupt: Karpenter would neither make "
                "room for it nor evict it. Take that off."
            ),
        ),
        (
            {"ignores_disruption": True},
            (
                "orders-broker-a-10 tolerates the taint karpenter.sh/disrupted: Karpenter would "
                "end its node without an eviction. Narrow its tolerations."
            ),
        ),
    ],
    ids=["kept", "tolerant"],
)
def test_unevictable_pods_are_not_begun(door: Door, pod: dict[str, object], sentence: str) -> None:
    door.station.cluster.change_pod(10, **pod)  # type: ignore[arg-type]
    plan = ask(door, "plan", selection={"node_ids": [10]})["plan"]
    assert isinstance(plan, dict)
    assert sentence in plan["nodes"][0]["objections"]
    ask(door, "start", selection={"node_ids": [10]})
    turn(door)
    assert door.station.cluster.ended_claims == []


def test_a_node_somebody_keeps_is_left_out_and_a_lapsed_mark_is_none(door: Door) -> None:
    cluster = door.station.cluster
    cluster.change_pod(10, undisturbed_until=door.station.now - 1)
    plan = ask(door, "plan", selection={"node_ids": [10]})["plan"]
    assert isinstance(plan, dict)
    assert list(plan["nodes"][0]["objections"]) == []
    cluster.change_node(OLD, do_not_disrupt=True)
    plan = ask(door, "plan", selection={"node_ids": [10]})["plan"]
    assert isinstance(plan, dict)
    assert "is marked karpenter.sh/do-not-disrupt" in plan["nodes"][0]["objections"][0]


def test_without_a_gate_no_claim_is_ended_and_the_plan_says_why() -> None:
    door = of_karpenter(Door(Station()))
    plan = ask(door, "plan", **EVERYTHING)["plan"]
    assert isinstance(plan, dict)
    for node in plan["nodes"]:
        assert "before its successor is there: set `eviction_gate`" in node["objections"][0]
    ask(door, "start", **EVERYTHING)
    turn(door)
    assert door.station.cluster.ended_claims == []


def test_several_at_once_are_refused(door: Door) -> None:
    (problem,) = ask(door, "start", at_once="zone", **EVERYTHING)["problems"]  # type: ignore[misc]
    assert "nodes go one at a time" in problem


def begun(door: Door) -> Station:
    """The run has opened its incident for node 10, and nobody has looked at that yet."""
    ask(door, "start", selection={"node_ids": [10]})
    station = door.station
    while not station.ledger.open_incidents():
        station.now += 20
        station.rotations.turn(current(door).version, station.now)
    return station


def test_a_pause_keeps_a_claim_that_is_not_ended_yet(door: Door) -> None:
    station = begun(door)
    Pauses(station.records, "orders").write(Pause("ada", "an upgrade", station.now))
    turn(door)
    assert station.cluster.ended_claims == []
    Pauses(station.records, "orders").write(None)
    turn(door)
    turn(door)
    assert set(station.cluster.ended_claims) == {"broker-i-0a"}


def test_an_abort_before_a_claim_is_ended_ends_none(door: Door) -> None:
    station = begun(door)
    ask(door, "abort")
    for _ in range(3):
        station.now += 20
        station.rotations.turn(current(door).version, station.now)
    for _ in range(3):
        turn(door)
    assert current(door).state is RunState.ABORTED
    assert station.cluster.ended_claims == []


def test_a_claim_that_was_ended_is_followed_after_an_abort(door: Door) -> None:
    """Nobody takes a deletion back: what goes on is told, and waits for the same consent."""
    station = begun(door)
    turn(door)
    ask(door, "abort")
    turn(door)
    assert station.incident().state is State.CANCELLED
    assert station.sweep()["opened"] == 1
    assert station.incident(f"{OLD}.2").kind is Kind.EVICTION
    assert not door.ask(user=KARPENTER).allowed
