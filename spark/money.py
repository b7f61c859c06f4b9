"""Adds money up exactly: the same total whatever the order of the rows or the number of files.

Doubles added as doubles are not, so a double is split into whole dollars and trillionths, both
integers, which Spark adds at the speed of integers; AWS writes ten places. A decimal, which is how
text is read, keeps its 18 places.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType

from spark.schemas import MONEY

TRILLION = 10**12
# A larger amount is damage, and would not fit an integer of trillionths beside the others.
LARGEST = 1e15
_COUNT = "decimal(19,0)"


def kind_of(delivered: DataType) -> DataType:
    """Return how money of a delivered column is carried until it is summed."""
    return DoubleType() if isinstance(delivered, DoubleType | FloatType) else MONEY


def amount(column: Column, kind: DataType) -> Column:
    """Return a delivered amount, or null where it is no number that can be added up."""
    if kind == MONEY:
        return column.try_cast(MONEY)
    value = column.try_cast("double")
    return F.when(F.abs(value) < LARGEST, value)


def sums(frame: DataFrame, names: Mapping[str, str]) -> list[Column]:
    """Return the parts of an exact sum per amount, for one `agg`; `finished` puts them together.

    `names` maps the column to add up to the name of its total.
    """
    parts = []
    for name, called in names.items():
        if frame.schema[name].dataType == MONEY:
            parts.append(F.sum(name).alias(called))
            continue
        whole = F.col(name).cast("long")
        rest = F.rint((F.col(name) - whole.cast("double")) * F.lit(float(TRILLION)))
        parts.append(F.sum(whole).alias(f"{called}_whole"))
        parts.append(F.sum(rest.cast("long")).alias(f"{called}_trillionths"))
    return parts


def finished(summed: DataFrame, names: Mapping[str, str]) -> dict[str, Column]:
    """Return the totals of an aggregation made of `sums`, as money; nothing is nought."""
    return {called: F.coalesce(_total(summed, called), _nothing()) for called in names.values()}


def parts(names: Mapping[str, str]) -> list[str]:
    """Return the columns that `sums` may have made and a finished table leaves out."""
    return [f"{called}_{part}" for called in names.values() for part in ("whole", "trillionths")]


def _total(summed: DataFrame, called: str) -> Column:
    if called in summed.columns:
        return F.col(called).cast(MONEY)
    trillionths = F.col(f"{called}_trillionths").cast(_COUNT) * F.lit(Decimal(1).scaleb(-12))
    return (F.col(f"{called}_whole").cast(_COUNT) + trillionths).cast(MONEY)


def _nothing() -> Column:
    return F.lit(0).cast(MONEY)
