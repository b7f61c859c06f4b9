"""Rows of small tables as plain values and as Arrow tables, and how they are grouped and added up.

What a bill comes to is a few thousand rows once it is added up.
"""

from __future__ import annotations

from collections import defaultdict, namedtuple
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from core.cost.pricing import total

STRING, DOUBLE, LONG, INTEGER = pa.string(), pa.float64(), pa.int64(), pa.int32()
DATE, BOOLEAN = pa.date32(), pa.bool_()
# As Spark carries times: microseconds of UTC.
NAIVE, MOMENT = pa.timestamp("us"), pa.timestamp("us", "UTC")
MONEY = pa.decimal128(38, 18)
NOTHING = Decimal(0)
# A row of a table, its columns as attributes.
Found = Any

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def struct(**columns: pa.DataType) -> pa.Schema:
    """Return a row's shape from its columns, in order."""
    return pa.schema(list(columns.items()))


def row_type(names: Any) -> Any:
    """Return the named tuple of rows with these columns, or with a schema's."""
    return _named(tuple(getattr(names, "names", names)))


def row_from(schema: Any, source: object, **known: Any) -> Any:
    """Return a row of a schema: what is known, and of the rest what its source calls the same."""
    names = schema.names
    return row_type(schema)(*(known[n] if n in known else getattr(source, n) for n in names))


@cache
def _named(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names)  # noqa: PYI024 - its names are a table's


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return rows by a key, in the order in which each key was first seen."""
    groups: dict[K, list[T]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def summed(rows: Iterable[Found], name: str) -> Decimal:
    """Return the exact sum of a column; nothing is nought."""
    return total(value for row in rows if (value := getattr(row, name)) is not None)


def largest(values: Iterable[T | None]) -> T | None:
    """Return the largest of what is known, or None."""
    return max((value for value in values if value is not None), default=None)  # type: ignore[type-var] # of one column


def table_of(rows: pa.Table | Sequence[Sequence[Any]], shape: pa.Schema) -> pa.Table:
    """Return rows as a table of this shape; times without a zone are UTC."""
    if isinstance(rows, pa.Table):
        return rows.cast(shape)
    columns = list(zip(*rows, strict=True)) or [() for _ in shape]
    made = [
        pa.array(values, NAIVE).cast(MOMENT)
        if field.type == MOMENT
        else pa.array(values, field.type)
        for values, field in zip(columns, shape, strict=True)
    ]
    return pa.Table.from_arrays(made, schema=shape)


def rows_of(table: pa.Table) -> list[Any]:
    """Return a table's rows as named tuples; times are of UTC, without a zone."""
    columns = (column.cast(NAIVE) if column.type == MOMENT else column for column in table.columns)
    values = zip(*(column.to_pylist() for column in columns), strict=True)
    return [*map(row_type(table.column_names)._make, values)]


def shaped(
    table: pa.Table, shape: pa.Schema, constant: Mapping[str, str] | None = None
) -> pa.Table:
    """Return a table in this shape; a column that it lacks is a constant, or null."""
    columns = [_column(table, field, (constant or {}).get(field.name)) for field in shape]
    return pa.Table.from_arrays(columns, schema=shape)


def _column(table: pa.Table, field: pa.Field, constant: str | None) -> Any:
    if field.name not in table.column_names:
        return pa.repeat(pa.scalar(constant, field.type), table.num_rows)
    column = table[field.name]
    if field.type == MOMENT:
        # Spark may have written nanoseconds without a zone; they are UTC.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column.cast(field.type)
