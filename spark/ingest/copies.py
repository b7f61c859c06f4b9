"""Tells files that hold the same lines, however they are packed, quoted or compressed.

Of files that no manifest describes all are the bill, and a copy among them would count twice.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from spark.ingest.files import CHUNK_BYTES, Files
from spark.ingest.lines import BYTE_ORDER_MARK
from spark.ingest.manifest import PARQUET, ZIP
from spark.ingest.objects import is_known, parquet

PARQUET_BEGINS, ZIP_BEGINS = b"PAR1", b"PK"
# A folder that says what the files in it do not, as Spark partitions a table by days: the same
# lines are others in another one. Months are in the lines as well.
SAYING = re.compile(r"(?i)^(?!billing_period=|year=|month=)[^=]+=")
# What a tool that saves a text again changes of it, and no line says anything by.
UNSAID = b'\r"'
# Lines of every file that are looked at; only files that begin alike are read any further.
FIRST_LINES = 100
FILES_AT_ONCE = 16
# Of a text's first piece, whatever was taken out of it.
BEGINNING_BYTES = CHUNK_BYTES // 2


def copied(files: Files, paths: Sequence[str]) -> str:
    """Name two files that hold the same, as copies do; no more than a header several may hold."""
    apart: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        said = tuple(part for part in path.split("/")[:-1] if SAYING.match(part))
        apart.setdefault(said, []).append(path)
    return next(filter(None, (_among(files, alike) for alike in apart.values())), "")


def _among(files: Files, paths: Sequence[str]) -> str:
    begins: dict[bytes, list[str]] = {}
    for path in paths:
        begins.setdefault(_beginning(files, path), []).append(path)
    held: dict[bytes, str] = {}
    for start, alike in begins.items():
        is_short = len(start) < BEGINNING_BYTES and start.count(b"\n") < 2
        if len(alike) < 2 or (is_short and not start.startswith((PARQUET_BEGINS, ZIP_BEGINS))):
            continue
        for path in alike:
            other = held.setdefault(_digest(files, path), path)
            if other != path:
                return _said(other, path)
    found = _same_lines([path for path in paths if path.endswith(PARQUET)])
    return _said(*found) if found else ""


def _said(one: str, other: str) -> str:
    return f"{one} and {other} hold the same; take one of them out."


def _beginning(files: Files, path: str) -> bytes:
    """Return how a file's lines begin; of a zip archive, what says what is in it."""
    if path.endswith(ZIP):
        return _digest(files, path)
    return next(_pieces(path, files.read(path, CHUNK_BYTES)), b"")[:BEGINNING_BYTES]


def _digest(files: Files, path: str) -> bytes:
    """Return what tells a file's lines from others, however they are packed."""
    data = files.read(path)
    if path.endswith(ZIP) and zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sums = sorted((each.CRC, each.file_size) for each in archive.infolist())
        return ZIP_BEGINS + repr(sums).encode()
    digest = hashlib.sha256()
    for piece in _pieces(path, data):
        digest.update(piece)
    return digest.digest()


def _pieces(path: str, data: bytes) -> Iterator[bytes]:
    """Yield a file piece by piece, of a text what its lines say.

    Of a damaged one the reader says what is wrong.
    """
    if path.endswith(PARQUET):
        yield data
        return
    yield from (_said_by(piece, place) for place, piece in enumerate(_inflated(path, data)))


def _said_by(piece: bytes, place: int) -> bytes:
    return (piece if place else piece.removeprefix(BYTE_ORDER_MARK)).translate(None, UNSAID)


def _inflated(path: str, data: bytes) -> Iterator[bytes]:
    if not path.endswith(".gz"):
        yield data
        return
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as lines, suppress(OSError, EOFError, zlib.error):
        while piece := lines.read(CHUNK_BYTES):
            yield piece


def _same_lines(addresses: Sequence[str]) -> tuple[str, str] | None:
    """Return two Parquet files of the same lines in the same order, whatever their codec or pages.

    A file that cannot be opened here is nobody's copy: its reader says what is wrong with it.
    """
    known = [address for address in addresses if is_known(address)]
    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        starts = list(pool.map(_start, known))
    alike: dict[bytes, list[str]] = {}
    for address, start in zip(known, starts, strict=True):
        others = alike.setdefault(start, []) if start else []
        for other in others:
            if _are_equal(other, address):
                return other, address
        others.append(address)
    return None


def _start(address: str) -> bytes:
    """Return what tells a file by its columns, how many lines it has, and the first of them.

    Empty of none, and of a file that cannot be opened.
    """
    try:
        with parquet(address) as file:
            lines = file.metadata.num_rows
            rows = next(file.iter_batches(FIRST_LINES)).to_pydict() if lines else {}
    except (pa.ArrowException, OSError, OverflowError):
        return b""
    said = repr((lines, sorted((name.lower(), rows[name]) for name in rows)))
    return hashlib.sha256(said.encode()).digest() if rows else b""


def _are_equal(one: str, other: str) -> bool:
    """Say whether every column of two files is the same, one at a time."""
    try:
        with parquet(one) as first, parquet(other) as second:
            spelled = {name.lower(): name for name in second.schema_arrow.names}
            for name in first.schema_arrow.names:
                mine = first.read([name]).column(0)
                theirs = second.read([spelled[name.lower()]]).column(0)
                if not mine.equals(theirs.cast(mine.type)):
                    return False
    except (pa.ArrowException, OSError):
        return False
    return True
