"""Forecasts what a cluster costs next month, from the days that are complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from core.cost.trend import Backtest, Forecast, backtest
from core.cost.trend import forecast as of_points
from spark.report.evidence import Found

DAYS_AHEAD = 30


@dataclass(frozen=True, slots=True)
class MonthAhead:
    """What a cluster should cost in the thirty days after the last complete one."""

    cluster: str
    last_day: date
    expected: float
    low: float
    high: float
    per_day: Forecast
    past: Backtest | None


def month_ahead(rows: Sequence[Found]) -> MonthAhead | None:
    """Return one cluster's forecast from its complete days, or None of too few.

    Days scatter on their own, so the interval of a sum of days is that of the mean day: the line's,
    at the middle of the days ahead, times their number.
    """
    points = points_of(rows, "cost")
    if not points:
        return None
    last = max(x for x, _ in points)
    told = of_points(points, last + DAYS_AHEAD / 2)
    if told is None:
        return None
    return MonthAhead(
        cluster=rows[0].cluster,
        last_day=date.fromordinal(round(last)),
        expected=told.expected * DAYS_AHEAD,
        low=max(0.0, told.low * DAYS_AHEAD),
        high=told.high * DAYS_AHEAD,
        per_day=told,
        past=backtest(points),
    )


def points_of(rows: Sequence[Found], column: str) -> list[tuple[float, float]]:
    """Return a column of the complete days, by day number."""
    return [
        (float(row.day.toordinal()), float(row[column]))
        for row in rows
        if row.complete and row[column] is not None
    ]
