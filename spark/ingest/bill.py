"""Reads any bill: opens its files, says by their columns which format it is, and has it added up.

    shares of its files -> worker (spark.ingest.share) -> sum of each key -> the rows of USAGE

Threads of this process do it, or workers of Spark's. No line of the bill comes to the driver, but
for those that cannot be read. Athena, Hive and Spark take the columns that a table is partitioned
by out of its files (`key=value`).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from core.ground.errors import InvalidInput, passed_on
from spark.files import Files, address_of, files_of, fingerprint, is_known, opened
from spark.ingest import cur, focus, manifest, splits, unread_lines
from spark.ingest.layout import Layout, distinct_names, letters
from spark.ingest.pieces import HEADER_BYTES, Piece, footer, members, read_header, unpacked
from spark.ingest.share import SUMS, USAGE_KEYS, USAGE_ROWS, Share, usage_rows
from spark.ingest.unread_lines import NO_LINES, Control
from spark.months import Refresh
from spark.rows import Found, rows_of
from spark.session import REMEDY, Engine
from spark.tables import QUARANTINE
from spark.tag_keys import OURS, KafkaTags

# Of each core, so that none waits long for the other's last one.
PARTS_PER_CORE = 2
# A share that a worker lost is read again.
LINES_OF_A_SHARE = 8 << 20
# Threads that read a bill here: most of it is done by libraries that let others run meanwhile.
THREADS = min(4, os.cpu_count() or 1)
# Of fewer lines one worker has added them up before two have started.
LINES_OF_ONE_SHARE = 300_000
OWN, CAUSED = f"{InvalidInput.__module__}.{InvalidInput.__name__}: ", "Caused by: "


@dataclass(frozen=True, kw_only=True)
class Source:
    """A bill's files as pieces, and what its manifests say.

    `refreshes` are the months that manifests describe; files that none does have a `fingerprint`
    together.
    """

    label: str
    pieces: Sequence[Piece]
    refreshes: Mapping[str, Refresh] = field(default_factory=dict)
    fingerprint: str = ""
    simulated: bool = False
    # Whether it is CUR 2.0 or FOCUS, whatever columns a query chose to have.
    is_data_export: bool = False
    # What the bill cannot say, and what would make it.
    notes: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """Return the columns of all files; one that AWS added later is nothing before that."""
        return distinct_names([(*piece.columns, *piece.said) for piece in self.pieces])


@dataclass(frozen=True, kw_only=True)
class Delivery(Source):
    """One bill as delivered.

    Its pieces are read by workers, and once more for the control totals, past every transform.
    """

    # None where nothing but this process reads it.
    session: SparkSession | None
    layout: Layout
    # What each month's files hold, straight from their cost column.
    control: Mapping[str, Control]

    @property
    def kafka(self) -> KafkaTags:
        """Return what says that a line is Kafka's."""
        return self.layout.kafka

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
        return self._found(partial(unread_lines.unread, layout=self.layout), QUARANTINE.schema)

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


def surveyed(
    session: SparkSession | None, pieces: Sequence[Piece], layout: Layout
) -> tuple[dict[str, Control], frozenset[str]]:
    """Return control totals by month, past every transform, and the kinds of the lines."""
    work = partial(unread_lines.survey, layout=layout)
    rows = rows_of(made_of_pieces(session, pieces, work, unread_lines.SURVEY_ROWS))
    control: dict[str, Control] = defaultdict(lambda: NO_LINES)
    for period, lines, lines_without_cost, billed, _ in rows:
        control[period] += Control(lines, lines_without_cost, billed)
    kinds = frozenset(kind for row in rows for kind in row.kinds if kind is not None)
    return dict(sorted(control.items())), kinds


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn Spark's complaint about a file it cannot read into one sentence."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidInput([complaint(what, str(error))]) from error


def complaint(what: str, theirs: str) -> str:
    """Return what cannot be read and what to do, of a cause that nobody knows in Spark's words."""
    if known := _known_cause(theirs):
        return f"{what} cannot be read: {known}"
    lines = [line.strip() for line in theirs.splitlines() if line.strip()]
    caused = [line for line in lines if line.startswith(CAUSED)]
    ours = f"{what} cannot be read by Spark. Copy it again, or export it again as Parquet."
    return passed_on(ours, (caused or lines[:1] or [""])[-1].removeprefix(CAUSED))


def _known_cause(theirs: str) -> str | None:
    """Return what a complaint of Spark's means and what to do, or None where that is not known."""
    if "No module named 'pyarrow'" in theirs:
        return f"its workers lack pyarrow; {REMEDY}"
    # A worker says why in a sentence of ours, which stands below its stack.
    said = [line.strip() for line in theirs.splitlines() if line.strip().startswith(OWN)]
    return said[-1].removeprefix(OWN) if said else None


FOOTERS_AT_ONCE = 16
# What a line of text takes, as it is and packed.
LINE_BYTES, PACKED_BYTES = 1_000, 50
UNLISTED = (
    "No manifest names the bill's files: all {:,} data files of the folder are read. A line in "
    "two of them counts twice."
)
EMPTY = "The manifest of {} names no files: nothing of it was delivered."
# A folder's key that means a line's month, as Data Exports and Glue partition a bill.
MONTH_KEY = "billingperiod"
# Stands for nothing in a folder's name.
NOTHING = "__HIVE_DEFAULT_PARTITION__"
PLAIN = (".csv", ".csv.gz", ".gz", ".parquet", ".zip")
COLUMNS_SHOWN = 5
# Of those that a format's lines need: an invoice of another kind has one or two by chance.
FEWEST_OF_A_FORMAT = 3

# Lines of Parquet that take as long as one of text, which Python reads, one thread at a time.
TEXT_LINE = 10


def read(
    address: str | Path,
    *,
    months: Collection[str] = (),
    kafka: KafkaTags = OURS,
    engine: Engine | None = None,
) -> Delivery:
    """Read the newest delivery of every billing period of an export, or of these months.

    `engine` says what adds it up: this process where there is none. `address` is an export's folder
    (the one holding data/ and metadata/) or one file, on this machine or in S3. Raises InvalidInput
    for what is no bill; a row that cannot be read keeps its reason.
    """
    what = f"The bill {address}"
    with readable(what):
        place = address_of(address)
        found = open_source(files_of(place), place, months, what)
        return _delivery(engine, found, what, kafka)


def reader_of(columns: Sequence[str]) -> Callable[..., Layout] | None:
    """Return the reader of the format of which most needed columns are there; None of a few."""
    as_focus = {letters(name) for name in columns} & {letters(name) for name in focus.REQUIRED}
    as_cur = {cur.modern_name(name).lower() for name in columns} & set(cur.REQUIRED)
    found, reader = max(
        (len(as_focus), focus.opened), (len(as_cur), cur.opened), key=lambda each: each[0]
    )
    return reader if found >= FEWEST_OF_A_FORMAT else None


def _delivery(engine: Engine | None, found: Source, what: str, kafka: KafkaTags) -> Delivery:
    columns = found.columns
    known = {cur.modern_name(name).lower() for name in columns}
    if {focus.COST.lower(), cur.COST} <= known:
        problem = f"{what} holds bills of two formats, FOCUS and Cost and Usage Report; name one."
        raise InvalidInput([problem])
    reader = reader_of(columns)
    if reader is None:
        problem = (
            f"{what} is neither a Cost and Usage Report nor FOCUS: its columns are "
            f"{', '.join(name.strip() for name in columns[:COLUMNS_SHOWN])} and so on. Name an "
            f"export's folder or file."
        )
        raise InvalidInput([problem])
    layout = reader(columns, what, kafka, is_data_export=found.is_data_export)
    pieces = [
        replace(
            piece,
            places=layout.places(piece.columns),
            said={name: piece.said[place] for name, place in layout.places([*piece.said]).items()},
        )
        for piece in found.pieces
    ]
    lines = sum(piece.lines * (1 if piece.header is None else TEXT_LINE) for piece in pieces)
    session = engine(lines) if engine is not None else None
    control, kinds = surveyed(session, pieces, layout)
    delivered = {
        **vars(found),
        "pieces": pieces,
        "notes": [*layout.notes, *layout.notes_of(kinds), *found.notes],
    }
    return Delivery(session=session, layout=layout, control=control, **delivered)


def open_source(files: Files, address: str, months: Collection[str], what: str) -> Source:
    """Open a folder by its manifests, or a single file; `months` leaves the others unread."""
    if unlisted := manifest.unlisted(files, address):
        note = UNLISTED.format(len(unlisted))
        return _loose(files, unlisted, what, address, [note])
    if files.is_folder(address):
        return _export(files, address, months, what)
    if not files.is_file(address):
        raise InvalidInput([f"{what} is not there; name an export's folder, or one file of it."])
    if not address.endswith(PLAIN):
        raise InvalidInput(
            [f"{what} is neither .csv, .csv.gz, .zip nor .parquet, the formats that can be read."]
        )
    return _loose(files, [address], what, address, [])


def label_of(address: str) -> str:
    """Return what a bill is called that no manifest names."""
    return address.rsplit("/", 1)[-1]


def _loose(
    files: Files, addresses: Sequence[str], what: str, named: str, notes: Sequence[str]
) -> Source:
    """Open files that no manifest describes: their lines say which month they are of."""
    pieces = _pieces(files, [(None, address) for address in addresses], what)
    if not addresses[0].endswith(manifest.ZIP):
        pieces = _with_said(pieces, named)
    mark = fingerprint(files.versions(named), named, addresses)
    return Source(label=label_of(named), pieces=pieces, fingerprint=mark, notes=notes)


def _export(files: Files, address: str, months: Collection[str], what: str) -> Source:
    export = manifest.pinned(files, address, months)
    of_months = [(month.period, file) for month in export.months for file in month.files]
    return Source(
        label=export.name,
        pieces=_pieces(files, of_months, what),
        refreshes={month.period: month.refresh for month in export.months},
        simulated=export.simulated,
        is_data_export=export.is_data_export,
        notes=[EMPTY.format(" and ".join(export.empty))] if export.empty else [],
    )


def _pieces(files: Files, addresses: Sequence[tuple[str | None, str]], what: str) -> list[Piece]:
    """Return files as pieces, each with the month that it was delivered for."""
    for _, address in addresses:
        if not is_known(address):
            problem = (
                f"{what}: workers cannot open {address}; name a folder of this machine, or S3."
            )
            raise InvalidInput([problem])
    if addresses[0][1].endswith(manifest.PARQUET):
        with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
            made = pool.map(_of_parquet, *zip(*addresses, strict=True))
            return [piece for found in made for piece in found]
    count = len(addresses)
    found = [
        piece
        for period, address in addresses
        for piece in _of_text(
            files, address, period, what if count == 1 else f"{what}: {label_of(address)}"
        )
    ]
    _require_one_bills(found, what)
    return found


def _of_parquet(period: str | None, address: str) -> list[Piece]:
    try:
        columns, groups = footer(address)
    except (pa.ArrowException, OSError) as error:
        ours = f"The file {label_of(address)} is damaged, or no Parquet file; export it again."
        raise InvalidInput([passed_on(ours, error)]) from error
    return [Piece(address, period, columns, count, number) for number, count in enumerate(groups)]


def _of_text(files: Files, address: str, period: str | None, what: str) -> list[Piece]:
    if not address.endswith(manifest.ZIP):
        data = files.read(address, HEADER_BYTES)
        is_packed = address.endswith(".gz")
        header = read_header(data, what, is_packed=is_packed)
        count = _lines_of(files.versions(address)[address], is_packed=is_packed)
        return [Piece(address, period, header.names, count, header=header)]
    pieces = []
    with opened(address) as stream:
        for member in members(stream, address):
            with unpacked(stream, address, member) as inner:
                header = read_header(inner.read(HEADER_BYTES), what)
            pieces.append(Piece(address, period, header.names, header=header, member=member))
    count = _lines_of(files.versions(address)[address], is_packed=True) // len(pieces)
    return [replace(piece, lines=count) for piece in pieces]


def _lines_of(version: str, *, is_packed: bool) -> int:
    """Return about how many lines a file of text has, by its size."""
    return int(version.split("-", 1)[0]) // (PACKED_BYTES if is_packed else LINE_BYTES)


def _require_one_bills(pieces: Sequence[Piece], what: str) -> None:
    """Refuse files that have little in common with the first: months have other tags, no more."""
    first, *others = pieces
    for other in others:
        shared = {name.lower() for name in other.columns} & {name.lower() for name in first.columns}
        if 2 * len(shared) < min(len(other.columns), len(first.columns)):
            problem = (
                f"{what}: {other.name} has other columns than {first.name}; name one bill's files "
                f"alone."
            )
            raise InvalidInput([problem])


def _with_said(pieces: Sequence[Piece], place: str) -> list[Piece]:
    """Return pieces with what the folders below `place` say of their lines.

    A column that any file has counts before its folder's name.
    """
    known = {letters(name) for piece in pieces for name in piece.columns}
    return [replace(piece, said=said_by_folders(place, piece.address, known)) for piece in pieces]


def said_by_folders(place: str, address: str, known: Iterable[str]) -> dict[str, str]:
    """Return what a file's folders say of its lines, of columns that no file has.

    `place` is the folder that was named, `known` the letters of the columns that files have.
    """
    held = set(known)
    is_focus = not held.isdisjoint({"billedcost", "effectivecost"})
    month = "BillingPeriodStart" if is_focus else "bill_billing_period_start_date"
    said: dict[str, str] = {}
    for part in address.removeprefix(place).rpartition("/")[0].split("/"):
        key, _, value = part.partition("=")
        # Hive and Spark escape a time's colons.
        said.setdefault(month if letters(key) == MONTH_KEY else key, unquote(value))
    return {
        name: value
        for name, value in said.items()
        if letters(name) not in held and value not in ("", NOTHING)
    }
