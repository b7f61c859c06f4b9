"""Sums a bill's lines to one row per day, resource and meter: the pass over the whole bill.

Lines are summed by what they say and tidied afterwards, when there are a hundredth as many: a
region's prefix cut off and a blank made null cost more per line than the sum itself.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from spark import money
from spark.ingest.delivery import EMPTY
from spark.schemas import LINE_AMOUNTS, LINE_KEYS, MONEY
from spark.transforms.amortise import DISCOUNTS

# Two-region forms (USE1-CAN1-AWS-Out-Bytes) and EU-, which has no number, are in real bills. Looser
# patterns cut off what is no region: EMR-SERVERLESS, EKS-EC2-vCPU-Hours.
REGION_PREFIX = r"^(?:(?:[A-Z]{3}\d|EU)-){1,2}"
_TEXTS = tuple(
    field.name
    for field in LINE_KEYS.fields
    if field.name not in ("billing_period", "day", "has_net", "reason")
)
_TOTALS = {name: name for name in LINE_AMOUNTS}


def summed(lines: DataFrame) -> DataFrame:
    """Return one row per distinct line but for its hour: LINE_KEYS, `charges`, exact amounts."""
    rows = lines.groupBy(*LINE_KEYS.names).agg(
        F.count("*").alias("charges"), *money.sums(lines, _TOTALS)
    )
    totals = money.finished(rows, _TOTALS)
    return rows.select(*LINE_KEYS.names, "charges", *(c.alias(n) for n, c in totals.items()))


def tidied(rows: DataFrame) -> DataFrame:
    """Cut the region's prefix off the usage type, and make null what says nothing."""
    blank = {name: _blank(name) for name in _TEXTS}
    return rows.withColumns(
        {**blank, "usage_type": F.regexp_replace(blank["usage_type"], REGION_PREFIX, "")}
    )


def net_of_discounts(rows: DataFrame) -> DataFrame:
    """Take out of net cost the discounts that net columns already hold.

    An export of the compatible kind writes them as lines and leaves the net columns empty; one
    that has both would otherwise count them twice.
    """
    month = Window.partitionBy("billing_period", "account")
    has_net = F.max("has_net").over(month) == 1
    is_discount = F.col("category").isin(*DISCOUNTS)
    already = F.coalesce(has_net & is_discount, F.lit(False))  # noqa: FBT003 - a literal column
    return rows.withColumn(
        "net_cost", F.when(already, F.lit(0).cast(MONEY)).otherwise(F.col("net_cost"))
    )


def _blank(name: str) -> Column:
    trimmed = F.trim(name)
    return F.when(~trimmed.isin(*EMPTY), trimmed)
