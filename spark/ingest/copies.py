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
from contextlib import suppress

from spark.ingest import parquet_copies
from spark.ingest.files import CHUNK_BYTES, Files
from spark.ingest.lines import BYTE_ORDER_MARK
from spark.ingest.manifest import PARQUET, ZIP

PARQUET_BEGINS, ZIP_BEGINS = b"PAR1", b"PK"
# A folder that says what the files in it do not, as Spark partitions a table by days: the same
# lines are others in another one. Months are in the lines as well.
SAYING = re.compile(r"(?i)^(?!billing_period=|year=|month=)[^=]+=")
# What a tool that saves a text again changes of it, and no line says anything by.
UNSAID = b'\r"'
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
    found = parquet_copies.same_lines([path for path in paths if path.endswith(PARQUET)])
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
