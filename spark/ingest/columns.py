"""Columns of a bill as what its lines say: texts, tags, times and amounts, whatever type they have.

A column may have one type in one file and another in the next, as pandas chooses them: every piece
is read by itself, and what its columns say is the same. Tags may be text: JSON as AWS delivers it,
or what Athena and Python print of a map. Every way is tried where the one before made nothing of
it; what no way reads is kept whole, under the name UNREAD_TAGS, and the report says so. No way
guesses: a text of which a piece is no pair is not read at all.

Amounts are added up exactly: the same total whatever the order or the number of files. Doubles
added as doubles are not exact, so an amount is three integers: whole dollars, billionths of one,
and billionths of those. A double holds fifteen digits; AWS writes ten places, so of a double twelve
are taken, and of a large one fewer: 123456.78 is not 123456.779999999999. Decimals and text keep
eighteen.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

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


def read_once(column: pa.Array, read: Callable[[Any], Any], kind: Any) -> Any:
    """Return what is read of a column's values, each different one once; nothing is one as well."""
    values, number = distinct(column)
    return np.array([read(value) for value in values], kind)[number]


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


Numbers = np.ndarray[Any, np.dtype[Any]]

BILLION = 10**9
PLACES = 18
# A larger amount is damage, and would leave no room to add others up.
LARGEST = 1e15
# Places that are taken of a double, and digits that it surely holds.
_TRILLION = 10**12
_DIGITS, _WHOLE_DIGITS = 15, 3
# Whole dollars from which on a double holds one place less, and what trillionths it holds then.
_LARGE = np.power(10.0, np.arange(_WHOLE_DIGITS, _DIGITS))
_STEPS = np.power(10.0, np.arange(len(_LARGE) + 1))
# What fits an integer of 64 bits, with room to carry.
_LARGEST_SUM = 1 << 62
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# As AWS writes an amount, below LARGEST and with no more places than are kept.
_PLAIN = r"^-?\d{1,15}(\.\d{1,18})?$"
_EXACT = Context(prec=60)
# Of two of these the sum has 38 digits, which is what a decimal of 128 bits holds.
_ADDEND = pa.decimal128(37, PLACES)


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of lines, or sums of them: three integers each, and whether one is known."""

    parts: tuple[Numbers, Numbers, Numbers]
    known: Numbers

    def __len__(self) -> int:
        return len(self.known)

    def __add__(self, other: Amounts) -> Amounts:
        """Return sums; what is not known of one side is nothing."""
        parts = tuple(a + b for a, b in zip(self.parts, other.parts, strict=True))
        return Amounts(parts, self.known | other.known)  # type: ignore[arg-type] # three of three

    def __neg__(self) -> Amounts:
        return Amounts(tuple(-part for part in self.parts), self.known)  # type: ignore[arg-type] # the same

    def where(self, chosen: Numbers, other: Amounts | None = None) -> Amounts:
        """Return these where `chosen` is set, and elsewhere the others, or nothing."""
        rest = other if other is not None else nothing(len(self))
        parts = tuple(np.where(chosen, a, b) for a, b in zip(self.parts, rest.parts, strict=True))
        return Amounts(parts, np.where(chosen, self.known, rest.known))  # type: ignore[arg-type] # the same

    @property
    def is_something(self) -> Numbers:
        """Say of each whether it is known and not nought."""
        found: Numbers = (self.parts[0] != 0) | (self.parts[1] != 0) | (self.parts[2] != 0)
        return found & self.known

    def grouped(self, order: Numbers, starts: Numbers) -> Amounts:
        """Return the sums of groups; `order` brings each together, `starts` is where it begins."""
        if not self.known.any():
            return nothing(len(starts))
        whole = self.parts[0]
        if len(whole) and int(np.abs(whole).max()) * len(whole) >= _LARGEST_SUM:
            raise OverflowError("a sum of its amounts has no place as one of 64 bits")
        noughts = np.zeros(len(starts), np.int64)
        # Most columns of a bill are nought on most lines, and a look is cheaper than a sum.
        sums = [
            np.add.reduceat(part[order], starts) if part.any() else noughts for part in self.parts
        ]
        carried = sums[1] + sums[2] // BILLION
        parts = (sums[0] + carried // BILLION, carried % BILLION, sums[2] % BILLION)
        if self.known.all():
            return Amounts(parts, np.ones(len(starts), np.bool_))
        return Amounts(parts, np.logical_or.reduceat(self.known[order], starts))

    def decimals(self) -> pa.Array:
        """Return these as decimals of eighteen places; what is not known is nothing."""
        whole, billionths, rest = self.parts
        dollars = pa.array(whole).cast(pa.decimal128(19, 0)).cast(_ADDEND)
        below = pa.array(billionths * BILLION + rest).cast(pa.decimal128(19, 0))
        # The same integer counts parts of a dollar from here on.
        fractions = pa.Array.from_buffers(_ADDEND, len(below), below.buffers())
        return pc.add(dollars, fractions)

    def total(self) -> tuple[int, Decimal]:
        """Return how many amounts are known, and their exact sum."""
        sums = [int(part.sum(dtype=object)) for part in self.parts]
        return int(self.known.sum()), decimal_of(*sums)


def joined(several: Sequence[Amounts]) -> Amounts:
    """Return several, one after the other."""
    columns = zip(*(each.parts for each in several), strict=True)
    known = np.concatenate([each.known for each in several])
    return Amounts(tuple(map(np.concatenate, columns)), known)  # type: ignore[arg-type] # three of three


def nothing(length: int) -> Amounts:
    """Return as many amounts that are not known."""
    noughts = np.zeros(length, np.int64)
    return Amounts((noughts, noughts, noughts), np.zeros(length, np.bool_))


def decimal_of(whole: int, billionths: int, rest: int) -> Decimal:
    """Return the amount that three parts make."""
    return _EXACT.scaleb(Decimal((whole * BILLION + billionths) * BILLION + rest), -PLACES)


def amounts_of(column: pa.Array) -> Amounts:
    """Return a column's amounts; one that cannot be added up (NaN, 1e300, a word) is not known."""
    kind = column.type
    if pa.types.is_float64(kind):
        return _of_doubles(column)
    if pa.types.is_null(kind):
        return nothing(len(column))
    # As doubles 0.1 of single floats would be 0.10000000149: their digits count.
    is_coded = pa.types.is_dictionary(kind)
    coded = column if is_coded else column.cast(pa.string()).dictionary_encode()
    if not len(coded.dictionary):
        return nothing(len(column))
    distinct = _of_texts(coded.dictionary)
    number = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    there = np.asarray(coded.indices.is_valid())
    parts = tuple(np.where(there, part[number], 0) for part in distinct.parts)
    return Amounts(parts, there & distinct.known[number])  # type: ignore[arg-type] # three of three


def decimal_read(written: str | None) -> Decimal | None:
    """Return the amount that a text says with at most eighteen places, or None of no number."""
    text = (written or "").strip()
    if not _NUMBER.fullmatch(text):
        return None
    with localcontext(_EXACT):
        value = Decimal(text)
        if abs(value) >= LARGEST:
            return None
        return value.quantize(Decimal(1).scaleb(-PLACES), ROUND_HALF_UP)


def _of_texts(column: pa.Array) -> Amounts:
    """Return what texts say: Arrow reads those that AWS writes, and the others are few."""
    others = pc.invert(pc.match_substring_regex(column, _PLAIN))
    read = pa.array(map(decimal_read, column.filter(others).to_pylist()), _ADDEND)
    value = pc.replace_with_mask(pc.if_else(others, "0", column).cast(_ADDEND), others, read)
    known, value = np.asarray(value.is_valid()), value.fill_null(Decimal(0))
    whole = pc.floor(value)
    # What is below a dollar fits the lower half of its 128 bits.
    below = np.frombuffer(pc.subtract(value, whole).buffers()[1], np.int64)[: 2 * len(value) : 2]
    return Amounts((np.asarray(whole.cast(pa.int64())), below // BILLION, below % BILLION), known)


def _of_doubles(column: pa.Array) -> Amounts:
    value = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
    if not value.any():
        return replace(nothing(len(value)), known=np.ones(len(value), np.bool_))
    known = np.abs(value) < LARGEST
    if not known.all():
        value = np.where(known, value, 0.0)
    whole = np.trunc(value)
    trillionths = (value - whole) * _TRILLION
    if len(value) and np.abs(whole).max() >= _LARGE[0]:
        step = _STEPS[np.searchsorted(_LARGE, np.abs(whole), side="right")]
        trillionths = np.rint(trillionths / step) * step
    below = np.rint(trillionths).astype(np.int64)
    return Amounts((whole.astype(np.int64), below // 1000, below % 1000 * 10**6), known)
