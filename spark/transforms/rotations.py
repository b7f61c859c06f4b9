"""Reads rotations from the samples: how long the broker was away, and how it came back.

The stop and the return are read from the broker's own counters, which begin again; that it is in
every ISR again from the partitions that the other brokers lead and call under-replicated. Every
time is known to one step of the samples, so `resolution_seconds` goes along.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.frames import first_of
from spark.transforms.counters import (
    BYTES_IN,
    LOG_SIZE,
    REPLICATION_IN,
    UNDER_REPLICATED,
    increases,
    of_all_topics,
    seconds_between,
)

# Samples that must agree before a broker counts as back: one may lie between two shrinks.
AGREEING = 2
BEFORE_SECONDS = 900
AFTER_SECONDS = 1800


def measured_rotations(rotations: DataFrame, samples: DataFrame) -> DataFrame:
    """Return one row per rotation: its columns, and what was measured, null where nothing was."""
    windows = rotations.withColumns(
        {
            "from": _shifted_moment(F.coalesce("opened_at", "closed_at"), -BEFORE_SECONDS),
            "to": _shifted_moment(F.coalesce("closed_at", "opened_at"), AFTER_SECONDS),
        }
    )
    own = _of_the_broker(windows, samples)
    restarts = own.transform(_restarts)
    returns = _returns(restarts, samples)
    flows = own.join(returns, "incident").transform(_flows)
    held = _held_bytes(restarts, samples)
    return (
        rotations.join(returns, "incident", "left")
        .join(flows, "incident", "left")
        .join(held, "incident", "left")
    )


def _of_the_broker(windows: DataFrame, samples: DataFrame) -> DataFrame:
    """Return the increases of a rotated broker's own counters, within its rotation's window."""
    counted = samples.transform(
        lambda frame: of_all_topics(frame, BYTES_IN, REPLICATION_IN)
    ).transform(increases)
    keys = windows.select("incident", "cluster", "node_id", "opened_at", "from", "to")
    return counted.join(keys, ["cluster", "node_id"]).where(
        F.col("at").between(F.col("from"), F.col("to"))
    )


def _restarts(own: DataFrame) -> DataFrame:
    """Return the interval in which the broker was away: where a counter begins again."""
    step = F.median("seconds").over(Window.partitionBy("incident"))
    counted = own.where(F.col("name") == REPLICATION_IN).withColumn("step", step)
    likeliest = first_of(
        counted.where(F.col("at") >= F.col("opened_at")),
        ["incident"],
        *(F.col("began_again").desc(), F.col("seconds").desc(), "at"),
    )
    return likeliest.where("began_again").select(
        *("incident", "cluster", "node_id", "to"),
        F.col("since").alias("last_seen_at"),
        F.col("at").alias("returned_at"),
        "step",
    )


def _returns(restarts: DataFrame, samples: DataFrame) -> DataFrame:
    """Add when the broker was back in every ISR, as the leaders of its partitions say."""
    short = samples.where(F.col("name") == UNDER_REPLICATED).select(
        "cluster", F.col("node_id").alias("leader"), "at", "value"
    )
    others = (
        short.join(restarts, "cluster")
        .where((F.col("leader") != F.col("node_id")) & (F.col("at") <= F.col("to")))
        .groupBy("incident", "last_seen_at", "returned_at", "step", "at")
        .agg(F.sum("value").alias("short"))
    )
    order = Window.partitionBy("incident").orderBy("at")
    before = F.when(F.col("at") <= F.col("last_seen_at"), F.col("short"))
    # What was short before the rotation is somebody else's.
    usual = F.coalesce(F.last(before, ignorenulls=True).over(order), F.lit(0))
    next_ones = Window.partitionBy("incident").orderBy("at").rowsBetween(0, AGREEING - 1)
    agreed = (F.max("short").over(next_ones) <= F.col("usual")) & (
        F.count("short").over(next_ones) == AGREEING
    )
    well = others.withColumn("usual", usual).withColumn("well", agreed)
    back = (
        well.where(F.col("well") & (F.col("at") >= F.col("returned_at")))
        .groupBy("incident")
        .agg(F.min("at").alias("in_sync_at"))
    )
    away = seconds_between(F.col("last_seen_at"), F.col("returned_at")) - F.col("step")
    return (
        restarts.join(back, "incident", "left")
        .withColumns(
            {
                # The stop lies within a step after the last sample, the start within one before the
                # first: on average half of each.
                "down_seconds": F.greatest(away, F.lit(0.0)),
                "catch_up_seconds": seconds_between(F.col("returned_at"), F.col("in_sync_at"))
                + F.col("step") / 2,
                "resolution_seconds": F.col("step"),
            }
        )
        .drop("cluster", "node_id", "to", "step")
    )


def _flows(own: DataFrame) -> DataFrame:
    """Sum what came in before the stop, and what replication brought until all was in sync."""
    is_before = F.col("at") <= F.col("last_seen_at")
    is_replication = F.col("name") == REPLICATION_IN
    is_catch_up = (
        is_replication
        & (F.col("at") > F.col("last_seen_at"))
        & (F.col("at") <= F.col("in_sync_at"))
    )
    return own.groupBy("incident").agg(
        (
            F.sum(F.when(is_before, F.col("increase")))
            / F.sum(F.when(is_before & is_replication, F.col("seconds")))
        ).alias("append_bytes_per_s"),
        F.sum(F.when(is_catch_up, F.col("increase"))).cast("long").alias("moved_bytes"),
    )


def _held_bytes(restarts: DataFrame, samples: DataFrame) -> DataFrame:
    """Return what the broker held when it was last seen."""
    sizes = samples.where(F.col("name") == LOG_SIZE).select(
        "cluster", "node_id", "at", "series", "value"
    )
    seen = restarts.select("incident", "cluster", "node_id", "last_seen_at")
    since = _shifted_moment(F.col("last_seen_at"), -BEFORE_SECONDS)
    near = sizes.join(seen, ["cluster", "node_id"]).where(
        F.col("at").between(since, F.col("last_seen_at"))
    )
    latest = first_of(near, ["incident", "series"], F.col("at").desc())
    return latest.groupBy("incident").agg(F.sum("value").cast("long").alias("held_bytes"))


def _shifted_moment(moment: Column, seconds: int) -> Column:
    return F.timestamp_micros(F.unix_micros(moment) + F.lit(seconds * 1_000_000))
