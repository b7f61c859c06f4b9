"""A broker that lost its disk refills under a throttle; nobody else is held back, or for long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.rotation.run_record import (
    NodeTurn,
    Phase,
    Replication,
    Run,
    RunState,
    Throttle,
    run_from_document,
    run_to_document,
)
from handlers.store.documents import is_left_throttled
from handlers.store.ledger import STRAYS_MESSAGE
from tests.unit.handlers.failing import Killed, fail
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_rotations import current, start, turn

GIB = 1024**3
MEASURED = Replication(bytes_per_s=80e6, run_id="rotation-20260101-000000", brokers=3)


def left(station: Station) -> None:
    """Begin with broker 10, whose logs hold 100 GiB."""
    station.cluster.held = {10: 100 * GIB}
    start(station)
    turn(station)  # begins
    turn(station)  # measures what it holds
    assert current(station).turn_of(10).whole_bytes == 100 * GIB
    station.runs.put(replace(current(station), replication=MEASURED))


def behind(station: Station, holds: int) -> None:
    """Have it registered again, in no ISR, with so many bytes."""
    station.cluster.held = {10: holds}
    station.cluster.kafka = replace(healthy_kafka(out=10), fenced=frozenset())


def test_who_lost_its_disk_is_throttled_to_half_of_what_was_measured(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    run = turn(station)
    assert station.cluster.throttled == Throttle(
        brokers=(10,),
        topics=("t",),
        follower_bytes_per_s=40_000_000,
        leader_bytes_per_s=20_000_000,  # of two that lead
    )
    assert (run.throttled, run.turn_of(10).throttled) == ((10,), True)
    assert any(
        note.text == "What broker 10 lost is copied again at 40.0 MB/s each at most, half of what "
        "replication brings in (measured in rotation-20260101-000000)."
        for note in run.notes
    )


def test_who_comes_back_on_its_volume_is_not(station: Station) -> None:
    left(station)
    behind(station, 99 * GIB)
    run = turn(station)
    assert (station.cluster.throttled, run.throttled) == (None, ())


def test_who_held_next_to_nothing_is_not(station: Station) -> None:
    station.cluster.held = {10: 1_000_000}
    start(station)
    turn(station)
    turn(station)
    behind(station, 0)
    turn(station)
    assert station.cluster.throttled is None


def test_it_is_taken_off_once_the_broker_is_in_every_isr(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    turn(station)
    station.cluster.kafka = healthy_kafka()
    run = turn(station)
    assert (station.cluster.throttled, run.throttled) == (None, ())
    assert station.cluster.unthrottled == [("t",)]
    assert not is_left_throttled(station.records, "orders", None)


def test_a_throttle_never_keeps_a_broker_out_until_its_deadline(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    turn(station)
    station.now += current(station).options.deadline_seconds / 2
    station.cluster.held = {10: 30 * GIB}
    run = turn(station)
    assert (station.cluster.throttled, run.throttled) == (None, ())
    assert "it took too long" in str([note.text for note in run.notes])


def test_what_was_copied_under_a_throttle_is_no_measurement(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    turn(station)
    station.cluster.held = {10: 2 * GIB}
    turn(station)
    turned = current(station).turn_of(10)
    assert turned.copied_bytes == GIB
    station.runs.put(replace(current(station), state=RunState.ABORTED))
    assert start(station).replication == MEASURED


def test_somebody_elses_reassignment_is_not_throttled_beside_its_own(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    view = station.cluster.read()
    station.cluster.kafka = replace(view, reassigning=("t-0",))
    turn(station)
    assert station.cluster.throttled is None


def test_a_run_goes_on_where_kafka_refuses_the_throttle(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    station.cluster.throttle_refused = "grant the functions' user AlterConfigs on the cluster."
    run = turn(station)
    assert run.state is RunState.RUNNING
    assert "The refill is not throttled: grant the functions' user AlterConfigs" in str(
        [note.text for note in run.notes]
    )


def test_a_throttle_of_somebody_elses_is_neither_changed_nor_taken_off(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    station.cluster.foreign_throttle = "topic t is marked already, which is not ours."
    run = turn(station)
    assert station.cluster.throttled is None
    assert "The refill is not throttled: topic t is marked" in str([n.text for n in run.notes])
    station.cluster.kafka = healthy_kafka()
    assert turn(station).throttled == ()
    assert station.cluster.unthrottled == []
    assert not is_left_throttled(station.records, "orders", None)


def stopped(run: Run) -> Run:
    return replace(run, state=RunState.STOPPED)


def forgotten(run: Run) -> Run:
    """As a turn leaves it that dies before it recorded what it throttled."""
    return replace(run, throttled=())


def another(run: Run) -> Run:
    return replace(run, id="rotation-20270101-000000")


@pytest.mark.parametrize("change", [stopped, forgotten, another])
def test_the_sweep_has_a_throttle_taken_off_that_no_run_wants(
    station: Station, change: object
) -> None:
    left(station)
    behind(station, 1 * GIB)
    turn(station)
    station.broom.sweep(station.now)
    assert STRAYS_MESSAGE not in [body for body, _ in station.ticks.sent]
    assert callable(change)
    station.runs.put(change(current(station)))
    station.broom.sweep(station.now)
    assert STRAYS_MESSAGE in [body for body, _ in station.ticks.sent]
    station.cluster.throttle_refused = "No Kafka broker could be asked."
    station.loop.turn(STRAYS_MESSAGE, station.now)
    assert station.cluster.throttled is not None
    station.cluster.throttle_refused = ""
    station.loop.turn(STRAYS_MESSAGE, station.now)
    assert station.cluster.throttled is None
    assert station.cluster.unthrottled == [("t",)]


def test_a_run_that_stops_takes_its_throttle_off_itself(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    turn(station)
    run = current(station)
    late = replace(run.turn_of(10), since=station.now - run.options.deadline_seconds)
    station.runs.put(run.replace_turn(late))
    assert turn(station).state is RunState.STOPPED
    assert station.cluster.throttled is None


def test_without_a_measured_pace_half_of_what_is_assumed_counts(station: Station) -> None:
    left(station)
    station.runs.put(replace(current(station), replication=None))
    behind(station, 1 * GIB)
    turn(station)
    assert station.cluster.throttled is not None
    assert station.cluster.throttled.follower_bytes_per_s == 62_500_000


def test_a_record_of_a_run_keeps_what_it_throttles(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    run = turn(station)
    again = run_from_document(run_to_document(run), run.version)
    assert again == run
    older = {k: v for k, v in run_to_document(run).items() if k != "throttled"}
    assert run_from_document(older, 1).throttled == ()


def test_nothing_is_decided_on_a_reading_without_a_quorum(station: Station) -> None:
    left(station)
    behind(station, 1 * GIB)
    run = turn(station)
    assert isinstance(run.turn_of(10), NodeTurn)
    assert run.turn_of(10).phase is Phase.LEAVING
    station.cluster.kafka = replace(station.cluster.read(), stale=True)
    turn(station)
    assert station.cluster.throttled is not None
    assert current(station).throttled == (10,)


def test_a_crash_between_ledger_and_kafka_leaves_a_document_that_names_the_topics(
    station: Station,
) -> None:
    left(station)
    behind(station, 1 * GIB)
    fail(station.cluster, "throttle", Killed())
    with pytest.raises(Killed):
        turn(station)
    assert is_left_throttled(station.records, "orders", current(station))
    station.loop.turn(STRAYS_MESSAGE, station.now)
    assert station.cluster.unthrottled == [("t",)]
