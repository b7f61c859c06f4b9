"""Adds money up exactly: the same total whatever the order of the rows or the number of files.

Doubles added as doubles are not, so a double is split into whole dollars and trillionths, both
integers, which Spark adds at the speed of integers; AWS writes ten places. A decimal, which is how
text is read, keeps its 18 places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    """Return a delivered amount as it is carried; `usable` says which can be added up."""
    return column.try_cast(kind)


def usable(value: Column, kind: DataType) -> Column:
    """Return an amount, or null where it is no number that can be added up (NaN, 1e300)."""
    return value if kind == MONEY else F.when(F.abs(value) < LARGEST, value)


def sums(frame: DataFrame, names: Mapping[str, str]) -> list[Column]:
    """Return the parts of an exact sum per amount, for one `agg`; `finished` puts them together.

    `names` maps the column to add up to the name of its total.
    """
    parts = []
    for name, called in names.items():
        if frame.schema[name].dataType == MONEY:
            parts.append(F.sum(name).alias(called))
            continue
        is_usable = F.abs(F.col(name)) < LARGEST
        whole = F.col(name).cast("long")
        rest = F.rint((F.col(name) - whole.cast("double")) * F.lit(float(TRILLION))).cast("long")
        parts.append(F.sum(F.when(is_usable, whole)).alias(f"{called}_whole"))
        parts.append(F.sum(F.when(is_usable, rest)).alias(f"{called}_trillionths"))
    return parts


def parts_of(summed: DataFrame, called: str) -> list[str]:
    """Return the columns that a total is carried in."""
    spread = [f"{called}_whole", f"{called}_trillionths"]
    return [called] if called in summed.columns else spread


def added(summed: DataFrame, names: Iterable[str]) -> list[Column]:
    """Return the parts of totals summed once more, for one `agg`."""
    return [F.sum(part).alias(part) for name in names for part in parts_of(summed, name)]


def finished(summed: DataFrame, names: Mapping[str, str]) -> dict[str, Column]:
    """Return the totals of an aggregation made of `sums`, as money; nothing is nought."""
    return {called: F.coalesce(_total(summed, called), _nothing()) for called in names.values()}


def _total(summed: DataFrame, called: str) -> Column:
    if called in summed.columns:
        return F.col(called).cast(MONEY)
    trillionths = F.col(f"{called}_trillionths").cast(_COUNT) * F.lit(Decimal(1).scaleb(-12))
    return (F.col(f"{called}_whole").cast(_COUNT) + trillionths).cast(MONEY)


def _nothing() -> Column:
    return F.lit(0).cast(MONEY)
