"""What a bill charges per unit: of plain usage, by usage type."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from core.cost.price_check import BilledRate
from spark.transforms.classify import Component


def billed_rates(usage: DataFrame) -> list[BilledRate]:
    """Return the rate of every usage type of a bill; the table is small once it is summed."""
    # Marketplace sells under AWS's own usage types; such a line is of no component of ours.
    is_ours = F.col("component") != Component.OTHER.value
    plain = usage.where((F.col("category") == "Usage") & F.col("usage_type").isNotNull() & is_ours)
    rows = (
        plain.groupBy("usage_type")
        .agg(F.sum("quantity").alias("quantity"), F.sum("billed_cost").alias("cost"))
        .where("quantity > 0")
        .collect()
    )
    return [BilledRate(row.usage_type, row.quantity, row.cost) for row in rows]
