"""A bill summed to USAGE: by Spark, however large it is, or by this process alone.

Both come of the same worker (spark.ingest.share), and both are changed by the same functions: Spark
hands them batches of its rows, this process all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from spark.arrow_rows import rows_of
from spark.ingest.delivery import Delivery
from spark.rules.line import MEANING_OF, meaning_of
from spark.schemas import USAGE
from spark.tables import Rows
from spark.transforms.grain import KEYS, SUMS, are_discounts, grain_of, replaced

_MONTH = ["billing_period", "account"]


@contextmanager
def summed_bill(delivery: Delivery) -> Iterator[Summed]:
    """Yield a bill summed once, however often it is read until the block ends."""
    if delivery.session is None:
        yield Summed(delivery.usage_here())
        return
    rows = delivery.usage().persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield Summed(rows)
    finally:
        rows.unpersist()


@dataclass(frozen=True)
class Summed:
    """The rows of USAGE, with `flow`, `easy` and has_net beside them, where they are."""

    rows: pa.Table | DataFrame

    @property
    def usage(self) -> Rows:
        """Return the table as it is written."""
        return self.rows.select(USAGE.names)

    def grain(self) -> pa.Table:
        """Return the cost grain, here."""
        if not isinstance(self.rows, DataFrame):
            return grain_of(self.rows)
        parts = _changed(self.rows, grain_of)
        sums = [F.sum(name).alias(name) for name in SUMS]
        flag = F.max("is_discounted").alias("is_discounted")
        return parts.groupBy(*KEYS).agg(*sums, flag).toArrow()

    def net_of_discounts(self) -> Summed:
        """Return the bill without the discounts that net columns already hold.

        An export of the compatible kind writes them as lines and leaves the net columns empty; one
        that has both would otherwise count them twice.
        """
        if isinstance(self.rows, DataFrame):
            known = self.rows.where("has_net").select(*_MONTH).distinct().toArrow()
        else:
            known = self.rows.filter(self.rows["has_net"]).select(_MONTH)
        has_net = set(rows_of(known))

        def net(usage: pa.Table) -> pa.Table:
            chosen = are_discounts(usage)
            rows = rows_of(usage.filter(chosen).select([*_MONTH, "net_cost"]))
            found = [Decimal(0) if row[:2] in has_net else row.net_cost for row in rows]
            place = usage.column_names.index("net_cost")
            column = replaced(usage["net_cost"], chosen, found)
            return usage.set_column(place, usage.field(place), column)

        return Summed(_changed(self.rows, net))


def table_grain(rows: pa.Table | DataFrame) -> pa.Table:
    """Return a USAGE table, which keeps neither `flow` nor `easy`, in the cost grain."""
    return Summed(_changed(rows, _with_meanings)).grain()


def _with_meanings(usage: pa.Table) -> pa.Table:
    columns = (usage[name].to_pylist() for name in MEANING_OF)
    meanings = [*map(cache(meaning_of), *columns)]
    for place, name in enumerate(("flow", "easy")):
        texts = pa.array([each[place] for each in meanings], pa.string())
        usage = usage.append_column(name, texts)
    return usage


def _changed(
    rows: pa.Table | DataFrame, change: Callable[[pa.Table], pa.Table]
) -> pa.Table | DataFrame:
    """Return rows as a function changes them: all at once here, batch by batch in Spark."""
    if not isinstance(rows, DataFrame):
        return change(rows)

    def batches(told: Any) -> Iterator[Any]:
        for batch in told:
            yield from change(pa.Table.from_batches([batch])).to_batches()

    shape = change(rows.limit(0).toArrow()).schema
    return rows.mapInArrow(batches, from_arrow_schema(shape))
