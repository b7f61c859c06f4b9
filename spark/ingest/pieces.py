"""Reads pieces of a bill where their worker stands: row groups of Parquet, or files of text.

A worker opens its files itself, on its disk or in S3 with its own rights.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from core.ground.errors import InvalidInput, passed_on
from spark.files import opened, parquet
from spark.ingest import lines
from spark.ingest.columns import texts_of
from spark.ingest.lines import Header

# More lines than these are added up apart, which bounds a worker's memory.
LINES_AT_ONCE = 1 << 19
TEXT_LINES_AT_ONCE = 1 << 16
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
    if value is None:
        return pa.nulls(rows)
    return texts_of(pa.array([value], pa.string())).take(pa.array([0] * rows))


def _of_parquet(piece: Piece, wanted: Collection[str]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    there = {name: piece.places[name] for name in wanted if name in piece.places}
    numbered = _numbered(piece, list(there.values()))
    with parquet(piece.address, tuple(numbered)) as file:
        for batch in file.iter_batches(
            LINES_AT_ONCE, [piece.row_group], list(there.values()), use_threads=False
        ):
            yield batch.num_rows, {name: batch[place] for name, place in there.items()}


def _numbered(piece: Piece, names: Sequence[str]) -> list[str]:
    """Return the Parquet columns to read as numbers of a dictionary: texts, and those in maps.

    Those of which a file has large plain pages are none: their dictionary would have to be made.
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
            if "PLAIN" in chunk.encodings and chunk.total_uncompressed_size > 1 << 20
        }
    return [name for name in found if name not in plain]


def _of_text(piece: Piece, wanted: Collection[str]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    header = piece.header
    if header is None:
        return
    place = {name: number for number, name in enumerate(header.names)}
    there = {name: place[piece.places[name]] for name in wanted if name in piece.places}
    nothing = [""] * len(header.names)
    with opened_text(piece) as stream:
        rows = lines.rows(stream, header)
        while chunk := list(islice(rows, TEXT_LINES_AT_ONCE)):
            broken = [row if isinstance(row, str) else None for row in chunk]
            cells = [nothing if isinstance(row, str) else row for row in chunk]
            columns = {
                name: pa.array([row[number] or None for row in cells], pa.string())
                for name, number in there.items()
            }
            columns[CORRUPT] = pa.array(broken, pa.string())
            yield len(chunk), columns


@contextmanager
def opened_text(piece: Piece) -> Iterator[IO[bytes]]:
    """Yield what a piece of text holds, unpacked."""
    with opened(piece.address) as stream:
        yield lines.unpacked(stream, piece.address, piece.member)


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
