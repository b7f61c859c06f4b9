"""A node begins only while the maintenance window stays open for as long as its move takes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ground.window import DAYS, Window
from core.rotation.estimate import expecting, medians, spreads, together
from core.rotation.preconditions import wait_of
from core.rotation.progress import next_step
from core.rotation.run_record import NodeTurn, Options, Phase, Run, open_run
from core.views import ClusterView
from tests.unit.core.availability.clusters import around, calm, clusters, turn_of
from tests.unit.policies import policy_with
from tests.unit.views import kafka_view

MINUTE = 60
ANY_TIME = Options(any_time=True)
# Two hours on Saturdays and Sundays, from 03:00.
WEEKEND = Window(days=frozenset({"sat", "sun"}), start_minute=180, duration_minutes=120)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def taking(minutes: float) -> NodeTurn:
    return replace(turn_of(20), expected_seconds=minutes * MINUTE)


def is_open(window: Window, minute: int) -> bool:
    """Say whether a minute since the epoch lies in the window, by looking at the two days only."""
    day, of_day = divmod(minute, 1440)
    # The epoch was a Thursday.
    opens_on = {(DAYS.index(name) - 3) % 7 for name in window.days}
    today = day % 7 in opens_on and window.start_minute <= of_day
    still = today and of_day < window.start_minute + window.duration_minutes
    left_over = window.start_minute + window.duration_minutes - 1440
    return still or ((day - 1) % 7 in opens_on and of_day < left_over)


@pytest.mark.parametrize(
    ("now", "minutes", "until", "said"),
    [
        pytest.param("2026-11-21 03:00", 120, None, "", id="exactly fits"),
        pytest.param(
            "2026-11-21 03:01",
            120,
            "2026-11-22 03:00",
            "Broker 20 is expected to take 2 h, and the maintenance window closes at 2026-11-21 "
            "05:00 UTC: it waits for the one that opens at 2026-11-22 03:00 UTC.",
            id="a minute short",
        ),
        pytest.param(
            "2026-11-22 04:50",
            15,
            "2026-11-28 03:00",
            "Broker 20 is expected to take 15 min, and the maintenance window closes at "
            "2026-11-22 05:00 UTC: it waits for the one that opens at 2026-11-28 03:00 UTC.",
            id="a week away",
        ),
        pytest.param("2026-11-20 12:00", 15, "2026-11-21 03:00",
            "The maintenance window opens at 2026-11-21 03:00 UTC.", id="closed"),
    ],
)  # fmt: skip
def test_what_does_not_fit_waits(now: str, minutes: float, until: str | None, said: str) -> None:
    wait = wait_of(taking(minutes), at(now), Options(), policy_with(maintenance=WEEKEND))
    assert (wait is None) == (until is None)
    if wait is not None and until is not None:
        assert (wait.until, wait.sentence) == (at(until), said)


def test_what_fits_into_no_window_is_told_so_with_the_remedy() -> None:
    wait = wait_of(taking(150), at("2026-11-21 03:00"), Options(), policy_with(maintenance=WEEKEND))
    assert wait.until is None
    assert wait.sentence == (
        "Broker 20 is expected to take 2 h 30 min, and no maintenance window stays open as long: "
        "make maintenance.duration_minutes longer, or say --any-time."
    )


windows = st.builds(
    Window,
    days=st.frozensets(st.sampled_from(DAYS), min_size=1) | st.just(frozenset(DAYS)),
    start_minute=st.integers(0, 1439),
    # A whole day touches the next.
    duration_minutes=st.integers(30, 1440) | st.just(1440),
)
minutes_since_epoch = st.integers(20_000 * 1440, 20_014 * 1440)
lengths = st.integers(1, 300) | st.integers(1, 6_000)


@given(windows, minutes_since_epoch, lengths)
def test_a_node_begins_when_the_window_fits(window: Window, now: int, takes: int) -> None:
    policy = policy_with(maintenance=window)
    wait = wait_of(taking(takes), float(now * MINUTE), Options(), policy)
    open_for, first = 0, None
    # Two weeks hold every place that a weekly pattern has, and the longest move of the test.
    for minute in range(now, now + 14 * 1440):
        open_for = open_for + 1 if is_open(window, minute) else 0
        if open_for == takes:
            first = minute - takes + 1
            break
    if first == now:
        assert wait is None
    else:
        assert wait is not None
        assert wait.until == (None if first is None else first * MINUTE)


@given(windows, minutes_since_epoch, lengths)
def test_a_node_that_waited_until_then_begins(window: Window, now: int, takes: int) -> None:
    policy = policy_with(maintenance=window)
    wait = wait_of(taking(takes), float(now * MINUTE), Options(), policy)
    if wait is not None and wait.until is not None:
        assert wait.until > now * MINUTE
        assert wait_of(taking(takes), wait.until, Options(), policy) is None


@given(windows, minutes_since_epoch, lengths)
def test_nobody_waits_where_any_time_will_do(window: Window, now: int, takes: int) -> None:
    turn, moment = taking(takes), float(now * MINUTE)
    assert wait_of(turn, moment, ANY_TIME, policy_with(maintenance=window)) is None
    assert wait_of(turn, moment, Options(), policy_with(maintenance=None)) is None


@given(clusters().map(calm), windows, minutes_since_epoch, st.integers(1, 200), st.integers(1, 4))
def test_a_run_begins_with_nobody_who_would_not_be_back_in_the_window(
    view: ClusterView, window: Window, now: int, takes: int, most: int
) -> None:
    # Brokers alone: those of a zone go together where they share no partition.
    seen = around(replace(view, voters=()), now=float(now * MINUTE))
    turns = [
        replace(turn_of(pod.node_id), expected_seconds=float(takes * MINUTE * (1 + place % 3)))
        for place, pod in enumerate(seen.pods)
    ]
    options = Options(accepted_topics=("t",), at_once=most)
    run = open_run(turns, options, "ada", seen.now)
    begun = next_step(run, seen, policy_with(maintenance=window)).run.open_turns
    lasts = (
        together([turn.expected_seconds or 0.0 for turn in begun], at_once=False) if begun else 0.0
    )
    assert all(is_open(window, minute) for minute in range(now, now + int(lasts // MINUTE)))
    # Whoever may go at any time, and would be back in time, goes.
    at_once = next_step(replace(run, options=replace(options, any_time=True)), seen, policy_with())
    fits = [is_open(window, minute) for minute in range(now, now + 3 * takes + 6)]
    assert begun == at_once.run.open_turns or not all(fits)


@given(st.integers(1, 119), st.integers(1, 90), st.integers(1, 90))
def test_two_that_share_nothing_go_together_where_both_fit(left: int, one: int, other: int) -> None:
    view = kafka_view({10, 11}, voters=(), quorum_leader=10)
    seen = around(view, now=at("2026-11-21 05:00") - left * MINUTE)
    turns = [replace(turn_of(n), expected_seconds=m * 60.0) for n, m in ((10, one), (11, other))]
    run = open_run(turns, Options(at_once=2), "ada", seen.now)
    begun = next_step(run, seen, policy_with(maintenance=WEEKEND)).run.open_turns
    both = together([one * 60.0, other * 60.0], at_once=False) <= left * MINUTE
    assert len(begun) == (2 if both else 1 if min(one, other) <= left else 0)


def moved(run: Run, node_id: int, began_at: float, seconds: float, since: float = 0.0) -> Run:
    turn = run.turn_of(node_id)
    done = replace(
        turn,
        phase=Phase.DONE,
        since=since or began_at,
        began_at=began_at,
        done_at=began_at + seconds,
    )
    return run.replace_turn(done)


def test_a_run_learns_from_its_own_moves_what_the_next_will_take() -> None:
    planned = [replace(turn_of(n), expected_seconds=300.0) for n in (10, 20, 30)]
    run = open_run(planned, Options(), "ada", 0.0)
    policy = policy_with()
    assert [t.expected_seconds for t in expecting(run, policy).turns] == [300.0] * 3
    run = moved(run, 10, 100.0, 900.0)
    assert [t.expected_seconds for t in expecting(run, policy).waiting] == [900.0] * 2


@given(st.lists(st.floats(1, 1e5), min_size=1, max_size=6))
def test_together_takes_the_slowest_at_least_and_the_sum_at_most(seconds: list[float]) -> None:
    assert max(seconds) <= together(seconds, at_once=False) <= sum(seconds) + 1e-6
    assert together(seconds, at_once=True) == max(seconds)


def test_a_move_that_waited_for_a_person_says_nothing_about_the_next() -> None:
    run = open_run([turn_of(10), turn_of(20)], Options(), "ada", 0.0)
    stopped_for_hours = moved(run, 10, 100.0, 30_000.0, since=20_000.0)
    assert medians(stopped_for_hours, stop_together=False) == {}
    # Resumed after it was done: its deadline moved, its move did not.
    resumed = moved(run, 10, 100.0, 900.0, since=20_000.0)
    assert medians(resumed, stop_together=False) == {"broker": 900.0}


def test_an_interval_is_of_what_nodes_took_and_a_party_counts_once() -> None:
    run = open_run([turn_of(n) for n in range(10, 15)], Options(), "ada", 0.0)
    for node_id, took in ((10, 100.0), (11, 300.0), (12, 120.0)):
        run = moved(run, node_id, 1.0, took)
    assert spreads(run, stop_together=False) == {"broker": (100.0, 300.0)}
    run = moved(moved(run, 13, 1.0, 110.0), 14, 1.0, 500.0)
    for node_id in (13, 14):
        run = run.replace_turn(replace(run.turn_of(node_id), party=(13, 14)))
    # Whoever stopped second waited; where both stop at once, the party takes as long as the slower.
    assert medians(run, stop_together=False) == {"broker": 115.0}
    assert spreads(run, stop_together=False) == {"broker": (100.0, 300.0)}
    assert medians(run, stop_together=True) == {"broker": 210.0}
    assert spreads(run, stop_together=True) == {"broker": (100.0, 500.0)}
    alone = moved(open_run([turn_of(10)], Options(), "ada", 0.0), 10, 1.0, 9.0)
    assert spreads(alone, stop_together=True) == {}
