"""Adds a share of a bill up where its worker stands: columns in, a row per day and meter out.

What each column says of a line is a number; lines with the same numbers are alike, are described
once (spark.rules.line), and are added up to a day, exactly. In two grains: of a line that is
Kafka's its resource, zone and tags are kept, of all others what was bought and by which account. A
bill may hold as many resources as lines, and none of those is ours to explain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from spark.ingest.columns import (
    Alike,
    Amounts,
    amounts_of,
    day_of,
    distinct,
    groups_of,
    joined,
    month_of,
    read_once,
    tags_of,
    texts_of,
)
from spark.ingest.layout import BROKEN_LINE, Layout
from spark.ingest.pieces import CORRUPT, Piece, batches, readable_piece
from spark.months import UNKNOWN_PERIOD
from spark.rows import BOOLEAN, DATE, INTEGER, LONG, MONEY, STRING, struct
from spark.rules.line import EMPTY, REGION_PREFIX, Described, Raw, describe
from spark.rules.meters import SPECIAL
from spark.tag_keys import CLAIM_TAG, all_spellings

Flags = np.ndarray[Any, np.dtype[np.bool_]]

# What a described line is known by.
KEYS = Described._fields
USAGE_KEYS = ("billing_period", "day", *KEYS)
TOTALS = ("quantity", "billed_cost", "amortised_cost", "net_cost")
SUMS = ("charges", *TOTALS)
_KINDS = {"node_id": INTEGER, "is_unreadable": BOOLEAN}
USAGE_ROWS = struct(
    billing_period=STRING,
    day=DATE,
    **{name: _KINDS.get(name, STRING) for name in KEYS},
    charges=LONG,
    **dict.fromkeys(TOTALS, MONEY),
    has_net=BOOLEAN,
)
_EPOCH = date(1970, 1, 1).toordinal()
# A day that cannot be read: no bill is of the year one.
NO_DAY = 1 - _EPOCH
# Different lines that are remembered from batch to batch.
_REMEMBERED = 200_000
# Sums of as many batches are made one, so that memory does not grow with the lines of a bill.
_PARTS_KEPT = 16


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a batch, column by column: what is told of each is an array of as many."""

    batch: pa.RecordBatch
    amounts: dict[str, Amounts]
    days: Any  # since 1970, NO_DAY where none can be read
    months: list[str | None]  # those that the lines name, as YYYY-MM
    month: Any  # the place of a line's among them
    broken: Any  # whether a line does not hold the columns of its header

    @classmethod
    def read(cls, batch: pa.RecordBatch, layout: Layout) -> Lines:
        """Return a batch as a layout reads it."""
        there = batch.schema.names
        broken = np.zeros(batch.num_rows, np.bool_)
        values, number = distinct(batch[layout.month])
        names = [month_name(value) for value in values]
        months = list(dict.fromkeys(names))
        if CORRUPT in there:
            broken = np.asarray(batch[CORRUPT].is_valid())
        return cls(
            batch,
            {name: amounts_of(batch[name]) for name in layout.amounts},
            read_once(batch[layout.day], _day_number, np.int64),
            months,
            np.array([months.index(name) for name in names])[number],
            broken,
        )

    def is_unreadable(self, layout: Layout, period: str | None) -> Any:
        """Say of each line whether anything keeps it from being read (Layout.reason)."""
        others = [month is None or period not in (None, month) for month in self.months]
        unread = self.broken | (self.days == NO_DAY) | np.array(others)[self.month]
        for name in layout.numbers:
            unread |= ~self.amounts[name].known
        return unread


def month_name(value: Any) -> str | None:
    """Return the month that begins at a time, as YYYY-MM."""
    month = month_of(value)
    return None if month is None else f"{month:%Y-%m}"


def _day_number(value: Any) -> int:
    day = day_of(value)
    return NO_DAY if day is None else day.toordinal() - _EPOCH


def _is_free_where_unpriced(usage_type: str | None) -> bool:
    tidied = REGION_PREFIX.sub("", (usage_type or "").strip(" "))
    return SPECIAL.free_where_unpriced.search(tidied) is not None


def text_columns(batch: pa.RecordBatch, layout: Layout) -> dict[str, pa.Array]:
    """Return the texts and tags of a batch, numbered."""
    texts = {name: texts_of(batch[name]) for name in (*layout.texts, *layout.own)}
    return texts | {name: tags_of(batch[name]) for name in layout.maps}


@dataclass(frozen=True, slots=True)
class _Sums:
    """What described lines, known by their numbers, come to on a day."""

    number: Any
    day: Any
    charges: Any
    has_net: Any  # whether a net is said
    amounts: Sequence[Amounts]  # TOTALS

    @classmethod
    def of(cls, parts: Sequence[_Sums]) -> _Sums:
        """Return the sums of several, one row of each line and day."""
        number, day, charges, has_net = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("number", "day", "charges", "has_net")
        )
        amounts = [joined(each) for each in zip(*(part.amounts for part in parts), strict=True)]
        order, starts = groups_of(_by_line_and_day(number, day).numbers()[0])
        head = order[starts]
        return cls(
            number[head],
            day[head],
            np.add.reduceat(charges[order], starts),
            np.logical_or.reduceat(has_net[order], starts),
            [each.grouped(order, starts) for each in amounts],
        )


def _by_line_and_day(number: Any, day: Any) -> Alike:
    """Return numbers that are the same for one described line's of one day."""
    alike = Alike(len(number))
    alike.tell(number, int(number.max()) + 1)
    alike.tell(day - day.min(), int(day.max() - day.min()) + 1)
    return alike


class Share:
    """The sums of a share so far."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._ids: dict[tuple[str, Described], int] = {}
        self._seen: dict[Any, tuple[int, int]] = {}
        self._parts: list[_Sums] = []

    @classmethod
    def of(cls, pieces: Iterable[Piece], layout: Layout) -> Share:
        """Return what these pieces come to."""
        share = cls(layout)
        for piece in pieces:
            share.add(piece)
        return share

    def add(self, piece: Piece) -> None:
        """Add a piece's lines up."""
        with readable_piece(piece):
            for batch in batches(piece, self._layout.wanted):
                if batch.num_rows:
                    self._add(Lines.read(batch, self._layout), piece.period)

    def join(self, other: Share) -> None:
        """Add what another share of the bill came to."""
        known = [self._ids.setdefault(each, len(self._ids)) for each in other._ids]
        number = np.array(known, np.int64)
        self._parts += [replace(part, number=number[part.number]) for part in other._parts]

    def _add(self, lines: Lines, period: str | None) -> None:
        layout, count = self._layout, lines.batch.num_rows
        columns = text_columns(lines.batch, layout)
        sieved = sieved_lines(pa.RecordBatch.from_pydict(columns), layout)
        unread = lines.is_unreadable(layout, period)
        unpriced = self._is_unpriced(sieved, lines)
        alike = Alike(count)
        for name in sieved.schema.names:
            alike.tell_apart(sieved[name])
        for flags in (unread, unpriced, lines.broken):
            if flags.any():
                alike.tell(flags.astype(np.int64), 2)
        if period is None:
            alike.tell(lines.month, len(lines.months))
        line, lines_apart = alike.numbers()
        first = np.empty(lines_apart, np.int64)
        first[line[::-1]] = np.arange(count - 1, -1, -1)
        heads = _heads(sieved.take(pa.array(first)), layout)
        number, kind = np.empty(lines_apart, np.int64), np.empty(lines_apart, np.int64)
        named = (lines.months[month] for month in lines.month[first])
        months = named if period is None else [period] * lines_apart
        flags_of = zip(months, unread[first], unpriced[first], lines.broken[first], strict=True)
        for place, (said, flags) in enumerate(zip(heads, flags_of, strict=True)):
            number[place], kind[place] = self._described(said, flags)
        self._sum(lines, number[line], kind[line])

    def _is_unpriced(self, sieved: pa.RecordBatch, lines: Lines) -> Any:
        """Say of each line whether it is of a meter whose bytes cost nothing on another one."""
        is_free = np.zeros(len(lines.days), np.bool_)
        for name in self._layout.meters:
            is_free |= read_once(sieved[name], _is_free_where_unpriced, np.bool_)
        return is_free & ~lines.amounts[self._layout.cost].is_something

    def _described(self, said: tuple[Any, ...], flags: tuple[Any, ...]) -> tuple[int, int]:
        """Return the number of a described line, and by which formula its cost is spread."""
        found = self._seen.get((said, flags))
        if found is not None:
            return found
        month, is_unread, is_unpriced, is_broken = flags
        names, values, texts = said
        if is_broken:
            # The cells of a broken line may have shifted: nothing in them is what it is called.
            texts, names, values = (None,) * len(texts), (), ()
        cells = dict(zip(self._layout.texts, texts, strict=True))
        lacks = any(cells[name] is None or cells[name] in EMPTY for name in self._layout.present)
        reason = BROKEN_LINE if is_unread or lacks else None
        raw = Raw._make((*self._layout.line(cells), names, values, reason, not is_unpriced))
        key = (month or UNKNOWN_PERIOD, describe(raw, self._layout.kafka))
        number = self._ids.setdefault(key, len(self._ids))
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        found = self._seen[said, flags] = (number, self._layout.kind(cells))
        return found

    def _sum(self, lines: Lines, number: Any, kind: Any) -> None:
        """Sum lines to a day of each described line, and spread the sums by their formulas.

        What formulas ask of a line is whether an amount is known: sums are of lines alike in that.
        """
        day, amounts = lines.days, lines.amounts
        if lines.broken.any():
            amounts = {name: each.where(~lines.broken) for name, each in amounts.items()}
        alike = _by_line_and_day(number, day)
        alike.tell(kind, int(kind.max()) + 1)
        for each in amounts.values():
            if each.known.any() and not each.known.all():
                alike.tell(each.known.astype(np.int64), 2)
        order, starts = groups_of(alike.numbers()[0])
        head = order[starts]
        counts = np.diff(np.append(starts, len(number)))
        sums = {name: each.grouped(order, starts) for name, each in amounts.items()}
        costs = self._layout.costs(kind[head], sums)
        made = [costs.quantity, costs.billed, costs.amortised, costs.net]
        if len(self._parts) >= _PARTS_KEPT:
            self._parts = [_Sums.of(self._parts)]
        self._parts.append(_Sums(number[head], day[head], counts, costs.has_net, made))

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield what the share came to, as USAGE_ROWS."""
        if not self._parts:
            return
        sums = _Sums.of(self._parts)
        described = list(self._ids)
        of_line = pa.array(sums.number)
        columns = [
            _of_lines([month for month, _ in described], pa.string(), of_line),
            _days(sums.day),
            *(
                _of_lines(
                    [getattr(each, name) for _, each in described],
                    USAGE_ROWS.field(name).type,
                    of_line,
                )
                for name in KEYS
            ),
            pa.array(sums.charges),
            *(each.decimals() for each in sums.amounts),
            pa.array(sums.has_net),
        ]
        yield from pa.Table.from_arrays(columns, schema=USAGE_ROWS).to_batches(1 << 16)


def _days(day: Any) -> pa.Array:
    return pa.array(day.astype(np.int32), pa.int32(), mask=day == NO_DAY).cast(pa.date32())


def _of_lines(values: Sequence[Any], kind: pa.DataType, of_line: pa.Array) -> pa.Array:
    return pa.array(values, kind).take(of_line)


def _listed(column: pa.Array) -> list[Any]:
    """Return a column's values, of maps their pairs; whole columns are looked up at once."""
    if pa.types.is_map(column.type):
        pairs = list(zip(_listed(column.keys), _listed(column.items), strict=True))
        return [pairs[a:b] for a, b in pairwise(column.offsets.to_pylist())]
    return list(read_once(column, lambda value: value, object).tolist())


def _heads(
    batch: pa.RecordBatch, layout: Layout
) -> Iterator[tuple[tuple[str, ...], tuple[str | None, ...], tuple[Any, ...]]]:
    """Yield the names and values of lines' tags, and their texts."""
    alone = zip(*(_listed(batch[name]) for name in layout.own), strict=True)
    own = alone if layout.own else repeat((), batch.num_rows)
    maps = [_listed(batch[name]) for name in layout.maps]
    texts = zip(*(_listed(batch[name]) for name in layout.texts), strict=True)
    for of_text, of_own, *of_maps in zip(texts, own, *maps, strict=True):
        tags = [*zip(layout.own, of_own, strict=True), *chain.from_iterable(of_maps)]
        names, values = zip(*tags, strict=True) if tags else ((), ())
        yield names, values, of_text


def usage_rows(pieces: Iterable[Piece], layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield what a share of a bill comes to, as USAGE_ROWS."""
    yield from Share.of(pieces, layout).rows()


def sieved_lines(lines: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """Return the lines without the resources and tags of those that are surely not Kafka's.

    Of the tags of the others those that are looked up stay.
    """
    kept = _may_be_kafkas(lines, layout)
    blank = pa.array(~kept)
    places = {layout.resource, layout.zone, *layout.own}
    looked_up = all_spellings(layout.kafka.keys)
    columns = {name: lines[name] for name in lines.schema.names}
    for name, column in columns.items():
        if pa.types.is_map(column.type):
            columns[name] = _thinned_maps(column, kept, looked_up)
        elif name in places:
            columns[name] = _without(column, blank)
    return pa.RecordBatch.from_pydict(columns)


def _may_be_kafkas(lines: pa.RecordBatch, layout: Layout) -> Flags:
    kafka, kept = layout.kafka, np.zeros(lines.num_rows, np.bool_)
    telling = all_spellings((kafka.cluster, kafka.pool, *([CLAIM_TAG] if kafka.claims else [])))
    for name in lines.schema.names:
        column = lines[name]
        if pa.types.is_map(column.type):
            kept |= _has_key(column, telling)
        elif name in telling:
            kept |= read_once(column, bool, np.bool_)
        elif kafka.resources and name == layout.resource:
            kept |= read_once(column, kafka.resources.__contains__, np.bool_)
    return kept


def _has_key(column: pa.MapArray, keys: frozenset[str]) -> Flags:
    """Say of each map whether it has one of these keys."""
    starts = np.asarray(column.offsets)
    found = read_once(column.keys, keys.__contains__, np.bool_)[starts[0] : starts[-1]]
    before = np.concatenate(([0], np.cumsum(found)))
    flags: Flags = before[starts[1:] - starts[0]] > before[starts[:-1] - starts[0]]
    return flags


def _thinned_maps(column: pa.MapArray, kept: Flags, keys: frozenset[str]) -> pa.MapArray:
    """Return the maps with these keys alone, and empty where a line is not kept."""
    starts = np.asarray(column.offsets)
    first, last = int(starts[0]), int(starts[-1])
    is_key = read_once(column.keys, keys.__contains__, np.bool_)[first:last]
    is_wanted = is_key & np.repeat(kept, np.diff(starts))
    offsets = np.concatenate(([0], np.cumsum(is_wanted)))[starts - first]
    mask = pa.array(is_wanted)
    names = column.keys.slice(first, last - first).filter(mask)
    values = column.items.slice(first, last - first).filter(mask)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), names, values)


def _without(column: pa.Array, blank: pa.Array) -> pa.Array:
    """Return a column with nothing where `blank` is set."""
    if pa.types.is_dictionary(column.type):
        indices = pc.if_else(blank, pa.scalar(None, column.indices.type), column.indices)
        return pa.DictionaryArray.from_arrays(indices, column.dictionary)
    return pc.if_else(blank, pa.scalar(None, column.type), column)
