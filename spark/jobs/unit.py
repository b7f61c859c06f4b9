"""The unit job: what a GiB produced, a GiB kept for a month, a partition and a broker cost.

    cost + traffic + samples -> guard -> units -> guard -> table

A day counts as complete once a later one is on the bill, or its month is final: AWS bills with a
day's delay, and half a day would look like a cheap one.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.findings import SAMPLES, UNIT
from spark.schemas import COST, TRAFFIC, require_schema
from spark.transforms import unit
from spark.transforms.daily import is_of_its_month


def run(
    cost: DataFrame, traffic: DataFrame, samples: DataFrame, last_complete: date | None
) -> DataFrame:
    """Return the UNIT table: a row per cluster and day."""
    paid = require_schema(cost, COST, "The unit job's cost").where(is_of_its_month())
    moved = require_schema(traffic, TRAFFIC, "The unit job's traffic")
    held = require_schema(samples, SAMPLES, "The unit job's samples").transform(unit.daily_size)
    last = F.lit(last_complete).cast("date")
    found = unit.units(paid.transform(unit.daily_cost), moved, held, last)
    return require_schema(found, UNIT, "The unit table")
