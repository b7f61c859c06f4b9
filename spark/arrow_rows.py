"""Reads and writes tables as Parquet on this machine's disk, without Java."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark.rows import row_type

# As Spark carries times: microseconds of UTC.
MOMENT, NAIVE = pa.timestamp("us", "UTC"), pa.timestamp("us")


def table_of(rows: Sequence[Sequence[Any]], schema: StructType) -> pa.Table:
    """Return rows as a table of this shape; times without a zone are UTC."""
    shape = _shape(schema)
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


def replace(folder: Path, table: pa.Table) -> None:
    """Make a folder hold these rows in one file; the old ones go once the new file is whole.

    Of no rows nothing is left of the folder.
    """
    before = list(folder.iterdir()) if folder.is_dir() else []
    if not table.num_rows:
        shutil.rmtree(folder, ignore_errors=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    name = f"part-{uuid.uuid4().hex}.parquet"
    # A name that begins with a dot is no part of the table yet.
    pq.write_table(table, folder / f".{name}", store_schema=False)
    (folder / f".{name}").rename(folder / name)
    for old in before:
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def read(
    files: Collection[Path],
    schema: StructType,
    constant: Mapping[str, str],
    equal: Mapping[str, str],
) -> pa.Table:
    """Return the rows of files as one table; a column that a file lacks is null in them.

    `constant` holds the columns that folders are named for, `equal` what others must be.
    """
    shape = _shape(schema)
    found = []
    for path in files:
        with pq.ParquetFile(path) as file:
            there = [name for name in shape.names if name in file.schema_arrow.names]
            table = file.read(there)
        for name, value in equal.items():
            if name in there:
                table = table.filter(pc.equal(table[name], value))
        columns = [_column(table, field, constant) for field in shape]
        found.append(pa.Table.from_arrays(columns, schema=shape))
    return pa.concat_tables(found) if found else shape.empty_table()


def _column(table: pa.Table, field: pa.Field, constant: Mapping[str, str]) -> Any:
    if field.name not in table.column_names:
        return pa.repeat(pa.scalar(constant.get(field.name), field.type), table.num_rows)
    column = table[field.name]
    if field.type == MOMENT:
        # Spark may have written nanoseconds without a zone; they are UTC.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column.cast(field.type)


def _shape(schema: StructType) -> pa.Schema:
    return pa.schema(
        pa.field(each.name, MOMENT if pa.types.is_timestamp(each.type) else each.type)
        for each in to_arrow_schema(schema)
    )
