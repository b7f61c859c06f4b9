"""The cost job: USAGE, without resources and meters, becomes the cost table."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark import tables
from spark.report.model import Line
from spark.schemas import COST, MONEY, USAGE, require_schema
from spark.tables import Store
from spark.transforms.attribute import Attribution, with_nodes
from spark.transforms.classify import Component

SUMS = ("billed_cost", "amortised_cost", "net_cost")
# What a report shows of a table of days.
_MONTHLY = tuple(name for name in COST.names if name not in (*SUMS, "charges", "day"))
KEYS = tuple(name for name in COST.names if name not in (*SUMS, "charges"))


def run(store: Store, periods: Collection[str], *, rotations: DataFrame | None = None) -> DataFrame:
    """Replace these months of the cost table and return the whole table.

    With the ledger's ROTATIONS an instance's cost is the broker's that it carried.
    """
    usage = store.read(tables.USAGE).where(F.col("billing_period").isin(*periods))
    store.replace(tables.COST, cost_table(usage, rotations), periods)
    return store.read(tables.COST)


def cost_table(usage: DataFrame, rotations: DataFrame | None = None) -> DataFrame:
    """Turn USAGE into the COST table."""
    rows = require_schema(usage, USAGE, "The cost job's input")
    if rotations is not None:
        rows = with_nodes(rows, rotations)
    table = rows.groupBy(*KEYS).agg(
        F.sum("charges").alias("charges"), *(total_of(name).alias(name) for name in SUMS)
    )
    return require_schema(table, COST, "The cost table")


def total_of(name: str) -> Column:
    return F.coalesce(F.sum(name), F.lit(0)).cast(MONEY)


def lines_of(table: DataFrame) -> tuple[str, list[Line]]:
    """Return the currency and the lines of a report from some months of the cost table."""
    summed = table.groupBy(*_MONTHLY).agg(
        F.sum("charges").alias("charges"), *(total_of(name).alias(name) for name in SUMS)
    )
    rows = summed.collect()
    lines = [
        Line(
            billing_period=None if row.billing_period == tables.UNKNOWN_PERIOD else row[0],
            component=Component(row.component),
            attribution=Attribution(row.attribution),
            cluster=row.cluster,
            owner=row.owner,
            node_id=row.node_id,
            zone=row.zone,
            charges=row.charges,
            billed=row.billed_cost,
            amortised=row.amortised_cost,
        )
        for row in rows
    ]
    return next((row.currency for row in rows if row.currency), "USD"), lines
