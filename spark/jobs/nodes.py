"""The nodes job: what ran on Kafka's nodes, from split cost allocation data: the table NODE_SHARES.

Whether a month has split lines is asked of USAGE, a hundredth of the bill's size: for a bill
without them nothing of the bill is read again.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark import frames, tables
from spark.ingest.delivery import Delivery
from spark.schemas import MONEY, NODE_SHARES
from spark.tables import Store
from spark.transforms.classify import Component
from spark.transforms.node_shares import AMOUNTS, node_shares

# What a report lists, over all nodes and days.
LISTED = ("cluster", "kind", "namespace", "workload_type", "workload", "currency")


def run(
    session: SparkSession, store: Store, delivery: Delivery, periods: Collection[str]
) -> DataFrame:
    """Replace these delivered months of the node shares table and return the whole table."""
    usage = store.read(tables.USAGE).where(F.col("billing_period").isin(*periods))
    is_split = F.col("component") == Component.SPLIT.value
    splits = delivery.splits() if usage.where(is_split).head(1) else None
    there = store.read(tables.NODE_SHARES).where(F.col("billing_period").isin(*periods))
    if splits is not None:
        store.replace(tables.NODE_SHARES, node_shares(usage, splits.pods, splits.hours), periods)
    elif there.head(1):
        store.replace(tables.NODE_SHARES, frames.empty(session, NODE_SHARES), periods)
    return store.read(tables.NODE_SHARES)


def workload_totals(table: DataFrame) -> DataFrame:
    """Return what a report shows of some months: sums per workload, and of how many pods."""
    return table.groupBy(*LISTED).agg(
        F.countDistinct("pod").alias("pods"),
        F.countDistinct("instance_id").alias("nodes"),
        *(F.sum(name).cast(MONEY).alias(name) for name in AMOUNTS),
    )
