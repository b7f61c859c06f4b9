"""When planned work may begin, for every place of the window, the due time and the clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ground.window import DAYS, Window, start_of
from tests.every_case import every_case

HOUR = 3600.0
WEEKEND = Window(days=frozenset({"sat", "sun"}), start_minute=180, duration_minutes=120)
NIGHT = Window(days=frozenset(DAYS), start_minute=1410, duration_minutes=120)  # 23:30-01:30


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


THURSDAY = at("2026-11-19 12:00")
SATURDAY = at("2026-11-21 03:00")


@every_case(
    ("now", "due", "expected", "why"),
    [
        pytest.param(THURSDAY, at("2026-12-03 00:00"), SATURDAY, "opens at", id="next window"),
        pytest.param(SATURDAY, None, SATURDAY, "is open", id="on the minute it opens"),
        pytest.param(
            at("2026-11-21 04:59"), None, at("2026-11-21 04:59"), "is open", id="still open"
        ),
        pytest.param(
            at("2026-11-21 05:00"), None, at("2026-11-22 03:00"), "opens at", id="just closed"
        ),
        pytest.param(
            at("2026-11-22 05:00"), None, at("2026-11-28 03:00"), "opens at", id="a week away"
        ),
        pytest.param(
            THURSDAY, at("2026-11-20 12:00"), THURSDAY, "no maintenance window", id="none in time"
        ),
        pytest.param(THURSDAY, THURSDAY + HOUR, THURSDAY, "less than 2.0 h", id="too late"),
        pytest.param(THURSDAY, THURSDAY - HOUR, THURSDAY, "less than", id="overdue"),
        pytest.param(
            THURSDAY, SATURDAY + 2 * HOUR, SATURDAY, "opens at", id="just the margin is left"
        ),
        pytest.param(
            THURSDAY, SATURDAY + 2 * HOUR - 1, THURSDAY, "no maintenance", id="a second less"
        ),
    ],
)
def test_work_begins_in_the_window_or_at_once(
    now: float, due: float | None, expected: float, why: str
) -> None:
    start = start_of(due, now, WEEKEND, margin_seconds=2 * HOUR)
    assert start.at == expected
    assert why in start.reason


def test_a_window_over_midnight_is_open_on_both_sides_of_it() -> None:
    for now in (at("2026-11-19 23:45"), at("2026-11-20 01:29")):
        assert start_of(None, now, NIGHT, margin_seconds=0).at == now
    assert start_of(None, at("2026-11-20 01:30"), NIGHT, margin_seconds=0).at == at(
        "2026-11-20 23:30"
    )


def test_without_a_window_work_begins_at_once() -> None:
    assert start_of(THURSDAY * 2, THURSDAY, None, margin_seconds=HOUR).at == THURSDAY


windows = st.builds(
    Window,
    days=st.frozensets(st.sampled_from(DAYS), min_size=1),
    start_minute=st.integers(0, 1439),
    duration_minutes=st.integers(30, 1440),
)


@given(windows, st.floats(0, 2e9), st.none() | st.floats(0, 2e9), st.floats(0, 1e5))
def test_a_start_is_never_past_and_never_too_late(
    window: Window, now: float, due: float | None, margin: float
) -> None:
    start = start_of(due, now, window, margin_seconds=margin)
    assert start.at >= now
    assert start.at - now <= 8 * 86_400
    if due is not None:
        assert start.at <= max(now, due - margin)
    # Asked again at that moment, it begins then.
    assert start_of(due, start.at, window, margin_seconds=margin).at == start.at


@pytest.mark.parametrize(
    ("days", "start_minute", "minutes", "closed"),
    [
        ({"mon"}, 0, 1440, ((1440, 6 * 1440),)),
        (set(DAYS), 0, 1440, ()),
        ({"sun", "mon"}, 600, 1440, ((1440 + 600, 5 * 1440),)),
        ({"sun"}, 1439, 60, ((59, 7 * 1440 - 60),)),
    ],
    ids=["a day", "always", "two that touch", "over the week's end"],
)
def test_a_window_is_closed_for_the_rest_of_the_week(
    days: set[str], start_minute: int, minutes: int, closed: tuple[tuple[int, int], ...]
) -> None:
    window = Window(days=frozenset(days), start_minute=start_minute, duration_minutes=minutes)
    assert window.closed_spans() == closed
