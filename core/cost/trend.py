"""A straight line through the past, and how far the future may lie beside it.

Least squares with a prediction interval (Student's t), which is what a handful of days or months
carry honestly; `backtest` says how well it would have done on the days that are known. The unit job
and the report ask here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

# Fewer leave no room to judge the scatter by.
FEWEST_POINTS = 5
CONFIDENCE = 0.8


@dataclass(frozen=True, slots=True)
class Forecast:
    """A value expected at one x, with the interval that holds it as often as CONFIDENCE says."""

    expected: float
    low: float
    high: float
    slope: float  # per unit of x
    points: int


@dataclass(frozen=True, slots=True)
class Backtest:
    """How forecasts one step ahead did: mean absolute error as a share, hits of the interval."""

    forecasts: int
    mape: float
    coverage: float


def forecast(points: Sequence[tuple[float, float]], at: float) -> Forecast | None:
    """Return what is expected at `at`, or None of too few points or of one x alone."""
    n = len(points)
    xs, ys = [x for x, _ in points], [y for _, y in points]
    if n < FEWEST_POINTS or min(xs) == max(xs):
        return None
    mean_x, mean_y = fmean(xs), fmean(ys)
    spread = math.fsum((x - mean_x) ** 2 for x in xs)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    residuals = math.fsum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    freedom = n - 2
    deviation = math.sqrt(residuals / freedom * (1 + 1 / n + (at - mean_x) ** 2 / spread))
    expected = mean_y + slope * (at - mean_x)
    half = student_t(CONFIDENCE, freedom) * deviation
    return Forecast(expected, expected - half, expected + half, slope, n)


def backtest(points: Sequence[tuple[float, float]]) -> Backtest | None:
    """Return how the rule would have foretold each known point from those before it."""
    ordered = sorted(points)
    errors, hits = [], 0
    for index in range(FEWEST_POINTS, len(ordered)):
        x, y = ordered[index]
        told = forecast(ordered[:index], x)
        if told is None or not y:
            continue
        errors.append(abs(told.expected - y) / abs(y))
        hits += told.low <= y <= told.high
    return Backtest(len(errors), fmean(errors), hits / len(errors)) if errors else None


def student_t(confidence: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t.

    Abramowitz and Stegun 26.7.5; within 1 % of the tables for 80 % and 3 degrees of freedom or
    more, which FEWEST_POINTS grants.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
