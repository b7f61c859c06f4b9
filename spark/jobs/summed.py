"""A bill summed to USAGE: by Spark, however large it is, or by this process alone.

Both come of the same worker (spark.ingest.share): Spark adds shares up, here there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from core.cost.pricing import total
from spark.ingest.delivery import Delivery
from spark.jobs.grain import COSTS, KEYS, Grain
from spark.rows import Found, grouped, row_type
from spark.rules.line import DISCOUNT, MEANING_OF, is_discount, meaning_of
from spark.schemas import MONEY, USAGE
from spark.tables import Rows

_BYTES = ("GB", "GiB")
_Usage = row_type(USAGE)


@contextmanager
def summed_bill(delivery: Delivery) -> Iterator[SummedHere | SummedBySpark]:
    """Yield a bill summed once, however often it is read until the block ends."""
    if delivery.session is None:
        yield SummedHere(delivery.usage_here())
        return
    rows = delivery.usage().persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield SummedBySpark(rows)
    finally:
        rows.unpersist()


@dataclass(frozen=True)
class SummedHere:
    """A bill that this process added up."""

    rows: Sequence[Found]

    @property
    def usage(self) -> Rows:
        return [_Usage(*(getattr(row, name) for name in USAGE.names)) for row in self.rows]

    def grain(self) -> list[Found]:
        """Return the rows of the cost grain."""
        keys = [name for name in KEYS if name != "instance_id"]
        place = KEYS.index("instance_id")

        def key(row: Found) -> tuple[Any, ...]:
            is_instance = row.node_id is None and (row.resource_id or "").startswith("i-")
            known = [getattr(row, name) for name in keys]
            return (*known[:place], row.resource_id if is_instance else None, *known[place:])

        return [
            Grain(
                *known,
                sum(row.charges for row in rows),
                total(r.quantity for r in rows if r.flow is not None and r.unit in _BYTES),
                *(total(getattr(row, name) for row in rows) for name in COSTS),
                any(is_discount(row.category) for row in rows),
            )
            for known, rows in grouped(self.rows, key).items()
        ]

    def net_of_discounts(self) -> SummedHere:
        """Return the bill without the discounts that net columns already hold.

        An export of the compatible kind writes them as lines and leaves the net columns empty; one
        that has both would otherwise count them twice.
        """
        has_net = {(row.billing_period, row.account) for row in self.rows if row.has_net}
        return SummedHere(
            [
                row._replace(net_cost=Decimal(0))
                if is_discount(row.category) and (row.billing_period, row.account) in has_net
                else row
                for row in self.rows
            ]
        )


@dataclass(frozen=True)
class SummedBySpark:
    """A bill that Spark adds up."""

    rows: DataFrame

    @property
    def usage(self) -> Rows:
        return self.rows.select(*USAGE.names)

    def grain(self) -> list[Found]:
        return cost_grain(self.rows)

    def net_of_discounts(self) -> SummedBySpark:
        month = Window.partitionBy("billing_period", "account")
        already = F.max("has_net").over(month) & F.col("category").endswith(DISCOUNT)
        nothing = F.lit(0).cast(MONEY)
        net = F.when(already, nothing).otherwise(F.col("net_cost"))
        return SummedBySpark(self.rows.withColumn("net_cost", net))


def cost_grain(usage: DataFrame) -> list[Found]:
    """Return USAGE, with `flow` and `easy` beside it, as rows of the cost grain."""
    is_instance = F.col("resource_id").startswith("i-") & F.col("node_id").isNull()
    rows = usage.withColumn("instance_id", F.when(is_instance, F.col("resource_id")))
    is_moved = F.col("flow").isNotNull() & F.col("unit").isin(*_BYTES)
    summed_rows = rows.groupBy(*KEYS).agg(
        F.sum("charges"),
        _sum(F.when(is_moved, F.col("quantity"))),
        *(_sum(F.col(name)) for name in COSTS),
        F.max(F.coalesce(F.col("category").endswith(DISCOUNT), F.lit(False))),  # noqa: FBT003 - a literal
    )
    columns = (column.to_pylist() for column in summed_rows.toArrow().columns)
    return [Grain(*row) for row in zip(*columns, strict=True)]


def with_meanings(usage: DataFrame) -> DataFrame:
    """Return a USAGE table with `flow` and `easy`, which it does not keep."""
    added = [StructField(name, StringType()) for name in ("flow", "easy")]
    return usage.mapInArrow(_with_meanings, StructType([*usage.schema.fields, *added]))


def _with_meanings(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        columns = (batch[name].to_pylist() for name in MEANING_OF)
        said = [meaning_of(*each) for each in zip(*columns, strict=True)]
        for place, name in enumerate(("flow", "easy")):
            texts = [each[place] for each in said]
            batch = batch.append_column(name, pa.array(texts, pa.string()))  # noqa: PLW2901 - one more column
        yield batch


def _sum(amount: Column) -> Column:
    return F.coalesce(F.sum(amount), F.lit(0)).cast(MONEY)


def table_grain(rows: Rows) -> list[Found]:
    """Return the rows of a USAGE table as rows of the cost grain."""
    if isinstance(rows, DataFrame):
        return cost_grain(with_meanings(rows))
    named = row_type([*USAGE.names, "flow", "easy"])
    said = (meaning_of(*(getattr(row, name) for name in MEANING_OF)) for row in rows)
    return SummedHere([named(*row, *each) for row, each in zip(rows, said, strict=True)]).grain()
