"""The unit job: what a GiB produced, a GiB kept for a month, a partition and a broker cost.

    cost + traffic + samples -> guard -> units -> guard -> table

A day counts as complete once a later one is on the bill: AWS bills with a day's delay, and half a
day would look like a cheap one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from core.cost.trend import Backtest, Forecast, backtest
from core.cost.trend import forecast as of_points
from spark.findings import SAMPLES, UNIT
from spark.schemas import COST, TRAFFIC, require_schema
from spark.transforms import unit


@dataclass(frozen=True, slots=True)
class MonthAhead:
    """What a cluster should cost in the thirty days after the last complete one."""

    cluster: str
    expected: float
    low: float
    high: float
    per_day: Forecast
    past: Backtest | None


DAYS_AHEAD = 30


def run(cost: DataFrame, traffic: DataFrame, samples: DataFrame) -> DataFrame:
    """Return the UNIT table: a row per cluster and day."""
    paid = require_schema(cost, COST, "The unit job's cost")
    moved = require_schema(traffic, TRAFFIC, "The unit job's traffic")
    held = require_schema(samples, SAMPLES, "The unit job's samples").transform(unit.daily_size)
    last = paid.agg(F.date_sub(F.max("day"), 1)).head()
    last_complete = F.lit(last[0] if last else None).cast("date")
    found = unit.units(paid.transform(unit.daily_cost), moved, held, last_complete)
    return require_schema(found, UNIT, "The unit table")


def month_ahead(rows: Sequence[Row]) -> MonthAhead | None:
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
        expected=told.expected * DAYS_AHEAD,
        low=max(0.0, told.low * DAYS_AHEAD),
        high=told.high * DAYS_AHEAD,
        per_day=told,
        past=backtest(points),
    )


def points_of(rows: Sequence[Row], column: str) -> list[tuple[float, float]]:
    """Return a column of the complete days, by day number."""
    return [
        (float(row.day.toordinal()), float(row[column]))
        for row in rows
        if row.complete and row[column] is not None
    ]


def day_of(point: tuple[float, float]) -> date:
    return date.fromordinal(int(point[0]))
