"""Knows every table's shape (tables.toml), and reads and writes them: in Iceberg, or plain Parquet.

Every table is partitioned by billing period, and a write replaces whole months: a delivery that
comes again changes nothing, one that was corrected leaves no row of the old one behind.
"""

from __future__ import annotations

import tomllib
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import resources
from typing import Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same
import pyarrow.fs as pf  # type: ignore[import-untyped] # the same
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from core.ground.errors import InvalidInput
from spark.files import file_system
from spark.rows import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    MOMENT,
    MONEY,
    STRING,
    Found,
    rows_of,
    shaped,
    struct,
    table_of,
)

PARTITION = "billing_period"
# Refreshes that stay readable: AWS makes up to three a day for six weeks, and each replaces a month
# or two. Older ones expire, but never the last of them.
SNAPSHOT_DAYS = 60
SNAPSHOTS_KEPT = 10


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name and shape; its first column is the partition."""

    name: str
    schema: pa.Schema


def _table(name: str) -> Table:
    return Table(name, struct(**{column: _KINDS[kind] for column, kind in _SHAPES[name].items()}))


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
_SHAPES = tomllib.loads((resources.files("spark") / "tables.toml").read_text(encoding="utf-8"))
# Made of a bill's lines.
USAGE, COST, TRANSFER = _table("usage"), _table("cost"), _table("transfer")
NODE_SHARES, QUARANTINE = _table("node_shares"), _table("quarantine")
TAGS_FOUND, DELIVERIES = _table("tags_found"), _table("deliveries")
# What is read beside the bill, and what jobs find in both.
ROTATIONS, STORAGE, RESYNC = _table("rotations"), _table("storage"), _table("resync")
ECONOMICS, UNIT, ANOMALIES = _table("economics"), _table("unit"), _table("anomalies")


# Rows in the order of the table's columns.
Rows: TypeAlias = "pa.Table | Sequence[Any]"


class Store(ABC):
    """Reads tables and replaces months of them."""

    @abstractmethod
    def table(self, table: Table, periods: Collection[str] | None = None, **equal: str) -> pa.Table:
        """Return the rows of some months, or of all, in which these columns are so.

        A table that was never written is empty.
        """

    def rows(
        self, table: Table, periods: Collection[str] | None = None, **equal: str
    ) -> list[Found]:
        """Return the same as named tuples."""
        return rows_of(self.table(table, periods, **equal))

    @abstractmethod
    def replace(self, table: Table, rows: Rows, periods: Collection[str]) -> None:
        """Make these months of the table hold these rows and no others; other months stay."""

    def tidy(self, now: datetime) -> None:  # noqa: B027 - most stores have nothing to let go of
        """Let go of what is kept for audit and is too old for that; of most tables nothing is."""


class ParquetStore(Store):
    """Tables as folders of Parquet, one folder per month below each, on a disk or in S3."""

    def __init__(self, root: str) -> None:
        self._files, self._root = file_system(root.rstrip("/"))

    def table(self, table: Table, periods: Collection[str] | None = None, **equal: str) -> pa.Table:
        found = [table_of([], table.schema)]
        for folder in self._below(f"{self._root}/{table.name}"):
            name, _, period = folder.base_name.partition("=")
            if name != PARTITION or (periods is not None and period not in periods):
                continue
            for file in self._below(folder.path):
                if file.base_name[0] not in "._":
                    read = self._read(file.path, table, equal)
                    found.append(shaped(read, table.schema, {PARTITION: period}))
        return pa.concat_tables(found)

    def _read(self, path: str, table: Table, equal: Mapping[str, str]) -> pa.Table:
        with pq.ParquetFile(path, filesystem=self._files) as file:
            there = file.schema_arrow.names
            read = file.read([name for name in table.schema.names if name in there])
        for name in equal.keys() & set(there):
            read = read.filter(pc.equal(read[name], equal[name]))
        return read

    def replace(self, table: Table, rows: Rows, periods: Collection[str]) -> None:
        known = table_of(rows, table.schema)
        for period in periods:
            own = known.filter(pc.equal(known[PARTITION], period)).drop_columns([PARTITION])
            self._replace_files(f"{self._root}/{table.name}/{PARTITION}={period}", own)

    def _replace_files(self, folder: str, rows: pa.Table) -> None:
        """Make a folder hold these rows in one file; the old ones go once the new one is whole.

        Of no rows nothing is left of the folder.
        """
        before = self._below(folder)
        if not rows.num_rows:
            if before:
                self._files.delete_dir(folder)
            return
        if isinstance(self._files, pf.LocalFileSystem):
            # S3 has no folders, and would be given an object that stands for one.
            self._files.create_dir(folder)
        name = f"part-{uuid.uuid4().hex}.parquet"
        # A name that begins with a dot is no part of the table yet.
        pq.write_table(rows, f"{folder}/.{name}", filesystem=self._files, store_schema=False)
        self._files.move(f"{folder}/.{name}", f"{folder}/{name}")
        for old in before:
            is_folder = old.type == pf.FileType.Directory
            (self._files.delete_dir if is_folder else self._files.delete_file)(old.path)

    def _below(self, folder: str) -> list[pf.FileInfo]:
        """Return what stands in a folder, in order."""
        found = self._files.get_file_info(pf.FileSelector(folder, allow_not_found=True))
        return sorted(found, key=lambda each: each.path)


class IcebergStore(Store):
    """Tables of an Iceberg catalog: every refresh is a snapshot, kept for audit."""

    def __init__(self, session: SparkSession, namespace: str) -> None:
        self._session, self._namespace = session, namespace
        self._written: set[str] = set()

    def table(self, table: Table, periods: Collection[str] | None = None, **equal: str) -> pa.Table:
        if not self._session.catalog.tableExists(self._name(table)):
            return table_of([], table.schema)
        frame = self._session.table(self._name(table))
        if periods is not None:
            frame = frame.where(F.col(PARTITION).isin(*periods))
        for name, value in equal.items():
            frame = frame.where(F.col(name) == value)
        # A column that this version added is null in a table not written since.
        return shaped(frame.toArrow(), table.schema)

    def replace(self, table: Table, rows: Rows, periods: Collection[str]) -> None:
        known = table_of(rows, table.schema)
        is_chosen = F.col(PARTITION).isin(*periods)
        chosen = self._session.createDataFrame(known).where(is_chosen)
        self._make(table)
        self._written.add(table.name)
        # The condition also empties a month that has no rows any more, in the same commit.
        chosen.writeTo(self._name(table)).overwrite(is_chosen)

    def tidy(self, now: datetime) -> None:
        """Expire old snapshots of what was written, and with them the files only they named."""
        catalog, _, namespace = self._namespace.partition(".")
        before = f"{now - timedelta(days=SNAPSHOT_DAYS):%Y-%m-%d %H:%M:%S}"
        for name in sorted(self._written):
            if not self._has_expired(f"{self._namespace}.{name}", before):
                continue
            self._session.sql(
                f"CALL {catalog}.system.expire_snapshots(table => '{namespace}.{name}', "
                f"older_than => TIMESTAMP '{before}', retain_last => {SNAPSHOTS_KEPT})"
            )

    def _has_expired(self, name: str, before: str) -> bool:
        """Say whether a snapshot may go: to ask takes a quarter of the time that expiring does."""
        is_old = F.col("committed_at") < F.lit(before).cast("timestamp")
        seen = self._session.table(f"{name}.snapshots").agg(F.count("*"), F.count_if(is_old)).head()
        return seen is not None and seen[0] > SNAPSHOTS_KEPT and seen[1] > 0

    def _name(self, table: Table) -> str:
        return f"{self._namespace}.{table.name}"

    def _make(self, table: Table) -> None:
        """Create the table, or add the columns that a newer version of ours has."""
        self._session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace}")
        name = self._name(table)
        kinds = {f.name: f.dataType.simpleString() for f in from_arrow_schema(table.schema)}
        if not self._session.catalog.tableExists(name):
            columns = ", ".join(f"{column} {kind}" for column, kind in kinds.items())
            self._session.sql(
                f"CREATE TABLE {name} ({columns}) USING iceberg PARTITIONED BY ({PARTITION}) "
                f"TBLPROPERTIES ('format-version'='2')"
            )
            return
        there = {f.name: f.dataType.simpleString() for f in self._session.table(name).schema}
        changed = [column for column, kind in kinds.items() if there.get(column, kind) != kind]
        if changed:
            problem = (
                f"The table {name} holds {', '.join(changed)} as another type than this version "
                f"writes; rename the table, and ingest its months again."
            )
            raise InvalidInput([problem])
        added = ", ".join(f"{column} {kinds[column]}" for column in kinds if column not in there)
        if added:
            self._session.sql(f"ALTER TABLE {name} ADD COLUMNS ({added})")
