"""Reads an export's Parquet in Arrow, here or in S3, and adds its lines up as it reads them.

Spark makes rows of columns before it can add anything up; here Python workers of the same Spark job
hand it rows that stand for a day (spark.ingest.combine). Whatever this cannot do (files that its
workers cannot open, another format, money that is delivered as text) Spark's own reader does: the
same lines, slower.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped] # the same
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from core.cost.pricing import total as exactly
from core.ground.errors import InvalidInput, passed_on
from spark.ingest.combine import combined_lines, merged_tables, total
from spark.ingest.control import Control
from spark.ingest.grain import Grain
from spark.ingest.objects import is_known, parquet
from spark.ingest.sieve import sieved_lines
from spark.ingest.workers import LineByLine, not_opened, reason_against
from spark.schemas import PARTS

# More lines than these of a row group are added up apart, which bounds a worker's memory.
LINES_AT_ONCE = 1 << 20
# Rows that stand for a day, of some hundred bytes each, which a worker holds to add up more.
ROWS_HELD = 1 << 20
# Of each core, so that none waits long for the other's last one.
PARTS_PER_CORE = 2
# A share that a worker lost is read again.
LINES_OF_A_SHARE = 8 << 20
FOOTERS_AT_ONCE = 16
PARQUET = ".parquet"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Piece:
    """A row group of a file."""

    address: str
    row_group: int
    lines: int
    period: str


@dataclass(frozen=True)
class AddedUp:
    """Rows that stand for CHARGES lines each, and the control totals of all lines."""

    lines: DataFrame
    control: Callable[[], Mapping[str, Control]]


@dataclass(frozen=True)
class Columns:
    """The columns of an export's months."""

    session: SparkSession
    pieces: Sequence[Piece]
    schema: pa.Schema
    # The column that says which month a piece was delivered for.
    period: str

    def added_up(
        self,
        required: Collection[str],
        optional: Collection[str],
        amounts: Collection[str],
        cost: str,
        grain: Grain,
    ) -> AddedUp | None:
        """Return these columns as rows that stand for CHARGES lines each, or None if Spark must.

        `amounts` are those of the columns to add up, PARTS afterwards; they must be delivered as
        doubles. Case does not matter. An optional amount that is not delivered is null.
        """
        spelled = {name.lower(): name for name in self.schema.names}
        there = [spelled[n.lower()] for n in (*required, *optional) if n.lower() in spelled]
        summed = [spelled[n.lower()] for n in amounts if n.lower() in spelled]
        is_whole = all(name.lower() in spelled for name in required)
        if not is_whole or not all(pa.types.is_float64(self._kind(name)) for name in summed):
            return None
        # Tags as a list or as fields of their own are no export's of AWS's, nor are texts as views,
        # which Spark takes from no worker.
        if any(_is_nested(kind) or _is_view(kind) for kind in map(self._kind, there)):
            return None
        wanted = pa.schema([field for field in self.schema if field.name in there])
        like = combined_lines(pa.RecordBatch.from_pylist([], wanted), summed)
        like = like.append_column(self.period, pa.array([], pa.string()))
        kind = from_arrow_schema(like.schema, prefer_timestamp_ntz=True)
        shares = self._shares()
        rows = _Rows(shares, wanted, tuple(summed), self.period, kind, grain)
        lines = self.session.range(0, len(shares), 1, len(shares)).mapInArrow(rows, kind)
        absent = {n: F.lit(None).cast(PARTS) for n in amounts if n.lower() not in spelled}
        return AddedUp(lines.withColumns(absent), partial(self._control, spelled[cost.lower()]))

    def values(self, name: str) -> set[str]:
        """Return the different texts of a column, read past all the others."""
        parts = self._of_each(partial(_values, name=name))
        return set[str]().union(*parts)

    def _kind(self, name: str) -> pa.DataType:
        return self.schema.field(name).type

    def _control(self, cost: str) -> dict[str, Control]:
        """Return what each month's files hold, straight from their cost column."""
        found = self._of_each(partial(_piece_control, cost=cost))
        months: dict[str, Control] = defaultdict(lambda: Control(0, 0, Decimal(0)))
        for piece, control in zip(self.pieces, found, strict=True):
            months[piece.period] += control
        return {period: month for period, month in sorted(months.items()) if month.lines}

    def _of_each(self, told: Callable[[Piece], T]) -> list[T]:
        """Return what is told of each piece, by threads here or by a cluster's workers."""
        if _is_local(self.session):
            with ThreadPoolExecutor(self.session.sparkContext.defaultParallelism) as pool:
                return list(pool.map(told, self.pieces))
        count = len(self._shares())
        return self.session.sparkContext.parallelize(self.pieces, count).map(told).collect()

    def _shares(self) -> list[list[Piece]]:
        return _shares(self.pieces, self.session.sparkContext.defaultParallelism)


def month_columns(
    session: SparkSession, months: Sequence[tuple[str, Sequence[str]]], period: str
) -> Columns | None:
    """Return the columns of these months' files, or None where only Spark can read them.

    `months` holds a billing period and its files each. Raises LineByLine where a cluster lacks what
    it takes.
    """
    files = [(month, address) for month, addresses in months for address in addresses]
    addresses = [address for _, address in files]
    if not all(address.endswith(PARQUET) and is_known(address) for address in addresses):
        return None
    try:
        with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
            footers = list(pool.map(_footer, addresses))
        schema = pa.unify_schemas([schema for schema, _ in footers])
    except (pa.ArrowException, OSError) as error:
        # Spark's own reader says what is wrong with a file, or can read it.
        if isinstance(error, OSError) and not _is_local(session):
            raise LineByLine(not_opened(addresses[0], error)) from None
        return None
    if len({name.lower() for name in schema.names}) < len(schema.names):
        # Some file writes its columns in other letters, which Spark takes for the same.
        return None
    pieces = [
        Piece(address, number, lines, month)
        for (month, address), (_, groups) in zip(files, footers, strict=True)
        for number, lines in enumerate(groups)
    ]
    if not pieces:
        return None
    reason = None if _is_local(session) else reason_against(session, addresses[0])
    if reason is not None:
        raise LineByLine(reason)
    return Columns(session, pieces, schema, period)


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind)) and not pa.types.is_map(kind)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _is_local(session: SparkSession) -> bool:
    return str(session.sparkContext.master).startswith("local")


def _footer(address: str) -> tuple[pa.Schema, list[int]]:
    """Return a file's columns, and how many lines each of its row groups has."""
    with parquet(address) as file:
        groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        return file.schema_arrow.remove_metadata(), groups


def _piece_control(piece: Piece, cost: str) -> Control:
    """Return what a piece holds, straight from its cost column, which its file may lack."""
    with _read(piece) as file:
        if cost not in file.schema_arrow.names:
            return Control(piece.lines, piece.lines, Decimal(0))
        column = file.read_row_group(piece.row_group, [cost], use_threads=False)[cost]
        sums = [total(chunk) for chunk in column.chunks]
    known = sum(count for count, _ in sums)
    return Control(piece.lines, piece.lines - known, exactly(billed for _, billed in sums))


def _values(piece: Piece, name: str) -> set[str]:
    with _read(piece, [name]) as file:
        if name not in file.schema_arrow.names:
            return set()
        column = file.read_row_group(piece.row_group, [name], use_threads=False)[name]
        return {value for value in column.unique().to_pylist() if value is not None}


@dataclass(frozen=True)
class _Rows:
    """What a worker does: reads the pieces of its share one after the other, and adds each up."""

    shares: Sequence[Sequence[Piece]]
    wanted: pa.Schema
    amounts: Sequence[str]
    period: str
    kind: StructType
    grain: Grain

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shape = to_arrow_schema(self.kind)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in self._added_up(self.shares[number], shape):
                    yield from rows.select(shape.names).to_batches()

    def _added_up(self, pieces: Sequence[Piece], shape: pa.Schema) -> Iterator[pa.Table]:
        """Add up what several pieces have of a day: files need not hold days of their own.

        What is held meanwhile stays below ROWS_HELD, whatever a bill's order.
        """
        held: list[pa.Table] = []
        for piece in pieces:
            for rows in self._of(piece):
                # A column in which a file has nothing may be of no kind there.
                held.append(rows.select(shape.names).cast(shape))
                if sum(each.num_rows for each in held) > ROWS_HELD:
                    held = [merged_tables(held, self.amounts)]
                    if held[0].num_rows > ROWS_HELD // 2:
                        yield held.pop()
        if held:
            yield merged_tables(held, self.amounts)

    def _of(self, piece: Piece) -> Iterator[pa.Table]:
        with _read(piece, _texts(self.wanted)) as file:
            there = [name for name in self.wanted.names if name in file.schema_arrow.names]
            for lines in file.iter_batches(
                LINES_AT_ONCE, [piece.row_group], there, use_threads=False
            ):
                rows = combined_lines(
                    sieved_lines(_with_all(lines, self.wanted), self.grain), self.amounts
                )
                period = pa.repeat(pa.scalar(piece.period), rows.num_rows)
                yield rows.append_column(self.period, period)


@contextmanager
def _read(piece: Piece, numbered: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Yield a piece's file; one that is damaged, or cannot be added up, is a sentence."""
    try:
        with parquet(piece.address, tuple(numbered)) as file:
            yield file
    except (pa.ArrowException, OSError, OverflowError) as error:
        ours = f"The file {Path(piece.address).name} is damaged; export it again."
        raise InvalidInput([passed_on(ours, error)]) from error


def _texts(schema: pa.Schema) -> list[str]:
    """Return the Parquet columns to read as numbers of a dictionary: texts, and those in maps."""
    found = []
    for field in schema:
        if pa.types.is_map(field.type):
            found += [f"{field.name}.key_value.key", f"{field.name}.key_value.value"]
        elif pa.types.is_string(field.type):
            found.append(field.name)
    return found


def _with_all(lines: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Return the lines with every column; one that AWS added later is null before that."""
    columns = [
        lines[field.name]
        if field.name in lines.schema.names
        else pa.nulls(lines.num_rows, field.type)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, names=wanted.names)


def _shares(pieces: Sequence[Piece], cores: int) -> list[list[Piece]]:
    """Share pieces out evenly by their lines, the largest first."""
    lines = sum(piece.lines for piece in pieces)
    count = min(len(pieces), max(cores * PARTS_PER_CORE, -(-lines // LINES_OF_A_SHARE)))
    shares: list[list[Piece]] = [[] for _ in range(count)]
    sizes = [0] * count
    for piece in sorted(pieces, key=lambda piece: piece.lines, reverse=True):
        least = sizes.index(min(sizes))
        shares[least].append(piece)
        sizes[least] += piece.lines
    return shares
