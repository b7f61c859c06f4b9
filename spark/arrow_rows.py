"""Turns rows into Arrow tables of a known shape, and back: what jobs and tables hand each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from spark.rows import row_type
from spark.schemas import MOMENT

NAIVE = pa.timestamp("us")


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
