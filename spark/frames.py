"""Small frames made of what the driver knows, frames kept while used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType
from pyspark.storagelevel import StorageLevel

from spark import arrow_rows


def empty(session: SparkSession, schema: StructType) -> DataFrame:
    """Return a frame of this shape without rows, which Spark leaves out of what it plans."""
    nothing = session.range(0).where(F.lit(False))  # noqa: FBT003 - a literal column
    return nothing.select(*(_cell(None, f.dataType).alias(f.name) for f in schema.fields))


def of_rows(session: SparkSession, rows: Sequence[Sequence[Any]], schema: StructType) -> DataFrame:
    """Return a frame of rows that the driver knows; times without a zone are UTC."""
    if not rows:
        return empty(session, schema)
    return session.createDataFrame(arrow_rows.table_of(rows, schema), schema)


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Yield a frame that is made once, however often it is read until the block ends."""
    frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield frame
    finally:
        frame.unpersist()


def _cell(value: Any, kind: DataType) -> Column:
    return F.lit(None if value is None else str(value)).cast(kind)
