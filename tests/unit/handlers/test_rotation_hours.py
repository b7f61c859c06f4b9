"""When a run may begin with a node, and how fast brokers come back, as it measures it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.rotation.run_record import DEFAULT_DEADLINE_SECONDS, Phase, RunState
from core.window import DAYS, Window
from tests.unit.handlers.fakes import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.test_rotations import ask, current, look, start, turn

# The station's clock begins at 10:00 UTC.
NIGHT = Window(days=frozenset(DAYS), start_minute=22 * 60, duration_minutes=120)
NOON = Window(days=frozenset(DAYS), start_minute=9 * 60, duration_minutes=120)
EVERYTHING = {"selection": {"everything": True}}


def station_with(window: Window | None) -> Station:
    return Station(policy=replace(POLICY, maintenance=window))


def test_a_run_waits_for_the_window_and_says_until_when() -> None:
    station = station_with(NIGHT)
    start(station)
    run = turn(station)
    assert run.reason == (
        "The maintenance window opens at 2026-11-20 22:00 UTC; 3 nodes wait for it."
    )
    assert (run.state, run.in_hand) == (RunState.RUNNING, ())
    # SQS carries it for a quarter of an hour, and the sweep does not take it for lost meanwhile.
    assert station.ticks.sent[-1][1] == 900
    sent = len(station.ticks.sent)
    station.now += 600
    station.broom.sweep(station.now)
    assert len(station.ticks.sent) == sent
    station.now += 12 * 3600
    assert turn(station).turn_of(10).phase is Phase.LEAVING


def test_time_outside_the_window_counts_for_no_deadline() -> None:
    station = station_with(NIGHT)
    station.cluster.kafka = healthy_kafka(out=30)
    start(station)
    turn(station)
    station.now += 12 * 3600
    assert "broker 30 is fenced" in turn(station).reason
    station.now += DEFAULT_DEADLINE_SECONDS - 60
    assert turn(station).state is RunState.RUNNING


def test_a_window_that_closes_over_a_run_stops_no_node_and_begins_with_none() -> None:
    station = station_with(NOON)
    start(station)
    assert turn(station).turn_of(10).phase is Phase.LEAVING
    station.now += 3600 + 60
    look(station)
    run = turn(station)
    assert run.turn_of(10).phase is Phase.LEAVING
    assert station.incident().open
    ask(station, "abort")
    turn(station)
    look(station)
    turn(station)
    assert turn(station).state is RunState.ABORTED


@pytest.mark.parametrize("command", ["start", "resume"])
def test_a_person_may_say_that_any_time_will_do(command: str) -> None:
    station = station_with(NIGHT)
    if command == "start":
        start(station, any_time=True)
    else:
        start(station)
        ask(station, "pause")
        ask(station, "resume", any_time=True)
    assert turn(station).turn_of(10).phase is Phase.LEAVING


def test_a_plan_says_when_the_window_opens() -> None:
    said = ask(station_with(NIGHT), "plan", **EVERYTHING)["plan"]
    assert isinstance(said, dict)
    assert any("window opens at 2026-11-20 22:00 UTC" in note for note in said["notes"])
    free = ask(station_with(NIGHT), "plan", any_time=True, **EVERYTHING)["plan"]
    assert isinstance(free, dict)
    assert not any("window" in note for note in free["notes"])


def replicating(station: Station, bytes_: int) -> None:
    """Show broker 10 unfenced, behind, and holding so much."""
    view = healthy_kafka()
    behind = tuple(replace(p, isr=(20, 30), leader=20) for p in view.partitions)
    station.cluster.kafka = replace(view, partitions=behind)
    station.cluster.held = {10: bytes_, 20: 0, 30: 0}


def test_a_run_measures_how_fast_a_log_comes_back_and_the_next_plan_goes_by_it() -> None:
    station = station_with(None)
    first = ask(station, "plan", **EVERYTHING)["plan"]
    assert isinstance(first, dict)
    assert (first["replication_bytes_per_s"], first["replication_measured_in"]) == (125e6, None)
    assert any("125.0 MB/s is assumed" in note for note in first["notes"])

    run = start(station)
    turn(station)
    for held in (100_000_000, 500_000_000, 900_000_000):
        replicating(station, held)
        turn(station)
    # 20 s between two turns: 800 MB in 40 s.
    measured = current(station).turn_of(10)
    assert (measured.copied_bytes, measured.copied_seconds) == (800_000_000, 40)
    station.cluster.kafka = healthy_kafka()
    turn(station)
    assert current(station).turn_of(10).copied_bytes == 800_000_000

    held = ask(station, "held")["held"]
    station.now += 10
    station.cluster.held = {10: 1_000_000_000, 20: 0, 30: 0}
    second = ask(station, "plan", held=held, **EVERYTHING)["plan"]
    assert isinstance(second, dict)
    assert second["replication_bytes_per_s"] == pytest.approx(20e6)
    assert second["replication_measured_in"] == run.id
    assert any(
        f"20.0 MB/s was measured in {run.id}, by 1 broker" in note for note in second["notes"]
    )


def test_a_run_that_measured_nothing_hands_on_what_an_earlier_one_did() -> None:
    station = station_with(None)
    first = start(station)
    turn(station)
    for held in (0, 200_000_000):
        replicating(station, held)
        turn(station)
    station.runs.put(replace(current(station), state=RunState.DONE))
    station.cluster.kafka = healthy_kafka()
    station.now += 60
    second = start(station)
    assert second.replication is not None
    assert (second.replication.run_id, second.replication.bytes_per_s) == (first.id, 10e6)
    plan = ask(station, "plan", **EVERYTHING)["plan"]
    assert isinstance(plan, dict)
    assert plan["replication_measured_in"] == first.id


def test_a_broker_that_is_fenced_again_before_it_was_measured_begins_anew() -> None:
    station = station_with(None)
    start(station)
    turn(station)
    replicating(station, 100)
    turn(station)
    station.cluster.kafka = healthy_kafka(out=10)
    turn(station)
    assert current(station).turn_of(10).behind_at is None


def test_a_handful_of_bytes_is_no_measurement() -> None:
    station = station_with(None)
    start(station)
    turn(station)
    for held in (0, 50_000):
        replicating(station, held)
        turn(station)
    assert current(station).turn_of(10).copied_bytes == 50_000
    station.cluster.kafka = healthy_kafka()
    plan = ask(station, "plan", **EVERYTHING)["plan"]
    assert isinstance(plan, dict)
    assert (plan["replication_bytes_per_s"], plan["replication_measured_in"]) == (125e6, None)
