"""Lists the data files of a folder that no manifest describes: somebody put them together.

All of them are the bill, so a file that may hold lines of another one, or none that can be read, is
refused by name: a total of half a bill looks like any other.
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

from core.ground.errors import InvalidInput
from spark.files import CHUNK_BYTES, Files, is_known, parquet
from spark.ingest.lines import BYTE_ORDER_MARK
from spark.ingest.manifest import MANIFEST_SUFFIX, PARQUET, ZIP

FORMATS = (PARQUET, ".csv.gz", ZIP, ".csv")
# What holds data and cannot be read: other archives and formats, endings in capitals, the parts
# without an ending that Athena, Redshift and Spark write, and bills under an ending more (.csv.old)
# that is no checksum's.
UNREAD = re.compile(
    r"(?i)(\.(csv|tsv|parquet|parq|pq|orc|avro|jsonl|xlsx?|gz|zip|bz2|zst|zstd|xz|lz4|snappy|7z|tar|tgz)"
    r"|(^|/)(part|data|\d)[^./]*|\.(csv|gz|zip|parquet)\.(?!md5|sha|crc|asc|sig)[^./]+)$"
)
# What a copy that was broken off is called: by browsers, and by AWS's command line.
HALF = re.compile(
    r"(?i)\.(csv|gz|zip|parquet)\.((file)?part|partial|crdownload|download|te?mp"
    r"|(?=\d*[a-f])[0-9a-f]{8})$"
)
# What tells a table whose log says which of its files still count: others are of rows that were
# deleted or written again.
TABLES = {
    "Delta Lake": re.compile(r"/_delta_log/[^/]+\.json$"),
    "Iceberg": re.compile(r"/metadata/[^/]+\.metadata\.json$"),
    "Hudi": re.compile(r"/\.hoodie/"),
}
OF_A_TABLE = (
    "{} is a table of {}, or a part of one: its log alone says which of its files are the bill. "
    "Write its rows to a folder of their own, as a query's result, and name that."
)
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
# What AWS writes beside an Athena report: how far its newest delivery is.
STATUS = "cost_and_usage_data_status"


def unlisted(files: Files, folder: str) -> list[str]:
    """Return the data files of a folder that no manifest describes; none where one does.

    Raises InvalidInput for the data folder of an export, for a table that keeps a log, for files of
    more than one format or of none that can be read, and for files that hold the same or have one
    name in two folders of the same month, as refreshes of it have.
    """
    if not files.is_folder(folder) or files.below(folder, MANIFEST_SUFFIX):
        return []
    export = _export_above(files, folder)
    if export is not None:
        problem = (
            f"{folder} is the data of an export; name {export}, whose manifests say which of its "
            f"files are the bill."
        )
        raise InvalidInput([problem])
    there = files.below(folder, "")
    _require_no_table(files, folder, there)
    everything = [path for path in there if _is_data(path, folder)]
    found = {kind: [path for path in everything if path.endswith(kind)] for kind in FORMATS}
    kinds = [kind for kind, paths in found.items() if paths]
    paths = [path for kind in kinds for path in found[kind]]
    read = set(paths)
    unread = [path for path in everything if path not in read and UNREAD.search(path)]
    problem = (
        _half_copied([path for path in everything if HALF.search(path)])
        or _of_two_kinds(kinds)
        or _in_no_form(unread)
        or _named_twice(paths)
        or _copied(files, paths)
    )
    if problem:
        raise InvalidInput([f"The folder {folder} has no manifest, and {problem}"])
    return paths


def _require_no_table(files: Files, folder: str, there: Sequence[str]) -> None:
    """Refuse a table of a format that keeps a log, also where its data folder alone is named."""
    above = folder.rpartition("/")[0] if folder.endswith("/data") else ""
    beside = files.below(f"{above}/metadata", ".json") if above else []
    for kind, log in TABLES.items():
        if any(log.search(path) for path in (*there, *beside)):
            raise InvalidInput([OF_A_TABLE.format(folder, kind)])


def _export_above(files: Files, folder: str) -> str | None:
    """Return the folder of the export whose data this is, or is below; None of any other."""
    parts = folder.split("/")
    for place in [n for n, part in enumerate(parts) if part == "data"][::-1]:
        export = "/".join(parts[:place])
        metadata = f"{export}/metadata"
        if files.is_folder(metadata) and files.below(metadata, MANIFEST_SUFFIX):
            return export
    return None


def _is_data(path: str, folder: str) -> bool:
    """Say whether a file is none of those that writers leave beside data (_SUCCESS, .part.crc)."""
    parts = path[len(folder) :].split("/")
    return STATUS not in parts and not any(part.startswith((".", "_")) for part in parts)


def _of_two_kinds(kinds: Sequence[str]) -> str:
    if len(kinds) < 2:
        return ""
    return f"mixes {', '.join(kinds)}; name one file, or a folder of one format."


def _half_copied(paths: Sequence[str]) -> str:
    return f"holds {paths[0]}, a copy that was broken off; copy the bill again." if paths else ""


def _in_no_form(unread: Sequence[str]) -> str:
    if not unread:
        return ""
    return (
        f"holds {unread[0]}, which may be part of the bill and cannot be read: write it as one of "
        f"{', '.join(FORMATS)}, or take it out."
    )


def _named_twice(paths: Sequence[str]) -> str:
    """Name two files of one name in two folders of the same month."""
    again: dict[tuple[str, str], str] = {}
    for path in paths:
        place, name = path.rsplit("/", 1)
        month = "/".join(part for part in place.split("/") if "=" in part)
        other = again.setdefault((month, name), path)
        if other != path:
            return (
                f"holds {name} twice for one month ({other}, {path}); name one delivery's folder, "
                f"or give the parts of one bill names of their own."
            )
    return ""


def _copied(files: Files, paths: Sequence[str]) -> str:
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
                return _hold_the_same(other, path)
    found = _same_lines([path for path in paths if path.endswith(PARQUET)])
    return _hold_the_same(*found) if found else ""


def _hold_the_same(one: str, other: str) -> str:
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
