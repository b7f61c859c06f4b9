"""Reads any bill: says by its columns which format it is, and hands it to that format's reader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from core.ground.errors import InvalidInput
from spark.ingest import cur, cur_names, focus, source
from spark.ingest.delivery import Delivery, letters, readable
from spark.ingest.files import address_of
from spark.ingest.lines import CORRUPT
from spark.ingest.source import DELIVERED_PERIOD, Source
from spark.tag_keys import OURS, KafkaTags

COLUMNS_SHOWN = 5
# Of those that a format's lines need: an invoice of another kind has one or two by chance.
FEWEST_OF_A_FORMAT = 3


def read(
    session: SparkSession,
    address: str | Path,
    *,
    months: Collection[str] = (),
    kafka: KafkaTags = OURS,
) -> Delivery:
    """Read the newest delivery of every billing period of an export, or of these months.

    `address` is an export's folder (the one holding data/ and metadata/) or one file, on this
    machine or at a URI that Spark reaches. Raises InvalidInput for what is no bill; a row that
    cannot be read keeps its reason.
    """
    what = f"The bill {address}"
    with readable(what):
        return _of(source.open_source(session, address_of(address), months, what), what, kafka)


def reader_of(columns: Sequence[str]) -> Callable[[Source, str, KafkaTags], Delivery] | None:
    """Return the reader of the format of which most needed columns are there; None of a few."""
    as_focus = {letters(name) for name in columns} & {letters(name) for name in focus.REQUIRED}
    as_cur = {cur_names.modern_name(name).lower() for name in columns} & set(cur.REQUIRED)
    found, reader = max(
        (len(as_focus), focus.delivery), (len(as_cur), cur.delivery), key=lambda each: each[0]
    )
    return reader if found >= FEWEST_OF_A_FORMAT else None


def _of(opened: Source, what: str, kafka: KafkaTags) -> Delivery:
    columns = opened.columns

    def joined() -> Delivery | None:
        again = opened.joined()
        return _of(again, what, kafka) if again else None

    known = {cur_names.modern_name(name).lower() for name in columns}
    if {focus.COST.lower(), cur.COST} <= known:
        problem = f"{what} holds bills of two formats, FOCUS and Cost and Usage Report; name one."
        raise InvalidInput([problem])
    reader = reader_of(columns)
    if reader is not None:
        read = reader(opened, what, kafka)
        notes = [*read.notes, *opened.notes]
        return replace(read, joined=joined, notes=notes, fingerprint=opened.fingerprint)
    delivered = [name for name in columns if name not in {CORRUPT, DELIVERED_PERIOD}]
    problem = (
        f"{what} is neither a Cost and Usage Report nor FOCUS: its columns are "
        f"{', '.join(name.strip() for name in delivered[:COLUMNS_SHOWN])} and so on. Name an "
        f"export's folder or file."
    )
    raise InvalidInput([problem])
