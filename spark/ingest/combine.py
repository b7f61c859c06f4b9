"""Adds up, in Arrow, lines of a bill that differ in nothing but their hour and their amounts.

A bill says the same of a resource hour after hour. What each column says of a line is a number of
its dictionary; the numbers of all columns make one, and lines with the same one are added up,
exactly. It is the same sum that Spark makes of lines (spark.money), made where the columns still
lie apart: there are a hundredth of the rows when the first of them is made.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from spark.money import DIGITS, LARGEST, TRILLION, WHOLE_DIGITS, of_parts
from spark.schemas import CHARGES, PARTS

# An exact sum, as spark.money carries one.
AMOUNT = pa.struct([(part, pa.int64()) for part in PARTS.names])
_US_A_DAY = 24 * 60 * 60 * 10**6
# What fits an integer of 64 bits, with room for one more column.
_LARGEST_NUMBER = 1 << 62
# Pairs of a tag's key and value that are numbered as they are; more are numbered anew.
_PAIRS = 1 << 16

# Whole dollars from which on a double holds one place less, and what trillionths it holds then.
_LARGE = np.power(10.0, np.arange(WHOLE_DIGITS, DIGITS))
_STEPS = np.power(10.0, np.arange(DIGITS - WHOLE_DIGITS + 1))

Numbers = np.ndarray[Any, np.dtype[Any]]


def combined_lines(lines: pa.RecordBatch, amounts: Collection[str]) -> pa.Table:
    """Return one row for all lines that are alike but for their hour: AMOUNT per amount, CHARGES.

    `amounts` are columns of doubles; a value that cannot be added up (NaN, 1e300) is nothing. Every
    other column is kept, times cut to their UTC day.
    """
    if not lines.num_rows:
        return _empty_table(lines, amounts)
    kept = {name: _day(lines[name]) for name in lines.schema.names if name not in amounts}
    values = {name: _usable(lines[name]) for name in amounts}
    alike = _Alike(lines.num_rows)
    for column in kept.values():
        alike.tell_apart(column)
    for value in values.values():
        # Nothing added to nothing is nothing, and no nought.
        alike.tell(np.isnan(value).astype(np.int64), 2)
    order, starts = alike.groups()
    counts = np.diff(np.append(starts, lines.num_rows))
    first = pa.array(order[starts])
    rows = {name: _plain(column.take(first)) for name, column in kept.items()}
    rows |= {name: _sums(value[order], starts, counts) for name, value in values.items()}
    return pa.table({**rows, CHARGES: pa.array(counts, pa.int64())})


def merged_tables(tables: Sequence[pa.Table], amounts: Collection[str]) -> pa.Table:
    """Return what several `combined` tables of the same columns hold, added up once more."""
    table = pa.concat_tables(tables).combine_chunks()
    if len(tables) == 1 or not table.num_rows:
        return table
    rows = table.to_batches()[0]
    kept = [name for name in table.column_names if name not in (*amounts, CHARGES)]
    alike = _Alike(rows.num_rows)
    for name in kept:
        alike.tell_apart(rows[name])
    for name in amounts:
        alike.tell(_as_numpy(rows[name].is_null()).astype(np.int64), 2)
    order, starts = alike.groups()
    first = pa.array(order[starts])
    columns = {name: rows[name].take(first) for name in kept}
    columns |= {name: _sums_of_sums(rows[name], order, starts) for name in amounts}
    counts = np.add.reduceat(_as_numpy(rows[CHARGES])[order], starts)
    return pa.table({**columns, CHARGES: pa.array(counts, pa.int64())})


def total(values: pa.Array) -> tuple[int, Decimal]:
    """Return how many of these amounts can be added up, and their exact sum."""
    value = _usable(values)
    known = value[~np.isnan(value)]
    if not known.size:
        return 0, Decimal(0)
    (sums,) = _sums(known, np.zeros(1, np.int64), np.array([known.size])).to_pylist()
    return int(known.size), of_parts(**sums)


class _Alike:
    """Numbers that are the same for lines which are alike in every column so far."""

    def __init__(self, lines: int) -> None:
        self._number, self._count = np.zeros(lines, np.int64), 1

    def tell_apart(self, column: pa.Array) -> None:
        if pa.types.is_map(column.type):
            self._tell_tags(column)
        else:
            self.tell(*_row_numbers(column))

    def tell(self, number: Numbers, count: int) -> None:
        """Tell lines apart by one more number, which is below `count`."""
        if count <= 1:
            return
        if self._count * count >= _LARGEST_NUMBER:
            self._number, self._count = _anew(self._number)
        self._number *= count
        self._number += number
        self._count *= count

    def _tell_tags(self, column: pa.MapArray) -> None:
        """Tell lines apart by their tags: the first tag of each, the second, ..."""
        if column.null_count:
            self.tell(_as_numpy(column.is_null()).astype(np.int64), 2)
        starts = _as_numpy(column.offsets)
        lengths = np.diff(starts)
        longest = int(lengths.max())
        self.tell(lengths, longest + 1)
        if not longest:
            return
        (key, _), (value, values) = _row_numbers(column.keys), _row_numbers(column.items)
        pair = key.astype(np.int64) * values + value
        count = int(pair.max()) + 1
        if count > _PAIRS:
            pair, count = _anew(pair)
        for position in range(longest):
            has = lengths > position
            at = np.where(has, starts[:-1] + position, 0)
            self.tell(np.where(has, pair[at], count), count + 1)

    def groups(self) -> tuple[Numbers, Numbers]:
        """Return an order that brings lines which are alike together, and where each group starts.

        The first of a group in that order is the first of it in the bill.
        """
        number, _ = _anew(self._number)
        order = np.argsort(number, kind="stable")
        ordered = number[order]
        is_new = np.append(True, ordered[1:] != ordered[:-1])
        return order, np.flatnonzero(is_new)


def _row_numbers(column: pa.Array) -> tuple[Numbers, int]:
    """Return a number for what each row says, null among it, and how many there may be."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    nothing = len(column.dictionary)
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(nothing)
    return _as_numpy(indices), nothing + 1


def _anew(number: Numbers) -> tuple[Numbers, int]:
    """Return numbers from nought on for the same rows."""
    found = pa.array(number).dictionary_encode()
    return _as_numpy(found.indices).astype(np.int64), len(found.dictionary)


def _day(column: pa.Array) -> pa.Array:
    """Return a time cut to its day, in microseconds, and anything else as it is."""
    if not pa.types.is_timestamp(column.type):
        return column
    kind = pa.timestamp("us", column.type.tz)
    time = column.cast(kind, safe=False).cast(pa.int64())
    day = _as_numpy(time.fill_null(0)) // _US_A_DAY * _US_A_DAY
    mask = _as_numpy(column.is_null()) if column.null_count else None
    return pa.array(day, kind, mask=mask)


def _usable(column: pa.Array) -> Numbers:
    """Return amounts as doubles, NaN where there is none that can be added up."""
    value = np.asarray(_as_numpy(column), np.float64)
    is_usable = np.abs(value) < LARGEST
    return value if is_usable.all() else np.where(is_usable, value, np.nan)


def _sums(value: Numbers, starts: Numbers, counts: Numbers) -> pa.Array:
    """Return the exact sum of each group of values, which stand in groups; NaN is nothing."""
    is_nothing = np.isnan(value)
    nothing = is_nothing[starts]
    if is_nothing.any():
        value = np.where(is_nothing, 0.0, value)
    whole = np.trunc(value)
    largest = np.abs(whole).max()
    rest = _trillionths(value, whole, is_large=bool(largest >= _LARGE[0])).astype(np.int64)
    if largest * int(counts.max()) >= _LARGEST_NUMBER:
        # Python's integers have no end; a sum that has no place as one of 64 bits is refused.
        wholes = np.add.reduceat(whole.astype(np.int64).astype(object), starts)
    else:
        wholes = np.add.reduceat(whole.astype(np.int64), starts)
    return _amounts(wholes, np.add.reduceat(rest, starts), nothing)


def _sums_of_sums(sums: pa.StructArray, order: Numbers, starts: Numbers) -> pa.Array:
    """Return the sum of each group of sums, which `order` brings together."""
    wholes, rests = (_as_numpy(sums.field(part).fill_null(0))[order] for part in PARTS.names)
    if int(np.abs(wholes).max()) * len(sums) >= _LARGEST_NUMBER:
        wholes = wholes.astype(object)
    nothing = _as_numpy(sums.is_null())[order][starts]
    return _amounts(np.add.reduceat(wholes, starts), np.add.reduceat(rests, starts), nothing)


def _amounts(wholes: Numbers, trillionths: Numbers, nothing: Numbers) -> pa.Array:
    """Return sums as AMOUNT, less than a dollar as trillionths: later sums of them have room."""
    dollars = trillionths // TRILLION
    parts = [pa.array(wholes + dollars, pa.int64()), pa.array(trillionths - dollars * TRILLION)]
    mask = pa.array(nothing) if nothing.any() else None
    return pa.StructArray.from_arrays(parts, fields=list(AMOUNT), mask=mask)


def _trillionths(value: Numbers, whole: Numbers, *, is_large: bool) -> Numbers:
    """Return what of amounts is no whole dollar, as far as a double holds it (spark.money)."""
    rest: Numbers = (value - whole) * TRILLION
    if not is_large:
        return np.rint(rest)
    step = _STEPS[np.searchsorted(_LARGE, np.abs(whole), side="right")]
    return np.rint(rest / step) * step


def _plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionaries."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    if pa.types.is_map(kind):
        return column.cast(pa.map_(_value_type(kind.key_type), _value_type(kind.item_type)))
    return column


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _empty_table(lines: pa.RecordBatch, amounts: Collection[str]) -> pa.Table:
    """Return the table without rows."""
    names: Sequence[str] = [name for name in lines.schema.names if name not in amounts]
    rows = {name: _plain(_day(lines[name])) for name in names}
    nothing = pa.array([], AMOUNT)
    return pa.table({**rows, **dict.fromkeys(amounts, nothing), CHARGES: pa.array([], pa.int64())})


def _as_numpy(column: pa.Array) -> Numbers:
    values: Numbers = column.to_numpy(zero_copy_only=False)
    return values
