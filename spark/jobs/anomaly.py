"""The anomaly job: days that stand out, and why.

    cost -> guard -> standing_out, and where there are any: + rotations -> why -> guard -> table

Complete days only: the last day of a bill is half of one (spark.months). The reason names the
component, whose charges moved most, and what of ours happened that day.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.findings import ANOMALIES, ROTATIONS
from spark.schemas import COST, MONEY, require_schema
from spark.transforms import stand_out
from spark.transforms.daily import is_of_its_month


def standing_out(cost: DataFrame, last_complete: date | None) -> DataFrame:
    """Return the days that stand out of every cluster on the bill; of few bills there are any."""
    return stand_out.standing_out(_of_months(cost), F.lit(last_complete).cast("date"))


def run(found: DataFrame, cost: DataFrame, rotations: DataFrame) -> DataFrame:
    """Return the ANOMALIES table: days that stand out, and why."""
    history = require_schema(rotations, ROTATIONS, "The anomaly job's history")
    found = stand_out.with_causes(found, _of_months(cost))
    table = found.join(_rotations_by_day(history), ["day", "cluster"], "left").select(
        "billing_period",
        "day",
        F.nullif("cluster", F.lit("")).alias("cluster"),
        "component",
        "cost",
        F.col("median").cast(MONEY).alias("usual"),
        F.col("excess").cast(MONEY).alias("excess"),
        "score",
        "owner",
        "zone",
        F.col("owner_excess").cast(MONEY).alias("owner_excess"),
        F.coalesce("rotations", F.lit(0)).cast("int").alias("rotations"),
        _why().alias("reason"),
    )
    return require_schema(table, ANOMALIES, "The anomalies table")


def _of_months(cost: DataFrame) -> DataFrame:
    return require_schema(cost, COST, "The anomaly job's cost").where(is_of_its_month())


def _rotations_by_day(history: DataFrame) -> DataFrame:
    """Return how many rotations touched a day: those of it and of the one before."""
    ended = history.select("cluster", "incident", F.to_date("closed_at").alias("ended_on"))
    days = ended.select(
        "cluster",
        "incident",
        F.explode(F.array("ended_on", F.date_add("ended_on", 1))).alias("day"),
    )
    return days.groupBy("cluster", "day").agg(F.count_distinct("incident").alias("rotations"))


def _why() -> Column:
    """Say what is known of the reason."""
    whose = F.concat(F.lit("of "), "owner")
    where = F.when(F.col("zone").isNotNull(), F.concat(F.lit(" in "), "zone")).otherwise("")
    share = F.round(100 * F.try_divide(F.col("owner_excess"), F.col("excess")))
    most = F.concat(
        F.lit("charges "),
        whose,
        where,
        F.lit(" account for "),
        F.greatest(F.lit(0), F.least(F.lit(100), share)).cast("int").cast("string"),
        F.lit(" % of it"),
    )
    nothing = F.lit("the charges that moved are spread over many")
    rotated = F.when(
        F.coalesce("rotations", F.lit(0)) > 0,
        F.concat(
            F.lit("; "),
            F.col("rotations").cast("string"),
            F.when(F.col("rotations") == 1, " rotation").otherwise(" rotations"),
            F.lit(" on that day or the one before"),
        ),
    ).otherwise(F.lit(""))
    return F.concat(F.coalesce(most, nothing), rotated)
