"""The straight line and its interval, against the standard library and against Student's tables."""

from __future__ import annotations

import random
from statistics import linear_regression

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cost.economics import FEWEST_POINTS, backtest, forecast, student_t


def test_a_straight_line_goes_on_and_leaves_no_doubt() -> None:
    told = forecast([(x, 2.0 * x + 1) for x in range(6)], 10)
    assert told is not None
    assert (told.expected, told.slope) == (pytest.approx(21), pytest.approx(2))
    assert told.high - told.low == pytest.approx(0, abs=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=FEWEST_POINTS, max_size=60), st.floats(-50, 100))
def test_the_line_is_that_of_least_squares(values: list[float], at: float) -> None:
    points = list(enumerate(values))
    told = forecast(points, at)
    line = linear_regression([x for x, _ in points], values)
    assert told is not None
    expected = line.intercept + line.slope * at
    assert told.expected == pytest.approx(expected, rel=1e-6, abs=1e-3)
    assert told.low <= told.expected <= told.high


def test_too_few_points_or_a_single_day_foretell_nothing() -> None:
    assert forecast([(x, 1.0) for x in range(FEWEST_POINTS - 1)], 9) is None
    assert forecast([(1, 1.0)] * 9, 9) is None


def test_the_interval_holds_what_follows_as_often_as_it_says() -> None:
    chance = random.Random(7)  # noqa: S311 - a test's own series
    hits = 0
    for _ in range(2000):
        points = [(x, 100 + 3 * x + chance.gauss(0, 5)) for x in range(12)]
        told = forecast(points[:-1], 11)
        assert told is not None
        hits += told.low <= points[-1][1] <= told.high
    assert hits / 2000 == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("confidence", "freedom", "table"),
    [(0.8, 3, 1.638), (0.8, 10, 1.372), (0.9, 5, 2.015), (0.95, 30, 2.042)],
)
def test_students_quantiles_are_those_of_the_tables(
    confidence: float, freedom: int, table: float
) -> None:
    assert student_t(confidence, freedom) == pytest.approx(table, rel=0.01)


def test_a_backtest_counts_misses_and_hits() -> None:
    steady = backtest([(x, 50.0) for x in range(10)])
    assert steady is not None
    assert (steady.forecasts, steady.mape, steady.coverage) == (5, 0, 1)
    jump = backtest([*((x, 50.0) for x in range(9)), (9, 100.0)])
    assert jump is not None
    assert jump.mape == pytest.approx(0.1)
    assert jump.coverage == pytest.approx(0.8)
    assert backtest([(0, 1.0)]) is None
