"""Sums what a cluster's brokers took in and gave out each day: for the transfer and unit jobs."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.schemas import TRAFFIC, require_schema
from spark.transforms.counters import BYTES_IN, BYTES_OUT, REPLICATION_IN, increases, of_all_topics

# Of rack_aware_consumers.
RACK_AWARE, POSSIBLE, NOT_RACK_AWARE = "true", "possible", "false"


def traffic(samples: DataFrame, zones: int, *, follower_fetching: bool | None = None) -> DataFrame:
    """Turn SAMPLES into TRAFFIC; what fell between two days counts on the later.

    No counter of a broker tells bytes it served as a follower from those it served as a leader,
    and consumers alone know which replica they prefer: what the brokers allow is all there is.
    """
    allowed = {True: POSSIBLE, False: NOT_RACK_AWARE, None: None}[follower_fetching]
    counted = samples.transform(
        lambda frame: of_all_topics(frame, BYTES_IN, BYTES_OUT, REPLICATION_IN)
    ).transform(increases)
    found = (
        counted.groupBy(F.to_date("at").alias("day"), "cluster")
        .agg(
            _sum_of(BYTES_IN).alias("produced_bytes"),
            _sum_of(REPLICATION_IN).alias("replicated_bytes"),
            _sum_of(BYTES_OUT).alias("consumed_bytes"),
        )
        .withColumns(
            {
                "zones": F.lit(zones),
                "rack_aware_consumers": F.lit(allowed).cast("string"),
            }
        )
    )
    return require_schema(found, TRAFFIC, "The traffic of the brokers")


def _sum_of(name: str) -> Column:
    counted = F.sum(F.when(F.col("name") == name, F.col("increase")))
    return F.coalesce(counted, F.lit(0)).cast("long")
