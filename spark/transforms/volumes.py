"""Joins bill and samples per volume: what is paid for, and what of it is used.

A bill says GB-months, which AWS counts by the second of the calendar month: a day's share times
the month's days is the size. The largest of the last days is taken, since on its first and last
day a volume is billed for a part; quantities of performance are what is above gp3's included part.
"""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from core.cost.pricing import GP3_INCLUDED_IOPS, GP3_INCLUDED_MIB_PER_S
from core.volumes.speed import LEAST_SECONDS
from spark.transforms.classify import Component
from spark.transforms.counters import (
    BYTES_IN,
    INSTANCE_EXCEEDED,
    REPLICATION_IN,
    VOLUME_BYTES,
    VOLUME_EXCEEDED,
    VOLUME_OPS,
    VOLUME_USED,
    increases,
    of_all_topics,
)

# Days looked at for a size; three of them hold a whole one.
LAST_DAYS = 3
SNAPSHOT = "snapshot"
P999 = 0.999


class Finding(StrEnum):
    """What is to be said of a volume, the dearest kind of waste first."""

    ORPHAN = "attached to nothing"
    ORPHAN_SNAPSHOT = "snapshot of a volume that is gone"
    MOVE_TO_GP3 = "move to gp3"
    SMALLER = "larger than needed"
    SLOWER = "faster than needed"
    LARGER = "too small"
    FASTER = "too slow"
    INSTANCE = "held back by its instance"
    FITS = "fits"
    NOT_MEASURED = "not measured"


# EBS:VolumeUsage.gp2; io1 is `piops`, and magnetic has no ending.
_STORAGE = r"^EBS:VolumeUsage(?:\.(\w+))?$"
_IOPS = r"^EBS:VolumeP-IOPS"
_THROUGHPUT = r"^EBS:VolumeP-Throughput"
_SNAPSHOT = r"^EBS:SnapshotUsage"


def billed_volumes(usage: DataFrame) -> DataFrame:
    """Return one row per volume and snapshot of a bill, with what it is and what it costs."""
    meters = usage.where(F.col("resource_id").isNotNull()).withColumns(
        {
            "kind": _kind(),
            "is_storage": _is(_STORAGE, Component.GP3_STORAGE) | _usage().rlike(_SNAPSHOT),
            "is_iops": _is(_IOPS, Component.GP3_IOPS),
            "is_throughput": _is(_THROUGHPUT, Component.GP3_THROUGHPUT),
        }
    )
    relevant = meters.where("is_storage or is_iops or is_throughput")
    per_day = relevant.groupBy("resource_id", "day", "billing_period").agg(
        F.max(F.when(F.col("is_storage"), F.col("kind"))).alias("kind"),
        *(F.max(name).alias(name) for name in ("cluster", "owner", "node_id", "zone")),
        *(_quantity(name).alias(name) for name in ("storage", "iops", "throughput")),
        F.sum(F.when(F.col("is_storage"), F.col("billed_cost"))).alias("storage_cost"),
        F.sum(F.when(F.col("is_iops"), F.col("billed_cost"))).alias("iops_cost"),
        F.sum("billed_cost").alias("cost"),
    )
    latest = Window.partitionBy("resource_id").orderBy(F.col("day").desc())
    recent = F.row_number().over(latest) <= LAST_DAYS
    numbered = per_day.withColumn("recent", recent)
    return (
        numbered.groupBy("resource_id")
        .agg(
            F.max("billing_period").alias("billing_period"),
            *(F.max(name).alias(name) for name in ("kind", "cluster", "owner", "node_id", "zone")),
            F.count_distinct("day").alias("days"),
            F.max("day").alias("last_day"),
            _provisioned_figure("storage").alias("size_gib"),
            _provisioned_figure("iops").alias("billed_iops"),
            _provisioned_figure("throughput").alias("billed_gib_per_s"),
            _price("storage").alias("gib_month_price"),
            _price("iops").alias("iops_month_price"),
            F.sum("cost").alias("billed_cost"),
        )
        .where(F.col("kind").isNotNull())
    )


def _price(name: str) -> Column:
    return F.try_divide(F.sum(f"{name}_cost"), F.sum(name)).cast("double")


def _usage() -> Column:
    return F.coalesce("usage_type", F.lit(""))


def _is(pattern: str, component: Component) -> Column:
    return _usage().rlike(pattern) | (
        F.col("usage_type").isNull() & (F.col("component") == component.value)
    )


def _kind() -> Column:
    """Return the volume's type: of a usage type its ending; FOCUS says gp3 by the component."""
    ending = F.regexp_extract(_usage(), _STORAGE, 1)
    return (
        F.when(_usage().rlike(_SNAPSHOT), SNAPSHOT)
        .when(ending == "piops", "io1")
        .when(_usage().rlike(_STORAGE), F.when(ending == "", "standard").otherwise(ending))
        .when(F.col("component") == Component.GP3_STORAGE.value, "gp3")
    )


def _quantity(name: str) -> Column:
    return F.sum(F.when(F.col(f"is_{name}"), F.col("quantity"))).cast("double")


def _provisioned_figure(name: str) -> Column:
    """Return what was provisioned on the fullest of the last days; a day is 1/28 to 1/31 month."""
    of_day = F.col(name) * F.dayofmonth(F.last_day("day"))
    return F.max(F.when(F.col("recent"), of_day))


def used_by_node(samples: DataFrame) -> DataFrame:
    """Return what each Kafka node's claims hold, how fast that grows, and what it takes in."""
    fill = samples.where(F.col("name") == VOLUME_USED)
    daily = fill.groupBy("pool", "node_id", F.to_date("at").alias("day"), "claim").agg(
        F.max_by("value", "at").alias("value"), F.max("at").alias("at")
    )
    of_node = daily.groupBy("pool", "node_id", "day").agg(
        F.sum("value").alias("value"), F.count_distinct("claim").alias("claims")
    )
    day_number = F.unix_date("day")
    used = of_node.groupBy("pool", "node_id").agg(
        F.max_by("value", "day").cast("long").alias("used_bytes"),
        F.coalesce(F.regr_slope("value", day_number), F.lit(0.0)).alias("growth_bytes_per_day"),
        F.max("day").alias("seen_on"),
    )
    appended = (
        samples.transform(lambda frame: of_all_topics(frame, BYTES_IN, REPLICATION_IN))
        .transform(increases)
        .groupBy("node_id", F.to_date("at").alias("day"))
        .agg(
            (
                F.sum("increase") / F.sum(F.when(F.col("name") == REPLICATION_IN, F.col("seconds")))
            ).alias("rate")
        )
        .groupBy("node_id")
        .agg(F.max("rate").alias("append_bytes_per_s"))
    )
    return used.join(appended, "node_id", "left").withColumnRenamed("pool", "owner")


def load_by_volume(samples: DataFrame) -> DataFrame:
    """Return the 99.9th percentile of each volume's rates, and its worst hour beyond a limit."""
    counted = samples.where(
        F.col("volume_id").isNotNull()
        & F.col("name").isin(*VOLUME_OPS, *VOLUME_BYTES, *VOLUME_EXCEEDED, *INSTANCE_EXCEEDED)
    ).transform(increases)
    rate = F.col("increase") / F.col("seconds")
    at_once = counted.groupBy("volume_id", "at").agg(
        F.sum(F.when(F.col("name").isin(*VOLUME_OPS), rate)).alias("iops"),
        F.sum(F.when(F.col("name").isin(*VOLUME_BYTES), rate)).alias("bytes_per_s"),
        F.max("seconds").alias("seconds"),
        _exceeded_share(VOLUME_EXCEEDED, rate).alias("volume_exceeded"),
        _exceeded_share(INSTANCE_EXCEEDED, rate).alias("instance_exceeded"),
    )
    rates = at_once.groupBy(F.col("volume_id").alias("resource_id")).agg(
        F.percentile("iops", P999).alias("iops_p999"),
        F.percentile("bytes_per_s", P999).alias("throughput_p999_bytes_per_s"),
    )
    hours = at_once.groupBy("volume_id", F.date_trunc("hour", "at").alias("hour")).agg(
        _share_of_hour("volume_exceeded"), _share_of_hour("instance_exceeded")
    )
    worst = hours.groupBy(F.col("volume_id").alias("resource_id")).agg(
        F.max("volume_exceeded").alias("volume_exceeded_share"),
        F.max("instance_exceeded").alias("instance_exceeded_share"),
    )
    return rates.join(worst, "resource_id")


def _exceeded_share(names: tuple[str, str], rate: Column) -> Column:
    """Return the share of a moment in which either limit was exceeded; both must be measured."""
    of_each = [F.max(F.when(F.col("name") == name, rate)) for name in names]
    both = of_each[0].isNotNull() & of_each[1].isNotNull()
    return F.when(both, F.least(F.greatest(*of_each), F.lit(1.0)))


def _share_of_hour(name: str) -> Column:
    """Return the share of an hour's measured time; a few minutes are not a whole one."""
    measured = F.sum(F.when(F.col(name).isNotNull(), F.col("seconds")))
    exceeded = F.sum(F.col(name) * F.col("seconds"))
    return (exceeded / F.greatest(measured, F.lit(LEAST_SECONDS))).alias(name)


def performance(row_iops: float | None, row_gib_per_s: float | None) -> tuple[int, int]:
    """Return the provisioned IOPS and MiB/s of a gp3 volume by what was billed above the included.

    The bill counts throughput in GiB/s although its text says MiBps.
    """
    return (
        GP3_INCLUDED_IOPS + round(row_iops or 0),
        GP3_INCLUDED_MIB_PER_S + round((row_gib_per_s or 0) * 1024),
    )
