"""Reads any bill: opens its files, says by their columns which format it is, and has it added up.

Stands between the manifest, which says what was delivered, and the reader of each format. Athena,
Hive and Spark take the columns that a table is partitioned by out of its files (`key=value`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from core.ground.errors import InvalidInput, passed_on
from spark.files import Files, address_of, files_of, fingerprint, is_known, opened
from spark.ingest import cur, focus, loose_files, manifest
from spark.ingest.delivery import Delivery, readable, surveyed
from spark.ingest.layout import Layout, distinct_names, letters
from spark.ingest.pieces import HEADER_BYTES, Piece, footer, members, read_header, unpacked
from spark.months import Refresh
from spark.session import Engine
from spark.tag_keys import OURS, KafkaTags

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
    held = surveyed(session, pieces, layout)
    return Delivery(
        session=session,
        label=found.label,
        layout=layout,
        pieces=pieces,
        surveyed=held,
        refreshes=found.refreshes,
        fingerprint=found.fingerprint,
        simulated=found.simulated,
        notes=[*layout.notes, *layout.notes_of(held.kinds), *found.notes],
    )


@dataclass(frozen=True)
class Source:
    """A bill's files as pieces, and what its manifests say."""

    label: str
    pieces: Sequence[Piece]
    refreshes: Mapping[str, Refresh] = field(default_factory=dict)
    # Of files that no manifest describes.
    fingerprint: str = ""
    simulated: bool = False
    # Whether it is CUR 2.0 or FOCUS, whatever columns a query chose to have.
    is_data_export: bool = False
    # What the files do not say of themselves.
    notes: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """Return the columns of all files; one that AWS added later is nothing before that."""
        return distinct_names([(*piece.columns, *piece.said) for piece in self.pieces])


def open_source(files: Files, address: str, months: Collection[str], what: str) -> Source:
    """Open a folder by its manifests, or a single file; `months` leaves the others unread."""
    if unlisted := loose_files.unlisted(files, address):
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
    return Source(label_of(named), pieces, fingerprint=mark, notes=notes)


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
