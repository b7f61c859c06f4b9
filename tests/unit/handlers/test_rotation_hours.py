"""When a run may begin with a node, and how fast brokers come back, as it measures it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.ground.window import DAYS, Window
from core.incidents.record import State
from core.rotation.run_record import DEFAULT_DEADLINE_SECONDS, Phase, RunState
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.healthy import healthy_kafka
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
    assert run.reason == ("The maintenance window opens at 2026-11-20 22:00 UTC; 3 nodes wait.")
    assert (run.state, run.open_turns) == (RunState.RUNNING, ())
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
    start(station, selection={"node_ids": [10, 20]})
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


def late_in_the_window(**said: object) -> Station:
    """Return a station on which a run was started four minutes before the window closes."""
    station = station_with(NOON)
    station.now += 3600 - 260
    start(station, **said)
    return station


def test_a_node_that_would_not_be_back_before_the_window_closes_waits_for_the_next() -> None:
    station = late_in_the_window()
    run = turn(station)
    assert run.open_turns == ()
    assert run.reason == (
        "Broker 10 is expected to take 4 min 40 s, and the maintenance window closes at "
        "2026-11-20 11:00 UTC: it waits for the one that opens at 2026-11-21 09:00 UTC; 3 nodes "
        "wait."
    )
    assert run.notes[-1].text == run.reason
    assert station.ticks.sent[-1][1] == 900
    station.now += 22 * 3600 + 300
    assert turn(station).turn_of(10).phase is Phase.LEAVING


def test_a_node_that_fits_into_what_is_left_of_the_window_begins() -> None:
    station = late_in_the_window()
    station.now -= 60
    assert turn(station).turn_of(10).phase is Phase.LEAVING


def test_any_time_begins_in_the_last_minutes_of_a_window_too() -> None:
    assert turn(late_in_the_window(any_time=True)).turn_of(10).phase is Phase.LEAVING


def test_a_run_goes_by_what_its_own_nodes_have_taken() -> None:
    station = station_with(NOON)
    start(station)
    run = current(station)
    an_hour_ago = station.now - 3600
    slow = replace(
        run.turn_of(10),
        phase=Phase.DONE,
        since=an_hour_ago,
        began_at=an_hour_ago,
        done_at=station.now,
    )
    station.runs.put(run.replace_turn(slow))
    said = turn(station).reason
    assert said.startswith("Broker 20 is expected to take 1 h, and the maintenance window closes")


def test_a_run_stops_for_a_person_where_no_window_is_as_long_as_a_move() -> None:
    station = station_with(NOON)
    start(station)
    run = current(station)
    took = replace(
        run.turn_of(10),
        phase=Phase.DONE,
        since=station.now - 10_000,
        began_at=station.now - 10_000,
        done_at=station.now,
    )
    station.runs.put(run.replace_turn(took))
    run = turn(station)
    assert run.state is RunState.STOPPED
    assert "no maintenance window stays open as long: make" in run.reason
    ask(station, "resume", any_time=True)
    assert turn(station).turn_of(20).phase is Phase.LEAVING


def test_a_run_is_not_started_where_the_last_one_took_longer_than_any_window() -> None:
    station = station_with(NOON)
    start(station)
    run = current(station)
    long_ago = station.now - 90_000
    turns = tuple(
        replace(t, phase=Phase.DONE, since=long_ago, began_at=long_ago, done_at=long_ago + 9_000)
        for t in run.turns
    )
    station.runs.put(replace(run, state=RunState.DONE, turns=turns))
    station.now += 60
    problems = ask(station, "start", **EVERYTHING)["problems"]
    assert "Broker 10 is expected to take 2 h 30 min, and no maintenance" in str(problems)
    planned = ask(station, "plan", **EVERYTHING)["plan"]
    assert isinstance(planned, dict)
    assert len(planned["too_long"]) == 3
    assert "problems" not in ask(station, "start", any_time=True, **EVERYTHING)


@pytest.mark.parametrize("left_seconds", [30, -3600], ids=["closing", "closed"])
def test_what_aws_takes_waits_for_no_window(left_seconds: float) -> None:
    station = station_with(NOON)
    station.now += 3600 - left_seconds
    warning = "EC2 Spot Instance Interruption Warning"
    said_at = f"{datetime.fromtimestamp(station.now, UTC):%Y-%m-%dT%H:%M:%SZ}"
    event = json.loads(ec2_event(warning, OLD, **{"instance-action": "terminate"}))
    station.announce(json.dumps({**event, "time": said_at}))
    station.tick()
    assert station.incident().state is State.DRAINING
    terminated = station_with(NOON)
    terminated.now += 3600 - left_seconds
    terminated.cluster.terminate(OLD)
    terminated.announce(hook_event("drain"))
    terminated.tick_until_quiet()
    assert terminated.incident().state is State.REPLACING


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
