"""Reads pieces of a bill where their worker stands: row groups of Parquet, or files of text.

A worker opens its files itself, on its disk or in S3 with its own rights. Text is read as every
export writes it: quoted fields, a header, plain, gzip or zip.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, cast

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from core.ground.errors import InvalidInput, passed_on
from spark.files import opened, parquet
from spark.ingest.columns import texts_of
from spark.tag_keys import TAG_COLUMNS

# The longest header known has 300 columns.
HEADER_BYTES = 1 << 18
GZIP_WINDOW = 31
# What a file begins with that is no delimited text, whatever it is called.
OTHER_KINDS = {
    (b"\x1f\x8b",): "is a gzip archive by another name: call it .csv.gz",
    (b"PK\x03\x04",): "is a zip archive by another name: call it .zip",
    (b"PAR1",): "is a Parquet file by another name: call it .parquet",
    (b"<",): "holds HTML or XML, which a refused download leaves behind: copy the bill again",
    (b"{", b"["): "holds JSON: choose csv or Parquet for the export",
}
NOT_UTF_8 = "{} cannot be read: it is not written in UTF-8; save it as UTF-8."
# What tells a column of a tag from one that differs by case alone.
APART = re.compile(r" \(\d+\)$")
# Between letters of a field: a quote that is written twice, and one behind a backslash.
DOUBLED_QUOTE = re.compile(rb'[^,"\r\n]""[^,"\r\n]|"""')
MARKED_QUOTE = re.compile(rb'\\"[^,\r\n]')


@dataclass(frozen=True, slots=True)
class Header:
    """A file's columns, and by what a quote within a quoted field is marked."""

    names: tuple[str, ...]
    escape: str


def read_header(data: bytes, what: str, *, is_packed: bool = False) -> Header:
    """Return what a file's first HEADER_BYTES say of its columns, or say why it has none.

    `is_packed` says that they are gzip's.
    """
    try:
        if is_packed:
            data = _inflated_bytes(data)
        names = _names(data, what)
        if any("\0" in name for name in names):
            raise InvalidInput([NOT_UTF_8.format(what)])
    except UnicodeDecodeError:
        raise InvalidInput([NOT_UTF_8.format(what)]) from None
    except (OSError, EOFError, csv.Error, zlib.error) as error:
        raise InvalidInput([passed_on(f"{what} cannot be read; copy it again.", error)]) from None
    if not any(names):
        raise InvalidInput([f"{what} is empty; its first line must name its columns."])
    # Spark marks a quote by a backslash where csv writes it twice.
    is_marked = not DOUBLED_QUOTE.search(data) and MARKED_QUOTE.search(data)
    return Header(tuple(_told_apart(names, what)), "\\" if is_marked else '"')


def _told_apart(names: list[str], what: str) -> list[str]:
    """Return the names with those of tags told apart that differ by case alone; refuse any others.

    Names are told apart by their letters, not by the case. Of such tags the first is found by its
    key, as anywhere else, unless another is spelled as the key that is asked for
    (spark.ingest.cur). A column without a name, as of a table's index or a comma too many, is one
    that nobody asks for; blanks around a tag's key are the key's own.
    """
    apart: list[str] = []
    known: dict[str, str] = {}
    for place, written in enumerate(names, start=1):
        name = written.strip() or f"unnamed {place}"
        other = known.setdefault(name.lower(), name)
        if name in apart or (other != name and not name.lower().startswith(TAG_COLUMNS)):
            also = "" if other == name else f", once as {other}"
            raise InvalidInput([f"{what} names column {name} twice{also}; export it once."])
        apart.append(name if other == name else f"{name} ({len(apart)})")
    return apart


def _names(data: bytes, what: str) -> list[str]:
    """Return the cells of a first line, or say in which other way the file is written."""
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    for begins, said in OTHER_KINDS.items():
        if start.startswith(begins):
            raise InvalidInput([f"{what} {said}."])
    first = re.split(rb"\r?\n|\r", data, maxsplit=1)[0].decode("utf-8-sig")
    return next(csv.reader([first]), [])


def _inflated_bytes(data: bytes) -> bytes:
    stream = zlib.decompressobj(GZIP_WINDOW)
    inflated = stream.decompress(data)
    if b"\n" not in inflated and not stream.eof:
        raise EOFError("it ends within its first line")
    return inflated


def members(stream: IO[bytes], address: str) -> list[str]:
    """Return the csv files in a zip archive."""
    try:
        with zipfile.ZipFile(stream) as archive:
            # A Mac puts a file of its own beside each.
            names = [n for n in archive.namelist() if not n.startswith("__MACOSX/")]
    except (zipfile.BadZipFile, ValueError):  # ValueError: Arrow's of a place past the end
        names = []
    found = [name for name in names if name.lower().endswith(".csv")]
    if not found:
        problem = f"{address} is not a zip archive, or holds no csv file; copy it again."
        raise InvalidInput([problem])
    return found


def unpacked(stream: IO[bytes], address: str, member: str | None) -> IO[bytes]:
    """Return what a file, or a member of an archive, holds."""
    if member is not None:
        try:
            return zipfile.ZipFile(stream).open(member)
        except RuntimeError:
            problem = f"{address} needs a password; pack it again without one."
            raise InvalidInput([problem]) from None
    packed = address.endswith(".gz")
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if packed else stream


def text_rows(stream: IO[bytes], header: Header) -> Iterator[list[str] | str]:
    """Yield the rows below a header: cells, or as text what does not hold its columns.

    A quoted field may hold line breaks. Raises csv.Error for a quote that is never closed.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
    is_doubled = header.escape == '"'
    escape = None if is_doubled else "\\"
    found = csv.reader(text, doublequote=is_doubled, escapechar=escape, strict=True)
    for row in islice(filter(None, found), 1, None):
        yield row if len(row) == len(header.names) else ",".join(row)


# More lines than these are added up apart, which bounds a worker's memory.
LINES_AT_ONCE = 1 << 20
# Cells of so many lines of text are still near the processor when their columns are made.
LINES_NEAR, CHUNKS_AT_ONCE = 1 << 10, 1 << 6
# The text of a line that does not hold the columns of its header; null of one that does.
CORRUPT = "_corrupt_line"


@dataclass(frozen=True)
class Piece:
    """A part of a bill that is read in one go: a row group of a file, or a file of text.

    `places` says what its file calls the columns that are wanted, `said` the texts that its folder
    is named for. `period` is the month that it was delivered for, where a manifest says one.
    """

    address: str
    period: str | None
    columns: Sequence[str]
    lines: int = 0
    row_group: int | None = None
    header: Header | None = None
    member: str | None = None
    places: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return Path(self.address).name


def batches(piece: Piece, wanted: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Yield a piece's lines: the wanted columns under their own names, and of text CORRUPT.

    A column that the piece lacks is one of nothing. Raises InvalidInput for a damaged file.
    """
    with readable_piece(piece):
        found = _of_parquet(piece, wanted) if piece.header is None else _of_text(piece, wanted)
        for rows, columns in found:
            made = {
                name: columns[name] if name in columns else _constant(piece.said.get(name), rows)
                for name in wanted
            }
            if CORRUPT in columns:
                made[CORRUPT] = columns[CORRUPT]
            yield pa.RecordBatch.from_pydict(made)


def _constant(value: str | None, rows: int) -> pa.Array:
    return pa.nulls(rows) if value is None else texts_of(pa.repeat(value, rows))


def _of_parquet(piece: Piece, wanted: Collection[str]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    there = {name: piece.places[name] for name in wanted if name in piece.places}
    numbered = _numbered(piece, list(there.values()))
    with parquet(piece.address, tuple(numbered)) as file:
        for batch in file.iter_batches(
            LINES_AT_ONCE, [piece.row_group], list(there.values()), use_threads=False
        ):
            yield batch.num_rows, {name: _plain(batch[place]) for name, place in there.items()}


def _plain(column: pa.Array) -> pa.Array:
    """Return a column of which Arrow can take lines: of views of text, as Polars has, it cannot."""
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _numbered(piece: Piece, names: Sequence[str]) -> list[str]:
    """Return the Parquet columns to read as numbers of a dictionary: texts, and those in maps.

    Those of which a file has many plain pages are none: their dictionary would have to be made. A
    dictionary has a MiB at most, and its numbers fewer than the four bytes that a plain text has
    for its length alone.
    """
    with parquet(piece.address) as file:
        schema, group = file.schema_arrow, file.metadata.row_group(piece.row_group)
        found = []
        for name in names:
            kind = schema.field(name).type
            if pa.types.is_map(kind):
                found += [f"{name}.key_value.key", f"{name}.key_value.value"]
            elif pa.types.is_string(kind):
                found.append(name)
        chunks = (group.column(number) for number in range(group.num_columns))
        plain = {
            chunk.path_in_schema
            for chunk in chunks
            if chunk.total_uncompressed_size > (1 << 20) + 4 * chunk.num_values
        }
    return [name for name in found if name not in plain]


def _of_text(piece: Piece, wanted: Collection[str]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    header = piece.header
    if header is None:
        return
    place = {name: number for number, name in enumerate(header.names)}
    there = {name: place[piece.places[name]] for name in wanted if name in piece.places}
    with opened_text(piece) as stream:
        rows = text_rows(stream, header)
        chunks = iter(lambda: list(islice(rows, LINES_NEAR)), [])
        while made := [_columns(chunk, there) for chunk in islice(chunks, CHUNKS_AT_ONCE)]:
            (batch,) = pa.Table.from_batches(made).combine_chunks().to_batches()
            yield batch.num_rows, dict(zip(batch.schema.names, batch.columns, strict=True))


def _columns(chunk: Sequence[list[str] | str], there: Mapping[str, int]) -> pa.RecordBatch:
    """Return some rows' cells by column, none of one that does not hold its header's."""
    columns = {
        name: [None if isinstance(row, str) else row[number] or None for row in chunk]
        for name, number in there.items()
    }
    columns[CORRUPT] = [row if isinstance(row, str) else None for row in chunk]
    made = [pa.array(column, pa.string()) for column in columns.values()]
    return pa.RecordBatch.from_arrays(made, [*columns])


@contextmanager
def opened_text(piece: Piece) -> Iterator[IO[bytes]]:
    """Yield what a piece of text holds, unpacked."""
    with opened(piece.address) as stream:
        yield unpacked(stream, piece.address, piece.member)


@contextmanager
def readable_piece(piece: Piece) -> Iterator[None]:
    """Turn what is wrong with a piece's file into a sentence."""
    try:
        yield
    except EOFError:
        ours = f"The file {piece.name} ends before its data does; copy it again."
        raise InvalidInput([ours]) from None
    except csv.Error as error:
        ours = f"The file {piece.name} has a quote that its field does not end with; copy it again."
        raise InvalidInput([passed_on(ours, error)]) from error
    except (pa.ArrowException, OSError, OverflowError) as error:
        ours = f"The file {piece.name} is damaged; export it again."
        raise InvalidInput([passed_on(ours, error)]) from error


def footer(address: str) -> tuple[list[str], list[int]]:
    """Return a Parquet file's columns, and how many lines each of its row groups has."""
    with parquet(address) as file:
        groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        return list(file.schema_arrow.names), groups
