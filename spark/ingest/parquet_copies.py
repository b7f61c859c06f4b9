"""Finds two Parquet files of the same lines, whatever their codec, pages or row groups.

Apart from the other copies (spark.ingest.copies), since it needs pyarrow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from spark.ingest.objects import is_known, parquet

# Lines of every file that are looked at; only files that begin alike are read any further.
FIRST_LINES = 100
FILES_AT_ONCE = 16


def same_lines(addresses: Sequence[str]) -> tuple[str, str] | None:
    """Return two of these files that hold the same lines in the same order, or None.

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
