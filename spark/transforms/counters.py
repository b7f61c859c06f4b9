"""Turns counters into increases from one sample to the next, restarts included.

A counter that is lower than before has begun again at 0, so what it shows is what it counted since:
nothing is lost but what came between the last sample and the stop.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.expressions import surely

BYTES_IN = "kafka_server_brokertopicmetrics_bytesinpersec"
BYTES_OUT = "kafka_server_brokertopicmetrics_bytesoutpersec"
REPLICATION_IN = "kafka_server_brokertopicmetrics_replicationbytesinpersec"
UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
PARTITIONS = "kafka_server_replicamanager_partitioncount"
LOG_SIZE = "kafka_log_log_size"
VOLUME_USED = "kubelet_volume_stats_used_bytes"
VOLUME_OPS = ("aws_ebs_csi_read_ops", "aws_ebs_csi_write_ops")
# Seconds in which more was asked than the volume gives, and than its instance does.
VOLUME_EXCEEDED = ("aws_ebs_csi_exceeded_iops_seconds", "aws_ebs_csi_exceeded_tp_seconds")
INSTANCE_EXCEEDED = ("aws_ebs_csi_ec2_exceeded_iops_seconds", "aws_ebs_csi_ec2_exceeded_tp_seconds")
VOLUME_BYTES = ("aws_ebs_csi_read_bytes", "aws_ebs_csi_write_bytes")


def increases(samples: DataFrame) -> DataFrame:
    """Add `since`, `seconds`, `increase` and `began_again`; a series' first sample has none."""
    before = Window.partitionBy("name", "series").orderBy("at")
    previous = F.lag("value").over(before)
    began_again = F.col("value") < previous
    return (
        samples.withColumns(
            {
                "since": F.lag("at").over(before),
                "began_again": surely(began_again),
                "increase": F.when(began_again, F.col("value")).otherwise(
                    F.col("value") - previous
                ),
            }
        )
        .withColumn("seconds", seconds_between(F.col("since"), F.col("at")))
        .where(F.col("since").isNotNull())
    )


def of_all_topics(samples: DataFrame, *names: str) -> DataFrame:
    """Return a broker's own counters; Kafka keeps one per topic beside them."""
    return samples.where(F.col("name").isin(*names) & F.col("topic").isNull())


def seconds_between(start: Column, end: Column) -> Column:
    return (F.unix_micros(end) - F.unix_micros(start)) / F.lit(1e6)
