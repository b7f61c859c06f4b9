"""Divides a cluster's daily cost by what it did on that day: the unit costs.

Cost is net and amortised, so that a discount or a commitment counts and a month's worth of it is
not paid on one day. What no provider of computing sold (taxes, credits, Marketplace, support) has
no cluster and is not in it. Units that were not measured are null, never 0.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.cost.pricing import BYTES_PER_GIB
from spark.schemas import MONEY
from spark.transforms.counters import LOG_SIZE, PARTITIONS


def daily_cost(cost: DataFrame) -> DataFrame:
    """Return what each cluster cost on each day, from the COST table."""
    return (
        cost.where(F.col("cluster").isNotNull() & F.col("day").isNotNull())
        .groupBy("billing_period", "day", "cluster")
        .agg(F.sum("net_cost").cast(MONEY).alias("cost"))
    )


def daily_size(samples: DataFrame) -> DataFrame:
    """Return what each cluster held on each day: GiB, replicas and brokers, averaged over it."""
    at_once = (
        samples.where(F.col("name").isin(LOG_SIZE, PARTITIONS))
        .groupBy("cluster", "at")
        .agg(
            F.sum(F.when(F.col("name") == LOG_SIZE, F.col("value"))).alias("bytes"),
            F.sum(F.when(F.col("name") == PARTITIONS, F.col("value"))).alias("partitions"),
            F.count_distinct(F.when(F.col("name") == PARTITIONS, F.col("node_id"))).alias(
                "brokers"
            ),
        )
    )
    return at_once.groupBy("cluster", F.to_date("at").alias("day")).agg(
        (F.avg("bytes") / BYTES_PER_GIB).alias("retained_gib"),
        # The controllers' own topic is on no list of partitions; a broker that is away counts when
        # it is there.
        F.max("partitions").alias("partitions"),
        F.max("brokers").cast("int").alias("brokers"),
    )


def units(cost: DataFrame, traffic: DataFrame, size: DataFrame, last_complete: Column) -> DataFrame:
    """Join what was paid with what was done, and divide."""
    day_cost = F.col("cost").cast("double")
    month_cost = day_cost * F.dayofmonth(F.last_day("day"))
    joined = cost.join(
        traffic.select("day", "cluster", (F.col("produced_bytes") / BYTES_PER_GIB).alias("gib")),
        ["day", "cluster"],
        "left",
    ).join(size, ["day", "cluster"], "left")
    return joined.select(
        "billing_period",
        "day",
        "cluster",
        (F.col("day") <= last_complete).alias("complete"),
        "cost",
        F.col("gib").cast("double").alias("produced_gib"),
        "retained_gib",
        "partitions",
        "brokers",
        _per(day_cost, F.col("gib")).alias("cost_per_produced_gib"),
        _per(month_cost, F.col("retained_gib")).alias("cost_per_retained_gib_month"),
        _per(month_cost, F.col("partitions")).alias("cost_per_partition_month"),
        _per(month_cost, F.col("brokers")).alias("cost_per_broker_month"),
    )


def _per(cost: Column, units: Column) -> Column:
    return F.try_divide(cost, F.nullif(units.cast("double"), F.lit(0.0))).cast("double")
