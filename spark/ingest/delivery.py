"""Defines a bill as delivered, and adds it up: in threads here, or in workers of Spark's.

    shares of its files -> worker (spark.ingest.share) -> sum of each key -> the rows of USAGE

No line of the bill comes to the driver, but for those that cannot be read.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from core.ground.errors import InvalidInput, passed_on
from spark.ingest import splits, unread_lines
from spark.ingest.layout import Layout
from spark.ingest.pieces import Piece
from spark.ingest.share import SUMS, USAGE_KEYS, USAGE_ROWS, Share, usage_rows
from spark.ingest.unread_lines import NO_LINES, Control
from spark.months import Refresh
from spark.packages import REMEDY
from spark.rows import Found, rows_of
from spark.schemas import QUARANTINE
from spark.tag_keys import KafkaTags

# Of each core, so that none waits long for the other's last one.
PARTS_PER_CORE = 2
# A share that a worker lost is read again.
LINES_OF_A_SHARE = 8 << 20
# Threads that read a bill here: most of it is done by libraries that let others run meanwhile.
THREADS = min(4, os.cpu_count() or 1)
# Of fewer lines one worker has added them up before two have started.
LINES_OF_ONE_SHARE = 300_000
OWN, CAUSED = f"{InvalidInput.__module__}.{InvalidInput.__name__}: ", "Caused by: "


@dataclass(frozen=True)
class Delivery:
    """One bill as delivered.

    `refreshes` are the months that manifests describe; files that none does have a `fingerprint`
    together. `pieces` are read by workers, and once more for the control totals, past every
    transform.
    """

    # None where nothing but this process reads it.
    session: SparkSession | None
    label: str
    layout: Layout
    pieces: Sequence[Piece]
    surveyed: Surveyed
    refreshes: Mapping[str, Refresh] = field(default_factory=dict)
    fingerprint: str = ""
    simulated: bool = False
    # What the bill cannot say, and what would make it.
    notes: Sequence[str] = ()

    @property
    def kafka(self) -> KafkaTags:
        """Return what says that a line is Kafka's."""
        return self.layout.kafka

    @property
    def control(self) -> Mapping[str, Control]:
        """Return what each month's files hold, straight from their cost column."""
        return self.surveyed.control

    def usage(self) -> pa.Table:
        """Return the bill as USAGE, and `flow`, `easy`, is_unreadable and has_net beside it."""
        if self.session is not None:
            work = partial(usage_rows, layout=self.layout)
            rows = _by_workers(self.session, self.pieces, work, USAGE_ROWS)
            sums = [F.sum(name).alias(name) for name in SUMS]
            made = rows.groupBy(*USAGE_KEYS).agg(*sums, F.max("has_net").alias("has_net"))
            return made.toArrow().cast(USAGE_ROWS)
        shares = shares_of(self.pieces, THREADS)
        with ThreadPoolExecutor(THREADS) as pool:
            whole, *others = pool.map(partial(Share.of, layout=self.layout), shares)
        for other in others:
            whole.join(other)
        return pa.Table.from_batches(whole.rows(), USAGE_ROWS)

    @cached_property
    def unread_lines(self) -> list[Found]:
        """The lines that cannot be read, each with its reason: QUARANTINE."""
        return self._found(partial(unread_lines.unread, layout=self.layout), QUARANTINE)

    def tags_found(self) -> list[Found]:
        """Return every tag of every line, counted and summed: TAGS_FOUND once they are chosen."""
        return self._found(partial(unread_lines.tags, layout=self.layout), unread_lines.TAG_ROWS)

    def pod_shares(self, instances: Collection[str]) -> list[Found]:
        """Return what pods had of these instances on each day, as POD_ROWS."""
        hours = partial(splits.hours, instances=frozenset(instances))
        parts = splits.parts_of(self._made(hours, splits.HOUR_ROWS))
        work = partial(splits.pods, layout=self.layout, parts=parts)
        return rows_of(splits.shares_of_days(self._made(work, splits.POD_ROWS)))

    def _found(self, work: Work, shape: pa.Schema) -> list[Found]:
        return rows_of(self._made(work, shape))

    def _made(self, work: Work, shape: pa.Schema) -> pa.Table:
        return made_of_pieces(self.session, self.pieces, work, shape)


# What is made of some pieces of a bill, batch by batch.
Work = Callable[[Sequence[Piece]], Iterator[pa.RecordBatch]]


def made_of_pieces(
    session: SparkSession | None, pieces: Sequence[Piece], work: Work, shape: pa.Schema
) -> pa.Table:
    """Return what workers of Spark's make of a bill, or threads of this process; it must be small.

    Threads take a piece at a time, and what they make is in the order of the pieces.
    """
    if session is not None:
        return _by_workers(session, pieces, work, shape).toArrow().cast(shape)
    with ThreadPoolExecutor(THREADS) as pool:
        made = pool.map(lambda piece: list(work([piece])), pieces)
        return pa.Table.from_batches(chain.from_iterable(made), shape)


def _by_workers(
    session: SparkSession, pieces: Sequence[Piece], work: Work, shape: pa.Schema
) -> DataFrame:
    shares = shares_of(pieces, session.sparkContext.defaultParallelism)

    def made(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (each for batch in numbers for each in batch.column(0).to_pylist()):
            yield from work(shares[number])

    numbers = session.range(0, len(shares), 1, len(shares))
    return numbers.mapInArrow(made, from_arrow_schema(shape))


def shares_of(pieces: Sequence[Piece], cores: int) -> list[list[Piece]]:
    """Share pieces out evenly by their lines, the largest first."""
    lines = sum(piece.lines for piece in pieces)
    most = max(cores * PARTS_PER_CORE, -(-lines // LINES_OF_A_SHARE))
    is_small = lines < LINES_OF_ONE_SHARE and all(piece.header is None for piece in pieces)
    count = 1 if is_small else min(len(pieces), most)
    shares: list[list[Piece]] = [[] for _ in range(count)]
    sizes = [0] * count
    for piece in sorted(pieces, key=lambda piece: piece.lines, reverse=True):
        least = sizes.index(min(sizes))
        shares[least].append(piece)
        sizes[least] += piece.lines or 1
    return shares


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What a bill's files hold: its control totals by month, and the kinds of its lines."""

    control: Mapping[str, Control]
    kinds: frozenset[str]


def surveyed(session: SparkSession | None, pieces: Sequence[Piece], layout: Layout) -> Surveyed:
    """Return what pieces hold, read past every transform."""
    work = partial(unread_lines.survey, layout=layout)
    rows = rows_of(made_of_pieces(session, pieces, work, unread_lines.SURVEY_ROWS))
    control: dict[str, Control] = defaultdict(lambda: NO_LINES)
    for period, lines, lines_without_cost, billed, _ in rows:
        control[period] += Control(lines, lines_without_cost, billed)
    kinds = frozenset(kind for row in rows for kind in row.kinds if kind is not None)
    return Surveyed(dict(sorted(control.items())), kinds)


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn Spark's complaint about a file it cannot read into one sentence."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidInput([complaint(what, str(error))]) from error


def complaint(what: str, theirs: str) -> str:
    """Return what cannot be read and what to do, of a cause that nobody knows in Spark's words."""
    if known := _cause(theirs):
        return f"{what} cannot be read: {known}"
    lines = [line.strip() for line in theirs.splitlines() if line.strip()]
    caused = [line for line in lines if line.startswith(CAUSED)]
    ours = f"{what} cannot be read by Spark. Copy it again, or export it again as Parquet."
    return passed_on(ours, (caused or lines[:1] or [""])[-1].removeprefix(CAUSED))


def _cause(theirs: str) -> str | None:
    """Return what a complaint of Spark's means and what to do, or None where that is not known."""
    if "No module named 'pyarrow'" in theirs:
        return f"its workers lack pyarrow; {REMEDY}"
    # A worker says why in a sentence of ours, which stands below its stack.
    said = [line.strip() for line in theirs.splitlines() if line.strip().startswith(OWN)]
    return said[-1].removeprefix(OWN) if said else None
