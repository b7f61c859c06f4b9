"""Knows the shapes of every table that a job reads or writes: tables.toml beside this module."""

from __future__ import annotations

import tomllib
from importlib import resources

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

STRING, DOUBLE, LONG, INTEGER = pa.string(), pa.float64(), pa.int64(), pa.int32()
DATE, BOOLEAN = pa.date32(), pa.bool_()
# As Spark carries times: microseconds of UTC.
MOMENT = pa.timestamp("us", "UTC")
MONEY = pa.decimal128(38, 18)
_KINDS = {
    "string": STRING,
    "double": DOUBLE,
    "long": LONG,
    "integer": INTEGER,
    "date": DATE,
    "boolean": BOOLEAN,
    "moment": MOMENT,
    "money": MONEY,
}


def struct(**columns: pa.DataType) -> pa.Schema:
    """Return a row's shape from its columns, in order."""
    return pa.schema(list(columns.items()))


def _shape(name: str) -> pa.Schema:
    return struct(**{column: _KINDS[kind] for column, kind in _TABLES[name].items()})


_TABLES = tomllib.loads((resources.files("spark") / "tables.toml").read_text(encoding="utf-8"))
# Made of a bill's lines.
USAGE, COST, TRANSFER = _shape("usage"), _shape("cost"), _shape("transfer")
NODE_SHARES, QUARANTINE = _shape("node_shares"), _shape("quarantine")
TAGS_FOUND, DELIVERIES = _shape("tags_found"), _shape("deliveries")
# What is read beside the bill, and what jobs find in both.
ROTATIONS, STORAGE, RESYNC = _shape("rotations"), _shape("storage"), _shape("resync")
ECONOMICS, UNIT, ANOMALIES = _shape("economics"), _shape("unit"), _shape("anomalies")
