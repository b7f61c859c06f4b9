"""The transfer job: USAGE, and what the brokers' counters say, become the TRANSFER table."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark import frames, tables
from spark.schemas import TRAFFIC, USAGE, require_schema
from spark.tables import Store
from spark.transforms.transfer import by_flow, transfer_costs


def run(
    session: SparkSession,
    store: Store,
    periods: Collection[str],
    *,
    traffic: DataFrame | None = None,
) -> DataFrame:
    """Replace these months of the transfer table and return the whole table.

    Without `traffic` (TRAFFIC, from metrics) bytes between zones are of a flow that is not known.
    """
    usage = store.read(tables.USAGE).where(F.col("billing_period").isin(*periods))
    counters = frames.empty(session, TRAFFIC) if traffic is None else traffic
    store.replace(tables.TRANSFER, transfer_table(usage, counters), periods)
    return store.read(tables.TRANSFER)


def not_explained(usage: DataFrame) -> DataFrame:
    """Turn USAGE into the TRANSFER table of a month without counters."""
    return transfer_table(usage, frames.empty(usage.sparkSession, TRAFFIC))


def transfer_table(usage: DataFrame, traffic: DataFrame) -> DataFrame:
    """Turn USAGE and TRAFFIC into the TRANSFER table."""
    known = require_schema(traffic, TRAFFIC, "The transfer job's counters")
    return by_flow(transfer_costs(require_schema(usage, USAGE, "The transfer job's input")), known)
