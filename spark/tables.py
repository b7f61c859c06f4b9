"""Reads and writes tables: Iceberg, or plain Parquet where its jar is not at hand.

Every table is partitioned by billing period, and a write replaces whole months: a delivery that
comes again changes nothing, one that was corrected leaves no row of the old one behind.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from core.ground.errors import InvalidInput, StillwaterError
from spark import arrow_rows, schemas
from spark.rows import Found
from spark.schemas import require_schema

PARTITION = "billing_period"
# The month of rows whose month cannot be read.
UNKNOWN_PERIOD = "unknown"
# Refreshes that stay readable: AWS makes up to three a day for six weeks, and each replaces a month
# or two. Older ones expire, but never the last of them.
SNAPSHOT_DAYS = 60
SNAPSHOTS_KEPT = 10


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name and shape; its first column is the partition."""

    name: str
    schema: StructType


USAGE = Table("usage", schemas.USAGE)
COST = Table("cost", schemas.COST)
TRANSFER = Table("transfer", schemas.TRANSFER)
NODE_SHARES = Table("node_shares", schemas.NODE_SHARES)
QUARANTINE = Table("quarantine", schemas.QUARANTINE)
TAGS_FOUND = Table("tags_found", schemas.TAGS_FOUND)
DELIVERIES = Table("deliveries", schemas.DELIVERIES)


# Rows as Spark has them, or as the driver does: in the order of the table's columns.
Rows: TypeAlias = "DataFrame | pa.Table | Sequence[Any]"


def _known(table: Table, rows: pa.Table | Sequence[Any]) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else arrow_rows.table_of(rows, table.schema)


def literal_address(address: str) -> str:
    """Return a path or URI as Spark must be told it: with nothing in it to be taken for a glob."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", address)


class Store(ABC):
    """Reads tables and replaces months of them."""

    def __init__(self, session: SparkSession | None) -> None:
        self._known = session

    @property
    def _session(self) -> SparkSession:
        if self._known is None:
            raise StillwaterError("Without Spark tables are folders of Parquet on this machine.")
        return self._known

    @abstractmethod
    def read(self, table: Table) -> DataFrame:
        """Return a table; one that was never written is empty."""

    def some(self, table: Table, periods: Collection[str]) -> DataFrame | pa.Table:
        """Return the rows of some months where they are: in Spark, where there is one."""
        return self.read(table).where(F.col(PARTITION).isin(*periods))

    def rows(
        self, table: Table, periods: Collection[str] | None = None, **equal: str
    ) -> list[Found]:
        """Return the rows of some months, or of all, in which these columns are so."""
        frame = self.read(table)
        if periods is not None:
            frame = frame.where(F.col(PARTITION).isin(*periods))
        for name, value in equal.items():
            frame = frame.where(F.col(name) == value)
        return frame.collect()

    @abstractmethod
    def replace(self, table: Table, rows: Rows, periods: Collection[str]) -> None:
        """Make these months of the table hold these rows and no others; other months stay."""

    def tidy(self, now: datetime) -> None:  # noqa: B027 - most stores have nothing to let go of
        """Let go of what is kept for audit and is too old for that; of most tables nothing is."""

    def _frame(self, table: Table, rows: Rows, periods: Collection[str]) -> DataFrame:
        """Return what is to be written: rows of these months, of the table's shape."""
        if not isinstance(rows, DataFrame):
            rows = self._session.createDataFrame(_known(table, rows), table.schema)
        frame = require_schema(rows, table.schema, f"The table {table.name}")
        return frame.where(F.col(PARTITION).isin(*periods))


class ParquetStore(Store):
    """Tables as folders of Parquet, one folder per month below each.

    On this machine's disk rows are read and written without Spark.
    """

    def __init__(self, session: SparkSession | None, root: str) -> None:
        super().__init__(session)
        self._root = root.rstrip("/")
        self._is_local = self._root.startswith("/")

    def rows(
        self, table: Table, periods: Collection[str] | None = None, **equal: str
    ) -> list[Found]:
        if not self._is_local:
            return super().rows(table, periods, **equal)
        return arrow_rows.rows_of(self._table(table, periods, equal))

    def _table(
        self, table: Table, periods: Collection[str] | None, equal: Mapping[str, str]
    ) -> pa.Table:
        folders = sorted(Path(self._address(table)).glob(f"{PARTITION}=*"))
        found = [arrow_rows.table_of([], table.schema)]
        for folder in folders:
            period = folder.name.partition("=")[2]
            if periods is not None and period not in periods:
                continue
            files = [path for path in sorted(folder.iterdir()) if path.name[0] not in "._"]
            found.append(arrow_rows.read(files, table.schema, {PARTITION: period}, equal))
        return pa.concat_tables(found)

    def read(self, table: Table) -> DataFrame:
        if not self._exists(self._address(table)):
            return self._session.createDataFrame([], table.schema)
        # Not by inference: a column that is null in every row would have no type, and a partition
        # would become a date or a number.
        read = self._session.read.schema(table.schema).parquet(
            literal_address(self._address(table))
        )
        return require_schema(read, table.schema, f"The table {table.name}")

    def some(self, table: Table, periods: Collection[str]) -> DataFrame | pa.Table:
        if self._known is None:
            return self._table(table, periods, {})
        return super().some(table, periods)

    def replace(self, table: Table, rows: Rows, periods: Collection[str]) -> None:
        if self._is_local and not isinstance(rows, DataFrame):
            known = _known(table, rows)
            for period in periods:
                own = known.filter(pc.equal(known[PARTITION], period))
                path = Path(self._month(table, period))
                arrow_rows.replace(path, own.drop_columns([PARTITION]))
            return
        chosen = self._frame(table, rows, periods)
        before = {period: self._files(table, period) for period in periods}
        writer = chosen.write.mode("overwrite").partitionBy(PARTITION)
        writer.option("partitionOverwriteMode", "dynamic").parquet(self._address(table))
        # An overwrite leaves a month that it has no rows for as it was: it is empty now.
        emptied = [p for p, files in before.items() if files == self._files(table, p)]
        if self._is_local:
            self.replace(table, [], emptied)
            return
        for path in (self._path(self._month(table, period)) for period in emptied):
            path.getFileSystem(self._configuration()).delete(path, True)  # noqa: FBT003 - Java's

    def _files(self, table: Table, period: str) -> list[str]:
        address = self._month(table, period)
        if self._is_local:
            return sorted(path.name for path in Path(address).glob("*"))
        if not self._exists(address):
            return []
        path = self._path(address)
        found = path.getFileSystem(self._configuration()).listStatus(path)
        return sorted(str(status.getPath().getName()) for status in found)

    def _month(self, table: Table, period: str) -> str:
        return f"{self._address(table)}/{PARTITION}={period}"

    def _address(self, table: Table) -> str:
        return f"{self._root}/{table.name}"

    def _exists(self, address: str) -> bool:
        path = self._path(address)
        return bool(path.getFileSystem(self._configuration()).exists(path))

    def _path(self, address: str) -> Any:
        jvm: Any = self._session._jvm  # noqa: SLF001 - pyspark has no other way to Hadoop's files
        return jvm.org.apache.hadoop.fs.Path(address)

    def _configuration(self) -> Any:
        context: Any = self._session._jsc  # noqa: SLF001 - the same
        return context.hadoopConfiguration()


class IcebergStore(Store):
    """Tables of an Iceberg catalog: every refresh is a snapshot, kept for audit."""

    def __init__(self, session: SparkSession, namespace: str) -> None:
        super().__init__(session)
        self._namespace = namespace
        self._written: set[str] = set()
        # Tables are written side by side, and the namespace is the first one's to make.
        self._making = Lock()

    def read(self, table: Table) -> DataFrame:
        if not self._session.catalog.tableExists(self._name(table)):
            return self._session.createDataFrame([], table.schema)
        there = self._session.table(self._name(table))
        # A column that this version added is null in a table not written since.
        new = [field for field in table.schema.fields if field.name not in there.columns]
        added = {field.name: F.lit(None).cast(field.dataType) for field in new}
        return require_schema(there.withColumns(added), table.schema, f"The table {table.name}")

    def replace(self, table: Table, rows: Rows, periods: Collection[str]) -> None:
        chosen = self._frame(table, rows, periods)
        with self._making:
            self._make(table)
        self._written.add(table.name)
        # The condition also empties a month that has no rows any more, in the same commit.
        chosen.writeTo(self._name(table)).overwrite(F.col(PARTITION).isin(*periods))

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
        if not self._session.catalog.tableExists(name):
            columns = ", ".join(
                f"{f.name} {f.dataType.simpleString()}" for f in table.schema.fields
            )
            self._session.sql(
                f"CREATE TABLE {name} ({columns}) USING iceberg PARTITIONED BY ({PARTITION}) "
                f"TBLPROPERTIES ('format-version'='2')"
            )
            return
        there = {f.name: f.dataType for f in self._session.table(name).schema.fields}
        changed = [
            f.name for f in table.schema.fields if there.get(f.name, f.dataType) != f.dataType
        ]
        if changed:
            problem = (
                f"The table {name} holds {', '.join(changed)} as another type than this version "
                f"writes; rename the table, and ingest its months again."
            )
            raise InvalidInput([problem])
        new = [f for f in table.schema.fields if f.name not in there]
        if new:
            added = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in new)
            self._session.sql(f"ALTER TABLE {name} ADD COLUMNS ({added})")
