"""The shapes of every table a job reads or writes, and the guard that stands at each job's edges.

Money is decimal with 18 places, so that a CUR double and a FOCUS decimal both keep every digit
they were written with; times are UTC.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from core.errors import StillwaterError

MONEY = DecimalType(38, 18)
QUANTITY = DecimalType(38, 18)
TAGS = MapType(StringType(), StringType())

# One charge of any bill, whatever format it came in: the row every transform works on.
CHARGES = StructType(
    [
        StructField("billing_period", StringType()),  # YYYY-MM
        StructField("period_start", TimestampType()),
        StructField("period_end", TimestampType()),
        StructField("provider", StringType()),
        StructField("account", StringType()),
        StructField("currency", StringType()),
        StructField("category", StringType()),  # line item type or charge category
        StructField("service", StringType()),
        StructField("usage_type", StringType()),  # without the region's prefix; null in FOCUS
        StructField("operation", StringType()),
        StructField("description", StringType()),
        StructField("unit", StringType()),
        StructField("quantity", QUANTITY),
        StructField("resource_id", StringType()),
        StructField("zone", StringType()),
        StructField("tags", TAGS),
        StructField("billed_cost", MONEY),
        StructField("amortised_cost", MONEY),
    ]
)

# A charge as ingest leaves it: still with its reason for being unreadable, if it has one.
INGESTED = StructType(
    [*CHARGES.fields, StructField("reason", StringType()), StructField("line", StringType())]
)

# A row that cannot be placed: why, and as much of it as can be read.
QUARANTINE = StructType(
    [
        StructField("reason", StringType()),
        StructField("line", StringType()),
        StructField("billed_cost", MONEY),
    ]
)

# The cost table: every readable dollar of the bill in exactly one row.
COST = StructType(
    [
        StructField("billing_period", StringType()),
        StructField("component", StringType()),
        StructField("attribution", StringType()),
        StructField("cluster", StringType()),
        StructField("owner", StringType()),
        StructField("node_id", IntegerType()),
        StructField("zone", StringType()),
        StructField("currency", StringType()),
        StructField("charges", LongType()),
        StructField("billed_cost", MONEY),
        StructField("amortised_cost", MONEY),
    ]
)


def require_schema(frame: DataFrame, expected: StructType, what: str) -> DataFrame:
    """Return the frame's columns in the expected order, or say which column is missing or wrong.

    Nullability is not compared: Spark widens it freely.
    """
    found = {field.name: field.dataType for field in frame.schema.fields}
    wanted = {field.name: field.dataType for field in expected.fields}
    problems = [
        f"column {name} is missing" if name not in found else f"column {name} is {found[name]}"
        for name, kind in wanted.items()
        if found.get(name) != kind
    ]
    problems += [f"column {name} is unexpected" for name in found if name not in wanted]
    if problems:
        raise StillwaterError(f"{what} has not the shape it must have: {'; '.join(problems)}.")
    return frame.select(*wanted)
