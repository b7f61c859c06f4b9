"""Reads a bill's lines once more, for what few bills have: lines that cannot be read, tags unknown.

And what files hold straight from their cost column, for the control totals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from core.cost.pricing import total
from spark.ingest.columns import (
    amounts_of,
    decimal_of,
    distinct,
    groups_of,
    read_once,
    tags_of,
    texts_of,
)
from spark.ingest.layout import BROKEN_LINE, LINE_CHARACTERS, Layout
from spark.ingest.pieces import CORRUPT, Piece, batches, readable_piece
from spark.ingest.share import NO_DAY, Lines, month_name
from spark.months import UNKNOWN_PERIOD
from spark.rows import LONG, MONEY, STRING, struct
from spark.rules.line import EMPTY
from spark.tables import QUARANTINE

SURVEY_ROWS = struct(
    billing_period=STRING, lines=LONG, lines_without_cost=LONG, billed=MONEY, kinds=pa.list_(STRING)
)
TAG_ROWS = struct(billing_period=STRING, key=STRING, value=STRING, charges=LONG, billed_cost=MONEY)
_OF_TAG = ["billing_period", "key", "value", "billed_cost"]
_KIND = "line_item_line_item_type"


@dataclass(frozen=True, slots=True)
class Control:
    """Lines, how many of them have no cost that can be added up, and what the others come to."""

    lines: int
    lines_without_cost: int
    billed: Decimal

    def __add__(self, other: Control) -> Control:
        return Control(
            self.lines + other.lines,
            self.lines_without_cost + other.lines_without_cost,
            total([self.billed, other.billed]),
        )


NO_LINES = Control(0, 0, Decimal(0))


def control_totals(
    batch: pa.RecordBatch, layout: Layout, period: str | None
) -> Mapping[str, Control]:
    """Return what a batch's lines come to, by month."""
    if not batch.num_rows:
        return {}
    cost = amounts_of(batch[layout.cost])
    if CORRUPT in batch.schema.names:
        cost = cost.where(np.asarray(batch[CORRUPT].is_null()))
    months, number = [period], np.zeros(batch.num_rows, np.int64)
    if period is None:
        values, number = distinct(batch[layout.month])
        months = [month_name(value) for value in values]
    order, starts = groups_of(number)
    lines = np.diff(np.append(starts, batch.num_rows))
    unknown = np.add.reduceat(~cost.known[order], starts, dtype=np.int64)
    billed = cost.grouped(order, starts).decimals()
    found: dict[str, Control] = defaultdict(lambda: NO_LINES)
    of_months = zip(lines.tolist(), unknown.tolist(), billed.to_pylist(), strict=True)
    for start, control in zip(starts, of_months, strict=True):
        found[months[number[order[start]]] or UNKNOWN_PERIOD] += Control(*control)
    return found


def survey(pieces: Iterable[Piece], layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield what pieces hold, straight from the columns of cost, kind and month, as SURVEY_ROWS."""
    kind = [_KIND] if _KIND in layout.texts else []
    for piece in pieces:
        month = [layout.month] if piece.period is None else []
        # A sum that has no place is the file's fault as well.
        with readable_piece(piece):
            for batch in batches(piece, (layout.cost, *kind, *month)):
                said = texts_of(batch[_KIND]).dictionary.to_pylist() if kind else []
                rows = [
                    {"billing_period": period, "kinds": said, **asdict(found)}
                    for period, found in control_totals(batch, layout, piece.period).items()
                ]
                yield from pa.Table.from_pylist(rows, SURVEY_ROWS).to_batches()


def _written(column: pa.Array) -> list[str | None]:
    """Return cells as Python writes them: those of texts as they are."""
    values = column.to_pylist()
    return [None if v is None else "NaN" if v != v else str(v) for v in values]  # noqa: PLR0124 - what is no number is unlike itself


def unread(pieces: Iterable[Piece], layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield the lines that cannot be read, each with its reason, as QUARANTINE."""
    for piece in pieces:
        with readable_piece(piece):
            for batch in batches(piece, layout.wanted):
                rows = list(_unread(batch, layout, piece.period))
                yield from pa.Table.from_pylist(rows, QUARANTINE.schema).to_batches()


def _unread(batch: pa.RecordBatch, layout: Layout, period: str | None) -> Iterator[dict[str, Any]]:
    lines = Lines.read(batch, layout)
    unread = lines.is_unreadable(layout, period)
    for name in layout.present:
        said = texts_of(batch[name])
        unread |= read_once(said, lambda each: each is None or each in EMPTY, np.bool_)
    at = np.flatnonzero(unread)
    bad = batch.take(pa.array(at))
    names = {*layout.shown, *layout.numbers, layout.day, layout.month, *layout.present}
    cells = {name: _written(bad[name]) for name in names}
    broken = bad[CORRUPT].to_pylist() if CORRUPT in bad.schema.names else [None] * len(at)
    cost = lines.amounts[layout.cost]
    for place, line in enumerate(at):
        own = {name: values[place] for name, values in cells.items()}
        month, said = lines.months[lines.month[line]], broken[place]
        known = {name: bool(lines.amounts[name].known[line]) for name in layout.numbers}
        known |= {layout.day: lines.days[line] != NO_DAY, layout.month: month is not None}
        reason, excerpt = BROKEN_LINE, (said or "").rstrip("\r\n")[:LINE_CHARACTERS]
        if said is None:
            reason = layout.reason(own, known, period, month) or BROKEN_LINE
            excerpt = layout.excerpt(own)
        is_known = cost.known[line] and said is None
        yield {
            "billing_period": period or month or UNKNOWN_PERIOD,
            "reason": reason,
            "line": excerpt,
            "billed_cost": decimal_of(*(int(p[line]) for p in cost.parts)) if is_known else None,
        }


def tags(pieces: Iterable[Piece], layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield every tag of every line, counted and summed batch by batch, as TAG_ROWS."""
    for piece in pieces:
        spread = layout.tag_columns(piece.columns)
        named = dict.fromkeys((layout.cost, layout.month, *layout.maps, *spread))
        own = replace(piece, places={**piece.places, **spread})
        with readable_piece(piece):
            for batch in batches(own, tuple(named)):
                months, month = distinct(batch[layout.month])
                periods = [piece.period or month_name(each) or UNKNOWN_PERIOD for each in months]
                period = pa.array(periods, STRING).take(pa.array(month))
                cost = amounts_of(batch[layout.cost]).decimals()
                for line, *tag in _tags(batch, layout, spread):
                    found = pa.table([period.take(line), *tag, cost.take(line)], _OF_TAG)
                    yield from _counted(found).to_batches()


def _tags(
    batch: pa.RecordBatch, layout: Layout, spread: Iterable[str]
) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
    """Yield the tags of each column: which line has each, its key, and its value."""
    lines = np.arange(batch.num_rows)
    for name in spread:
        yield pa.array(lines), pa.repeat(name, len(lines)), texts_of(batch[name]).cast(STRING)
    for tags in (tags_of(batch[name]) for name in layout.maps):
        starts = np.asarray(tags.offsets)
        own = starts[0], starts[-1] - starts[0]
        key, value = (each.slice(*own).cast(STRING) for each in (tags.keys, tags.items))
        yield pa.array(np.repeat(lines, np.diff(starts))), key, value


def _counted(tags: pa.Table) -> pa.Table:
    """Return each different tag that says anything, as TAG_ROWS."""
    value = pc.utf8_trim(tags["value"], " ")
    said = tags.filter(pc.invert(pc.is_in(value, pa.array([*EMPTY, None]))))
    sums = said.group_by(_OF_TAG[:3]).aggregate([([], "count_all"), ("billed_cost", "sum")])
    return sums.rename_columns(TAG_ROWS.names).cast(TAG_ROWS)
