"""Reads delimited text as every export writes it: quoted fields, a header, plain, gzip or zip.

Text is read line by line, so that a quote which is never closed swallows no other. Where broken
lines become whole once a quoted field may hold line breaks, it is read so (is_joined).
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import IO, cast

from core.ground.errors import InvalidInput, passed_on
from spark.tag_keys import TAG_COLUMNS

# The longest header known has 300 columns.
HEADER_BYTES = 1 << 18
GZIP_WINDOW = 31
# Lines that are compared with their header: a few of another length are broken lines, all are not.
LINES_COMPARED = 100
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# What a file begins with that is no delimited text, whatever it is called.
OTHER_KINDS = {
    b"\x1f\x8b": "is a gzip archive by another name: call it .csv.gz",
    b"BZh": "is compressed by bzip2: unpack it, or pack it by gzip",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd: unpack it, or pack it by gzip",
    b"\xfd7zXZ": "is compressed by xz: unpack it, or pack it by gzip",
    b"\x04\x22\x4d\x18": "is compressed by lz4: unpack it, or pack it by gzip",
    b"PK\x03\x04": "is a zip archive by another name: call it .zip",
    b"PAR1": "is a Parquet file by another name: call it .parquet",
    b"<": "holds HTML or XML, which a refused download leaves behind: copy the bill again",
    b"{": "holds JSON: choose csv or Parquet for the export",
    b"[": "holds JSON: choose csv or Parquet for the export",
}
# What tells a column of a tag from one that differs by case alone.
APART = re.compile(r" \(\d+\)$")
# Between letters of a field: a quote that is written twice, and one behind a backslash.
DOUBLED_QUOTE = re.compile(rb'[^,"\r\n]""[^,"\r\n]|"""')
MARKED_QUOTE = re.compile(rb'\\"[^,\r\n]')
# Lines that are taken apart at once: one that is broken sends them back to be read one by one.
LINES_AT_ONCE = 20_000
OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, slots=True)
class Header:
    """A file's columns, and by what a quote within a quoted field is marked."""

    names: tuple[str, ...]
    escape: str


def header(data: bytes, what: str, *, is_packed: bool = False) -> Header:
    """Return what a file's first HEADER_BYTES say of its columns, or say why it has none.

    `is_packed` says that they are gzip's.
    """
    is_whole = len(data) < HEADER_BYTES
    try:
        if is_packed:
            data = _inflated_bytes(data)
        names = _names(data, what)
    except UnicodeDecodeError:
        problem = f"{what} cannot be read: it is not written in UTF-8; save it as UTF-8."
        raise InvalidInput([problem]) from None
    except (OSError, EOFError, csv.Error, zlib.error) as error:
        raise InvalidInput([passed_on(f"{what} cannot be read; copy it again.", error)]) from None
    if not any(names):
        raise InvalidInput([f"{what} is empty; its first line must name its columns."])
    found = Header(tuple(_told_apart(names, what)), _escape(data))
    _require_its_length(found, data if is_whole else data[: data.rfind(b"\n") + 1], what)
    return found


def _require_its_length(found: Header, data: bytes, what: str) -> None:
    """Refuse a file whose lines all hold fewer or more cells than its header has names."""
    is_doubled = found.escape == '"'
    text = io.StringIO(data.decode("utf-8-sig", errors="replace"), newline="")
    escape = None if is_doubled else "\\"
    # Of a quote that is never closed nothing is known: those lines are broken one by one.
    rows = csv.reader(text, doublequote=is_doubled, escapechar=escape, strict=True)
    try:
        lengths = {len(row) for row in islice(filter(None, rows), 1, LINES_COMPARED)}
    except csv.Error:
        return
    names = len(found.names)
    if len(lengths) != 1 or names in lengths:
        return
    (cells,) = lengths
    excess = "name in its header" if names > cells else "cell in its lines"
    problem = (
        f"{what} names {names} columns and its lines hold {cells} cells, so that no cell is known "
        f"to be of its column. Find the {excess} that is too many (a comma at the end makes one), "
        f"or name the file as AWS delivered it."
    )
    raise InvalidInput([problem])


def _escape(data: bytes) -> str:
    """Return what marks a quote within a field: another quote or, as Spark writes csv, \\."""
    is_doubled = DOUBLED_QUOTE.search(data) is not None
    return "\\" if not is_doubled and MARKED_QUOTE.search(data) else '"'


def _told_apart(names: list[str], what: str) -> list[str]:
    """Return the names with those of tags told apart that differ by case alone; refuse any others.

    Names are told apart by their letters, not by the case. Of such tags the first is found by its
    key, as anywhere else, unless another is spelled as the key that is asked for
    (spark.ingest.cur). A column without a
    name, as of a table's index or a comma too many, is one that nobody asks for; blanks around a
    tag's key are the key's own.
    """
    names = [
        name.strip() if name.lower().startswith(TAG_COLUMNS) else name or f"unnamed {place}"
        for place, name in enumerate(names, start=1)
    ]
    blank = next((name for name in names if name != name.strip()), None)
    if blank is not None:
        problem = f"{what} has blanks around its columns' names ('{blank}'); take them out."
        raise InvalidInput([problem])
    apart: list[str] = []
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if name in apart or (other != name and not name.lower().startswith(TAG_COLUMNS)):
            also = "" if other == name else f", once as {other}"
            raise InvalidInput([f"{what} names column {name} twice{also}; export it once."])
        apart.append(name if other == name else f"{name} ({len(apart)})")
    return apart


def _names(data: bytes, what: str) -> list[str]:
    """Return the cells of a first line, or say in which other way the file is written."""
    start = data.removeprefix(BYTE_ORDER_MARK).lstrip()
    others = [said for begins, said in OTHER_KINDS.items() if start.startswith(begins)]
    if others:
        raise InvalidInput([f"{what} {others[0]}."])
    # Without its mark every other byte of a header's ASCII is nought.
    is_wide = len(data) > 3 and (not any(data[1:40:2]) or not any(data[:40:2]))
    if data.startswith(UTF_16) or is_wide:
        raise InvalidInput([f"{what} is written in UTF-16; save it as UTF-8."])
    first = re.split(rb"\r?\n|\r", data, maxsplit=1)[0].decode("utf-8-sig")
    names = next(csv.reader([first]), [])
    others = [said for letter, said in OTHER_DELIMITERS.items() if first.count(letter) > 2]
    if len(names) <= 2 and others:
        raise InvalidInput(
            [f"{what} separates its fields by {others[0]}; export it with commas, as AWS does."]
        )
    return names


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
            for each in archive.infolist():
                if each.flag_bits & 1:
                    problem = f"{address} needs a password; pack it again without one."
                    raise InvalidInput([problem])
            # A Mac puts a file of its own beside each.
            names = [n for n in archive.namelist() if not n.startswith("__MACOSX/")]
    except zipfile.BadZipFile:
        names = []
    found = [name for name in names if name.lower().endswith(".csv")]
    if not found:
        problem = f"{address} is not a zip archive, or holds no csv file; copy it again."
        raise InvalidInput([problem])
    return found


def unpacked(stream: IO[bytes], address: str, member: str | None) -> IO[bytes]:
    """Return what a file, or a member of an archive, holds."""
    if member is not None:
        return zipfile.ZipFile(stream).open(member)
    packed = address.endswith(".gz")
    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if packed else stream


class Rows:
    """The rows of one file of text, below its header: cells, or the text of a broken line."""

    def __init__(
        self, opened: Callable[[], AbstractContextManager[IO[bytes]]], header: Header
    ) -> None:
        self._opened, self._header = opened, header

    def __iter__(self) -> Iterator[list[str] | str]:
        yield from self._joined() if self._is_joined() else self._apart()

    def _apart(self) -> Iterator[list[str] | str]:
        """Yield each line by itself."""
        with self._opened() as stream:
            lines = _lines(stream)
            next(lines, None)
            while chunk := list(islice(lines, LINES_AT_ONCE)):
                yield from self._of_chunk(chunk)

    def _of_chunk(self, chunk: Sequence[str]) -> Iterable[list[str] | str]:
        try:
            rows = list(self._reader(chunk))
        except csv.Error:
            rows = []
        if len(rows) == len(chunk) and all(len(row) == len(self._header.names) for row in rows):
            return rows
        return map(self._of_line, chunk)

    def _of_line(self, line: str) -> list[str] | str:
        try:
            (row,) = self._reader([line])
        except csv.Error:
            return line
        return row if len(row) == len(self._header.names) else line

    def _joined(self) -> Iterator[list[str] | str]:
        """Yield rows of which a quoted field may hold line breaks."""
        with self._opened() as stream:
            rows = self._reader(_lines(stream))
            next(rows, None)
            for row in rows:
                if len(row) == len(self._header.names):
                    yield row
                else:
                    yield ",".join(row)

    def _is_joined(self) -> bool:
        """Say whether fields that hold line breaks are all that is wrong with broken lines.

        Read as joined no line is broken, and every line that is whole by itself still is: a quote
        that was never closed would have swallowed some of those.
        """
        with self._opened() as stream:
            # Where no line has an odd number of quotes both ways are the same.
            if not any(line.count('"') % 2 for line in _lines(stream)):
                return False
        whole = broken = 0
        for row in self._apart():
            whole, broken = whole + (not isinstance(row, str)), broken + isinstance(row, str)
        if not broken:
            return False
        try:
            for row in self._joined():
                if isinstance(row, str):
                    return False
                whole -= not any("\n" in cell or "\r" in cell for cell in row)
        except csv.Error:
            return False
        return whole == 0

    def _reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        is_doubled = self._header.escape == '"'
        escape = None if is_doubled else "\\"
        return csv.reader(lines, doublequote=is_doubled, escapechar=escape, strict=True)


def _lines(stream: IO[bytes]) -> Iterator[str]:
    """Yield the lines of a text that hold anything, with their ends."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
    return (line for line in text if line.strip("\r\n"))
