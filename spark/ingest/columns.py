"""Columns of a bill as what its lines say: texts, tags, times and amounts, whatever type they have.

A column may have one type in one file and another in the next, as pandas chooses them: every piece
is read by itself, and what its columns say is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from spark.ingest import tag_texts

TAGS = pa.map_(pa.string(), pa.string())


def texts_of(column: pa.Array) -> pa.DictionaryArray:
    """Return a column as texts, numbered."""
    kind = column.type
    if pa.types.is_null(kind):
        return pa.array([None] * len(column), pa.string()).dictionary_encode()
    if pa.types.is_dictionary(kind):
        return (
            column if pa.types.is_string(kind.value_type) else texts_of(column.dictionary_decode())
        )
    if pa.types.is_string(kind):
        return column.dictionary_encode()
    if pa.types.is_nested(kind) or pa.types.is_floating(kind):
        values = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.array(values, pa.string()).dictionary_encode()
    return column.cast(pa.string()).dictionary_encode()


def tags_of(column: pa.Array) -> pa.MapArray:
    """Return a column of tags as maps; what is no map is read as its text (spark.ingest.tag_texts).

    Of what stands twice the first counts, as of a tag in two columns.
    """
    if pa.types.is_map(column.type):
        return column
    coded = texts_of(column)
    read = [tag_texts.tags_in(written) for written in coded.dictionary.to_pylist()]
    tags = [None if each is None else list(each) for each in (*read, None)]
    return pa.array(tags, TAGS).take(coded.indices.fill_null(len(read)))


class Alike:
    """Numbers that are the same for lines which are alike in every column so far.

    What each column says of a line is a number of its dictionary; the numbers of all columns make
    one. A bill says the same of a resource hour after hour.
    """

    # What fits an integer of 64 bits, with room for one more column.
    _LARGEST_NUMBER = 1 << 62
    # Pairs of a tag's key and value that are numbered as they are; more are numbered anew.
    _PAIRS = 1 << 16

    def __init__(self, lines: int) -> None:
        self._number, self._count = np.zeros(lines, np.int64), 1

    def tell_apart(self, column: pa.Array) -> None:
        if pa.types.is_map(column.type):
            self._tell_tags(column)
        else:
            self.tell(*row_numbers(column))

    def tell(self, number: Any, count: int) -> None:
        """Tell lines apart by one more number, which is below `count`."""
        if count <= 1:
            return
        if self._count * count >= self._LARGEST_NUMBER:
            self._number, self._count = numbered_anew(self._number)
        self._number *= count
        self._number += number
        self._count *= count

    def numbers(self) -> tuple[Any, int]:
        """Return a number from nought on for each line, and how many there are."""
        return numbered_anew(self._number)

    def _tell_tags(self, column: pa.MapArray) -> None:
        """Tell lines apart by their tags: the first tag of each, the second, ..."""
        if column.null_count:
            self.tell(np.asarray(column.is_null()).astype(np.int64), 2)
        starts = np.asarray(column.offsets)
        lengths = np.diff(starts)
        longest = int(lengths.max())
        self.tell(lengths, longest + 1)
        if not longest:
            return
        (key, _), (value, values) = row_numbers(column.keys), row_numbers(column.items)
        pair = key.astype(np.int64) * values + value
        count = int(pair.max()) + 1
        if count > self._PAIRS:
            pair, count = numbered_anew(pair)
        for position in range(longest):
            has = lengths > position
            at = np.where(has, starts[:-1] + position, 0)
            self.tell(np.where(has, pair[at], count), count + 1)


def row_numbers(column: pa.Array) -> tuple[Any, int]:
    """Return a number for what each row says, null among it, and how many there may be."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    nothing = len(coded.dictionary)
    return coded.indices.fill_null(nothing).to_numpy(zero_copy_only=False), nothing + 1


def numbered_anew(number: Any) -> tuple[Any, int]:
    """Return numbers from nought on for the same rows."""
    found = pa.array(number).dictionary_encode()
    indices = found.indices.to_numpy(zero_copy_only=False)
    return indices.astype(np.int64), len(found.dictionary)


def groups_of(number: Any) -> tuple[Any, Any]:
    """Return an order that brings rows of one number together, and where each group starts.

    The first of a group in that order is the first of it in the bill.
    """
    order = np.argsort(number, kind="stable")
    ordered = number[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])
    return order, np.flatnonzero(is_new)
