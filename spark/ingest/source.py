"""Opens a bill's files: which they are, per month, and what columns they have.

Stands between the manifest, which says what was delivered, and the reader of each format.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructType

from core.ground.errors import InvalidInput
from spark.ingest import folder_names, lines, loose_files, manifest
from spark.ingest.files import Files, files_of, fingerprint
from spark.ingest.workers import SLOWLY, LineByLine, require_packages, without_packages
from spark.months import Refresh
from spark.tables import literal_address, quoted_name

if TYPE_CHECKING:
    from spark.ingest.arrow import Columns

# The month a file belongs to, as its manifest says; null for a file that has no manifest.
DELIVERED_PERIOD = "_delivered_period"
# Where a cluster's workers may all read and write for the length of a job (spark-submit --conf).
SCRATCH = "spark.stillwater.scratch"
UNLISTED = (
    "No manifest says which files are the bill: all {:,} data files of the folder are read, and a "
    "line that stands in two of them counts twice."
)
EMPTY = "The manifest of {} names no files: nothing of it was delivered."
# What Spark says of times as pandas writes them.
NANOSECONDS = "TIMESTAMP(NANOS"
IN_NANOSECONDS = (
    "holds times in nanoseconds, which cannot be read there; write it with times in microseconds "
    "(pandas: coerce_timestamps='us')."
)
PLAIN = (".csv", ".csv.gz", ".gz", ".parquet", ".zip")


@dataclass(frozen=True)
class Source:
    """A bill's delivered columns, as they are named in its files, and what its manifests say."""

    label: str
    # Reads one frame per month, of the same columns.
    read: Callable[[], Sequence[DataFrame]] = field(repr=False)
    # The same columns, where they can be added up as they are read.
    quick: Columns | None = None
    refreshes: Mapping[str, Refresh] = field(default_factory=dict)
    # Of files that no manifest describes.
    fingerprint: str = ""
    simulated: bool = False
    # Whether it is CUR 2.0 or FOCUS, whatever columns a query chose to have.
    is_data_export: bool = False
    # What the files do not say of themselves.
    notes: Sequence[str] = ()
    # The same source with quoted fields over several lines, if that is what is wrong with it.
    joined: Callable[[], Source | None] = lambda: None

    @cached_property
    def frames(self) -> Sequence[DataFrame]:
        return self.read()

    @cached_property
    def columns(self) -> list[str]:
        return list(self.quick.schema.names if self.quick else self.frames[0].columns)


def open_source(session: SparkSession, address: str, months: Collection[str], what: str) -> Source:
    """Open a folder by its manifests, or a single file; `months` leaves the others unread."""
    files = files_of(session, address)
    if unlisted := loose_files.unlisted(files, address):
        note = UNLISTED.format(len(unlisted))
        return replace(_files(session, files, unlisted, what, address), notes=[note])
    if files.is_folder(address):
        return _export(session, files, address, months, what)
    if not files.is_file(address):
        raise InvalidInput([f"{what} is not there; name an export's folder, or one file of it."])
    if address.rsplit("/", 1)[-1].startswith(("_", ".")):
        begins = "an underscore or a dot, by which Spark takes it for hidden"
        raise InvalidInput([f"{what} has a name that begins with {begins}; rename it."])
    if not address.endswith(PLAIN) and address.lower().endswith(PLAIN):
        name = address.rsplit("/", 1)[-1]
        raise InvalidInput([f"{what} has its ending in capitals; rename it {name.lower()}."])
    if not address.endswith(PLAIN):
        raise InvalidInput(
            [f"{what} is neither .csv, .csv.gz, .zip nor .parquet, the formats that can be read."]
        )
    return _files(session, files, [address], what, address)


def label_of(address: str) -> str:
    """Return what a bill is called that no manifest names."""
    return address.rsplit("/", 1)[-1]


def _files(
    session: SparkSession,
    files: Files,
    addresses: Sequence[str],
    what: str,
    named: str,
) -> Source:
    """Open files that no manifest describes: their lines say which month they are of."""

    def frames(*, joined: bool = False) -> list[DataFrame]:
        read = _read(session, files, addresses, what, joined=joined)
        if not addresses[0].endswith(manifest.ZIP):
            read = folder_names.with_columns(
                read, folder_names.columns_of_folders(named, addresses, read)
            )
        return [_with_period(read, None)]

    source = Source(
        label_of(named), frames, fingerprint=fingerprint(files.versions(named), named, addresses)
    )
    is_text = not addresses[0].endswith(manifest.PARQUET)
    return replace(source, joined=partial(_joined_source, source, frames)) if is_text else source


def _export(
    session: SparkSession, files: Files, address: str, months: Collection[str], what: str
) -> Source:
    export = manifest.pinned(files, address, months)

    def frames(*, joined: bool = False) -> list[DataFrame]:
        # Month by month: the delivery says which month a file is of, and a month not asked for is
        # not opened at all.
        return _of_one_shape(
            [
                _with_period(_read(session, files, month.files, what, joined=joined), month.period)
                for month in export.months
            ]
        )

    quick, notes = _quick(session, export)
    if export.empty:
        notes = [*notes, EMPTY.format(" and ".join(export.empty))]
    source = Source(
        label=export.name,
        read=frames,
        quick=quick,
        refreshes={month.period: month.refresh for month in export.months},
        simulated=export.simulated,
        is_data_export=export.is_data_export,
        notes=notes,
    )
    is_text = export.suffix != manifest.PARQUET
    return replace(source, joined=partial(_joined_source, source, frames)) if is_text else source


def _joined_source(source: Source, frames: Callable[..., Sequence[DataFrame]]) -> Source | None:
    """Return the source with joined lines, or None where that makes nothing whole."""
    again = frames(joined=True)
    pairs = zip(source.frames, again, strict=True)
    if not all(lines.is_joined(apart, joined) for apart, joined in pairs):
        return None
    return replace(source, read=lambda: again, joined=lambda: None)


def _quick(session: SparkSession, export: manifest.Export) -> tuple[Columns | None, Sequence[str]]:
    """Return a Parquet export's columns where they can be added up, and else what keeps them."""
    if export.suffix != manifest.PARQUET:
        return None, ()
    try:
        # A cluster has Spark's own packages, and pyarrow is none of them.
        require_packages()
        from spark.ingest import arrow  # noqa: PLC0415
    except ImportError as error:
        return None, (SLOWLY.format(reason=without_packages(error)),)
    months = [(month.period, month.files) for month in export.months]
    try:
        return arrow.month_columns(session, months, DELIVERED_PERIOD), ()
    except LineByLine as reason:
        return None, (SLOWLY.format(reason=reason),)


def _of_one_shape(frames: Sequence[DataFrame]) -> list[DataFrame]:
    """Return the frames with all their columns; one that AWS added later is null before that.

    A column that has another type in another month is text in both. Neither does the case of a
    name's letters matter, here as in one file.
    """
    spelled: dict[str, str] = {}
    for name in (name for frame in frames for name in frame.columns):
        spelled.setdefault(name.lower(), name)
    frames = [frame.toDF(*(spelled[n.lower()] for n in frame.columns)) for frame in frames]
    kinds = _kinds(frames)
    shaped = []
    for frame in frames:
        lacking = {
            # Of several types, or of none, it is text in the others.
            name: F.lit(None).cast(next(iter(found)) if len(found) == 1 else StringType())
            for name, found in kinds.items()
            if name not in frame.columns
        }
        as_text = _as_text(frame, kinds)
        shaped.append(as_text.withColumns(lacking) if lacking else as_text)
    return shaped


def _kinds(frames: Sequence[DataFrame]) -> dict[str, set[DataType]]:
    """Return the types of every column; that of a column of nothing is none."""
    kinds: dict[str, set[DataType]] = defaultdict(set)
    for column in (column for frame in frames for column in frame.schema.fields):
        kind = column.dataType
        kinds[column.name] |= set() if isinstance(kind, NullType) else {kind}
    return kinds


def _as_text(frame: DataFrame, kinds: Mapping[str, set[DataType]]) -> DataFrame:
    """Return a frame, its columns of more than one type as text: tags as JSON, which reads as one.

    A map that is printed reads as another where a value holds what stands between two tags.
    """
    texts = {
        each.name: F.to_json(quoted_name(each.name))
        if isinstance(each.dataType, ArrayType | MapType | StructType)
        else F.col(quoted_name(each.name)).cast("string")
        for each in frame.schema.fields
        if len(kinds[each.name]) > 1
    }
    return frame.withColumns(texts) if texts else frame


def _with_period(frame: DataFrame, period: str | None) -> DataFrame:
    return frame.withColumn(DELIVERED_PERIOD, F.lit(period).cast("string"))


def _read(
    session: SparkSession,
    files: Files,
    addresses: Sequence[str],
    what: str,
    *,
    joined: bool = False,
) -> DataFrame:
    if addresses[0].endswith(manifest.PARQUET):
        return _parquet(session, addresses)
    if addresses[0].endswith(".zip"):
        addresses = lines.unzipped_files(session, addresses, _scratch(session))
    return lines.read(session, files, addresses, what, joined=joined)


def _parquet(session: SparkSession, addresses: Sequence[str]) -> DataFrame:
    literal = [literal_address(address) for address in addresses]
    try:
        return session.read.option("mergeSchema", "true").parquet(*literal)
    except (PySparkException, Py4JJavaError) as error:
        if "[CANNOT_MERGE_" not in str(error) and NANOSECONDS not in str(error):
            raise
        in_nanoseconds = NANOSECONDS in str(error)
    # Whoever wrote them chose a column's type file by file, as pandas does where one holds nothing.
    frames = [_one(session, address, in_nanoseconds=in_nanoseconds) for address in addresses]
    return reduce(DataFrame.unionByName, _of_one_shape(frames))


def _one(session: SparkSession, address: str, *, in_nanoseconds: bool) -> DataFrame:
    """Return one file's lines; its times are numbers to Spark where they are in nanoseconds."""
    if not in_nanoseconds:
        return session.read.parquet(literal_address(address))
    try:
        # A cluster has Spark's own packages, and pyarrow is none of them.
        from spark.ingest import objects  # noqa: PLC0415
    except ImportError:
        raise InvalidInput([f"{address} {IN_NANOSECONDS}"]) from None
    if not objects.is_known(address):
        raise InvalidInput([f"{address} {IN_NANOSECONDS}"])
    session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    times = {n: F.expr(f"timestamp_micros(`{n}` div 1000)") for n in objects.nanoseconds(address)}
    return session.read.parquet(literal_address(address)).withColumns(times)


def _scratch(session: SparkSession) -> str:
    shared = session.conf.get(SCRATCH, None)
    if shared:
        return shared
    # A local session's own folder, which ends with it.
    return tempfile.mkdtemp(prefix="unzipped-", dir=session.conf.get("spark.local.dir", None))
