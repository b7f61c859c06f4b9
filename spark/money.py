"""Adds money up exactly: the same total whatever the order of the rows or the number of files.

Doubles added as doubles are not, so a double is split into whole dollars and trillionths, both
integers, which Spark adds at the speed of integers; AWS writes ten places. A double holds fifteen
digits, so of a large amount fewer places are taken: 123456.78 is not 123456.779999999999. A
decimal, which is how text is read, keeps its 18 places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType

from spark.expressions import surely
from spark.schemas import MONEY, PARTS, TRILLIONTHS, WHOLE

PLACES = 12
TRILLION, MILLION = 10**PLACES, 10**6
# A larger amount is damage, and would not fit an integer of trillionths beside the others.
LARGEST = 1e15
# Digits of a decimal number that a double surely holds, and how many whole dollars leave room for
# all PLACES beside them.
DIGITS = 15
WHOLE_DIGITS = DIGITS - PLACES
_COUNT = "decimal(19,0)"
# Of a wider decimal Spark would drop places to make room for what a sum or a product may come to.
_IN_FORMULAS = "decimal(34,18)"
_DIGITS = 60

# An amount by the name of its column, and what is made of some.
Amount = Callable[[str], Column]
Formula = Callable[[Amount], Column]


def kind_of(delivered: DataType) -> DataType:
    """Return how money of a delivered column is carried until it is summed."""
    if delivered == PARTS:
        return PARTS
    return DoubleType() if isinstance(delivered, DoubleType | FloatType) else MONEY


def amount(column: Column, kind: DataType) -> Column:
    """Return a delivered amount as it is carried, null where it cannot be added up (NaN, 1e300)."""
    if kind == PARTS:
        return column
    value = column.try_cast(kind)
    return value if kind == MONEY else F.when(F.abs(value) < LARGEST, value)


def made_of(formula: Formula, amount: Amount, kind: DataType) -> Column:
    """Return what a formula of additions and subtractions makes of amounts, as they are carried."""
    if kind == MONEY:
        return formula(lambda name: amount(name).try_cast(_IN_FORMULAS)).cast(kind)
    if kind != PARTS:
        return formula(amount).cast(kind)
    parts = (
        formula(lambda name, part=part: amount(name)[part]).alias(part)  # type: ignore[misc] # mypy
        for part in PARTS.names
    )
    return F.struct(*parts)


def sums(frame: DataFrame, names: Mapping[str, str]) -> list[Column]:
    """Return the parts of an exact sum per amount, for one `agg`; `finished` puts them together.

    `names` maps the column to add up to the name of its total.
    """
    parts = []
    for name, called in names.items():
        kind = frame.schema[name].dataType
        if kind == MONEY:
            parts.append(F.sum(name).alias(called))
        elif kind == PARTS:
            parts += [F.sum(F.col(name)[part]).alias(f"{called}_{part}") for part in PARTS.names]
        else:
            whole = F.col(name).cast("long")
            rest = (F.col(name) - whole.cast("double")) * F.lit(float(TRILLION))
            trillionths = _within_precision(rest, whole).cast("long")
            # By millionths: a sum of trillionths alone is full at nine million lines.
            millionths, below = F.sum(_over(trillionths, MILLION)), F.sum(trillionths % MILLION)
            dollars = _over(millionths, MILLION)
            parts.append((F.sum(whole) + dollars).alias(f"{called}_{WHOLE}"))
            parts.append(
                ((millionths - dollars * MILLION) * MILLION + below).alias(
                    f"{called}_{TRILLIONTHS}"
                )
            )
    return parts


def _over(count: Column, size: int) -> Column:
    """Return how often `size` goes into a whole number, towards nought."""
    return F.call_function("div", count, F.lit(size))


def _within_precision(trillionths: Column, whole: Column) -> Column:
    """Return trillionths without those that a double does not hold beside so many dollars."""
    digits = F.length(F.abs(whole).cast("string"))
    step = F.pow(F.lit(10.0), digits - F.lit(WHOLE_DIGITS))
    is_large = F.abs(whole) >= F.lit(10**WHOLE_DIGITS)
    return F.when(is_large, F.rint(trillionths / step) * step).otherwise(F.rint(trillionths))


def parts_of(summed: DataFrame, called: str) -> list[str]:
    """Return the columns that a total is carried in."""
    spread = [f"{called}_{part}" for part in PARTS.names]
    return [called] if called in summed.columns else spread


def is_something(summed: DataFrame, called: str) -> Column:
    """Say whether a total is known and not nought, however its parts share it out."""
    if called in summed.columns:
        return surely(F.col(called) != 0)
    whole, rest = (F.col(part) for part in parts_of(summed, called))
    return surely((whole + _over(rest, TRILLION) != 0) | (rest % TRILLION != 0))


def summed_parts(summed: DataFrame, names: Iterable[str]) -> list[Column]:
    """Return the parts of totals summed once more, for one `agg`."""
    return [F.sum(part).alias(part) for name in names for part in parts_of(summed, name)]


def total_columns(summed: DataFrame, names: Mapping[str, str]) -> dict[str, Column]:
    """Return the totals of an aggregation made of `sums`, as money; nothing is nought."""
    return {called: F.coalesce(_total(summed, called), _nothing()) for called in names.values()}


def _total(summed: DataFrame, called: str) -> Column:
    if called in summed.columns:
        return F.col(called).cast(MONEY)
    trillionths = F.col(f"{called}_{TRILLIONTHS}").cast(_COUNT) * F.lit(Decimal(1).scaleb(-PLACES))
    return (F.col(f"{called}_{WHOLE}").cast(_COUNT) + trillionths).cast(MONEY)


def of_parts(whole: int, trillionths: int) -> Decimal:
    """Return the sum that two parts make."""
    with localcontext(prec=_DIGITS):
        return Decimal(whole * TRILLION + trillionths).scaleb(-PLACES)


def _nothing() -> Column:
    return F.lit(0).cast(MONEY)
