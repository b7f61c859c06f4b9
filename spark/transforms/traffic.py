"""What a cluster's brokers took in and gave out on each day: for the transfer and unit jobs."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.schemas import TRAFFIC, require_schema
from spark.transforms.counters import BYTES_IN, BYTES_OUT, REPLICATION_IN, increases, of_all_topics


def traffic(samples: DataFrame, zones: int) -> DataFrame:
    """Turn SAMPLES into TRAFFIC; what fell between two days counts on the later."""
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
                "rack_aware_consumers": F.lit(None).cast("string"),
            }
        )
    )
    return require_schema(found, TRAFFIC, "The traffic of the brokers")


def _sum_of(name: str) -> Column:
    counted = F.sum(F.when(F.col("name") == name, F.col("increase")))
    return F.coalesce(counted, F.lit(0)).cast("long")
