"""Reads any bill: says by its columns which format it is, and hands it to that format's reader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from core.ground.errors import InvalidInput
from spark.files import address_of, files_of
from spark.ingest import cur, focus, source
from spark.ingest.delivery import Delivery, readable, surveyed
from spark.ingest.layout import Layout, letters
from spark.ingest.source import Source
from spark.session import Engine
from spark.tag_keys import OURS, KafkaTags

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
        found = source.open_source(files_of(place), place, months, what)
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
