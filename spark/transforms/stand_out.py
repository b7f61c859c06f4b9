"""Which days stand out: far from the median of the days before, and worth the look.

Robust, since the days before may hold an outlier themselves: the median and the median absolute
deviation (times 1.4826, which makes it a standard deviation for a normal scatter) of the last two
weeks. A day must be far out, dear enough, and a visible share: one alone is noise.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.frames import first_of
from spark.schemas import MONEY
from spark.transforms.attribute import Attribution

DAYS_BEFORE = 14
FEWEST_BEFORE = 5
MOST_DEVIATIONS = 4.0
LEAST_SHARE = 0.2
LEAST_DOLLARS = 1.0
NORMAL = 1.4826
# A series that never moved has no scatter: a fiftieth of its median stands in for it.
LEAST_SCATTER = 0.02


def daily(cost: DataFrame) -> DataFrame:
    """Return what each component cost each cluster on each day; nothing is a 0, not a gap."""
    known = _kafkas(cost)
    paid = known.groupBy("day", "cluster", "component").agg(
        F.sum("net_cost").cast(MONEY).alias("cost")
    )
    days = known.select("day", "billing_period").groupBy("day").agg(F.max("billing_period"))
    every = days.withColumnRenamed("max(billing_period)", "billing_period").crossJoin(
        paid.select("cluster", "component").distinct()
    )
    nothing = F.lit(0).cast(MONEY)
    return every.join(paid, ["day", "cluster", "component"], "left").withColumn(
        "cost", F.coalesce("cost", nothing)
    )


def _kafkas(cost: DataFrame) -> DataFrame:
    """Return the charges known to be Kafka's: everybody else's days are not ours to explain."""
    is_kafkas = F.col("attribution") != Attribution.NOBODY.value
    return cost.where(F.col("day").isNotNull() & is_kafkas).withColumn(
        "cluster", F.coalesce("cluster", F.lit(""))
    )


def with_scores(series: DataFrame) -> DataFrame:
    """Add `usual`, `excess` and `score`; null until enough days came before."""
    before = (
        Window.partitionBy("cluster", "component")
        .orderBy("day")
        .rowsBetween(-DAYS_BEFORE, Window.currentRow - 1)
    )
    value = F.col("cost").cast("double")
    counted = series.withColumn("before", F.array_sort(F.collect_list(value).over(before)))
    with_median = counted.withColumn(
        "median", F.when(F.size("before") >= FEWEST_BEFORE, _median(F.col("before")))
    )
    deviations = F.array_sort(F.transform("before", lambda each: F.abs(each - F.col("median"))))
    scatter = F.greatest(
        _median(deviations) * NORMAL, F.abs(F.col("median")) * LEAST_SCATTER, F.lit(1e-9)
    )
    return with_median.withColumn("excess", value - F.col("median")).withColumn(
        "score", F.col("excess") / scatter
    )


def standing_out(cost: DataFrame, last_complete: Column) -> DataFrame:
    """Return the days that stand out: a few, or none."""
    days = daily(cost).where(F.col("day") <= last_complete).transform(with_scores)
    is_far = F.abs("score") >= MOST_DEVIATIONS
    is_dear = F.abs("excess") >= LEAST_DOLLARS
    is_visible = F.abs("excess") >= LEAST_SHARE * F.abs(F.col("median"))
    return days.where(is_far & is_dear & is_visible)


def with_causes(found: DataFrame, cost: DataFrame) -> DataFrame:
    """Add to days that stand out whose charges moved most."""
    return found.join(_moved_most(cost, found), ["day", "cluster", "component"], "left")


def _moved_most(cost: DataFrame, found: DataFrame) -> DataFrame:
    """Return the owner and zone whose charges of such a day are furthest from their own usual."""
    parts = (
        _kafkas(cost)
        .groupBy("day", "cluster", "component", "owner", "zone")
        .agg(F.sum("net_cost").cast("double").alias("part"))
    )
    outliers = found.select(
        F.col("day").alias("on"), "cluster", "component", "excess", F.size("before").alias("length")
    )
    earlier = (F.col("day") < F.col("on")) & (F.col("day") >= F.date_sub("on", DAYS_BEFORE))
    near = parts.join(outliers, ["cluster", "component"]).where(
        earlier | (F.col("day") == F.col("on"))
    )
    # A day without a charge of an owner counts as it does in the usual: it is a 0, not a gap.
    charged = F.collect_list(F.when(earlier, F.col("part")))
    gaps = F.array_repeat(F.lit(0.0), (F.col("length") - F.size(charged)).cast("int"))
    usual = _median(F.array_sort(F.concat(charged, gaps)))
    moved = near.groupBy("on", "cluster", "component", "excess", "length", "owner", "zone").agg(
        (
            F.coalesce(F.sum(F.when(F.col("day") == F.col("on"), F.col("part"))), F.lit(0.0))
            - usual
        ).alias("owner_excess")
    )
    # A fall is explained by what fell, a rise by what rose.
    same_way = F.col("owner_excess") * F.signum("excess")
    largest = first_of(moved, ["on", "cluster", "component"], *(same_way.desc(), "owner", "zone"))
    return largest.where(same_way > 0).drop("excess", "length").withColumnRenamed("on", "day")


def _median(ordered: Column) -> Column:
    """Return the median of an array that is in order."""
    size = F.size(ordered)
    # Of an empty array there is no element 0 to ask for.
    lower = F.try_element_at(ordered, F.greatest(F.floor((size + 1) / 2), F.lit(1)).cast("int"))
    upper = F.try_element_at(ordered, F.floor(size / 2 + 1).cast("int"))
    return (lower + upper) / 2
