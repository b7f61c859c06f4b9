"""Control totals: what a month's delivered files hold, summed before any transform touched them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.cost.pricing import total
from spark import money
from spark.tables import UNKNOWN_PERIOD


@dataclass(frozen=True, slots=True)
class Control:
    """Lines, how many of them have no cost that can be added up, and what the others come to."""

    lines: int
    lines_without_cost: int
    billed: Decimal

    def __add__(self, other: Control) -> Control:
        return Control(
            self.lines + other.lines,
            self.lines_without_cost + other.lines_without_cost,
            total([self.billed, other.billed]),
        )


def control_of(*costs: DataFrame) -> dict[str, Control]:
    """Sum frames of `billing_period` and `cost`, one row per delivered line, by month."""
    named = {"cost": "total"}
    months = [
        part.groupBy(known_period().alias("billing_period")).agg(
            F.count("*").alias("lines"),
            F.count("cost").alias("with_cost"),
            *money.sums(part, named),
        )
        for part in costs
    ]
    apart = reduce(DataFrame.unionByName, months)
    summed_costs = apart.groupBy("billing_period").agg(
        F.sum("lines").alias("lines"),
        F.sum("with_cost").alias("with_cost"),
        *money.summed_parts(apart, named.values()),
    )
    totals = money.total_columns(summed_costs, named)
    rows = summed_costs.select(
        "billing_period", "lines", "with_cost", totals["total"].alias("total")
    )
    return {
        row.billing_period: Control(row.lines, row.lines - row.with_cost, row.total)
        for row in sorted(rows.collect(), key=lambda row: str(row.billing_period))
    }


def known_period(period: Column | None = None) -> Column:
    """Return a line's month, or the one of lines whose month cannot be read."""
    named = F.col("billing_period") if period is None else period
    return F.coalesce(named, F.lit(UNKNOWN_PERIOD)).alias("billing_period")
