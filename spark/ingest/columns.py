"""Columns of a bill as what its lines say: texts, tags and times, whatever type they have.

A column may have one type in one file and another in the next, as pandas chooses them: every piece
is read by itself, and what its columns say is the same. Tags may be text: JSON as AWS delivers it,
or what Athena and Python print of a map. Every way is tried where the one before made nothing of
it; what no way reads is kept whole, under the name UNREAD_TAGS, and the report says so. No way
guesses: a text of which a piece is no pair is not read at all.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types

from spark.rules.line import EMPTY
from spark.tag_keys import UNREAD_TAGS

# Years of a bill: sums of days and zones have no place beyond them.
YEARS = range(1000, 3000)
_MONTH = re.compile(r"\d{4}-\d{2}")
# East of UTC a month begins up to 14 hours before it does there.
_EASTERNMOST = timedelta(hours=14)


def day_of(value: Any) -> date | None:
    """Return the UTC day of a time; text that names another zone says another day at times."""
    moment = moment_of(value)
    return None if moment is None else moment.date()


def month_of(value: Any) -> date | None:
    """Return the first day of the month that begins at a time."""
    moment = moment_of(value)
    return None if moment is None else (moment + _EASTERNMOST).date().replace(day=1)


def moment_of(value: Any) -> datetime | None:
    """Return a time in UTC: of text in ISO 8601, or of a month alone."""
    if isinstance(value, str):
        text = value.strip()
        # Athena and BigQuery write the zone's name.
        text = f"{text}-01" if _MONTH.fullmatch(text) else re.sub(r"\s?(UTC|GMT)$", "Z", text)
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            return None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime) or value.year not in YEARS:
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def distinct(column: pa.Array) -> tuple[list[Any], Any]:
    """Return a column's different values, last nothing, and which of them each line has."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = [*coded.dictionary.to_pylist(), None]
    return values, coded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)


UNREAD_CHARACTERS = 80
Tags = tuple[tuple[str, Any], ...]

# What Python writes of a float for nothing, where no quote is around it.
_NAN = re.compile(r"(?<=[:,\[(]\s)nan(?=\s*[,}\])])")
# How Athena prints a map, {a=b, c=d}: where the first key ends, and the next pair begins.
_PRINTED_MAP = re.compile(r"\{[^\"'={}]+=.*\}", re.DOTALL)
_NEXT_PAIR = re.compile(", (?=[^,={}]+=)")


@lru_cache(1 << 16)
def tags_in(written: str | None) -> Tags | None:
    """Return the tags that a text holds, in their order; None of a text that holds nothing."""
    text = (written or "").strip(" ")
    if text in EMPTY:
        return None
    for read in (_of_json, _of_python, _of_athena):
        found = read(text)
        if found is not None:
            return found
    return ((UNREAD_TAGS, text[:UNREAD_CHARACTERS]),)


def _of_json(text: str) -> Tags | None:
    try:
        value = json.loads(text, object_pairs_hook=tuple, parse_float=str, parse_int=str)
    except ValueError:
        return None
    # An object is a tuple of pairs; a list holds objects of a key and a value, or pairs.
    if isinstance(value, list):
        return _whole(map(_pair, value))
    return _whole(value) if isinstance(value, tuple) else None


def _of_python(text: str) -> Tags | None:
    """Read what Python prints of a dictionary, or of a list of tuples or of keys with values."""
    try:
        value = ast.literal_eval(_NAN.sub("None", text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, dict):
        return _whole(value.items())
    if not isinstance(value, list):
        return None
    return _whole(_pair(tuple(e.items()) if isinstance(e, dict) else e) for e in value)


def _of_athena(text: str) -> Tags | None:
    if not _PRINTED_MAP.fullmatch(text):
        return None
    pairs = (pair.partition("=") for pair in _NEXT_PAIR.split(text[1:-1]))
    return _whole((key.strip(" "), value) for key, _, value in pairs)


def _pair(each: Any) -> tuple[Any, Any]:
    """Return a list's element as a pair: an object's key and value, or both of a list."""
    if not isinstance(each, (list, tuple)) or len(each) != 2:
        return None, None
    if all(isinstance(field, tuple) for field in each):
        fields = {f"{name}".lower(): value for name, value in each}
        return fields.get("key"), fields.get("value")
    return each[0], each[1]


def _whole(pairs: Iterable[tuple[Any, Any]]) -> Tags | None:
    """Return pairs, or None where one of them has no key."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            return None
        found.setdefault(key, _written(value))
    return tuple(found.items())


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return json.dumps(dict(value))
    return json.dumps(value)


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
    """Return a column of tags as maps; what is no map is read as its text (tags_in).

    Of what stands twice the first counts, as of a tag in two columns.
    """
    if pa.types.is_map(column.type):
        return column
    coded = texts_of(column)
    read = [tags_in(written) for written in coded.dictionary.to_pylist()]
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
