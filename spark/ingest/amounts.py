"""Adds amounts up exactly, in columns: the same total whatever the order or the number of files.

Doubles added as doubles are not exact, so an amount is three integers: whole dollars, billionths of
one, and billionths of those. A double holds fifteen digits; AWS writes ten places, so of a double
twelve are taken, and of a large one fewer: 123456.78 is not 123456.779999999999. Decimals and text
keep eighteen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

Numbers = np.ndarray[Any, np.dtype[Any]]

# What a sum is carried in, and what each counts.
PARTS = ("whole", "billionths", "rest")
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
    written = column if _is_text(kind) else column.cast(pa.string())
    coded = written if pa.types.is_dictionary(kind) else written.dictionary_encode()
    distinct = _of_decimals(decimal_read(each) for each in coded.dictionary.to_pylist())
    if not len(distinct):
        return nothing(len(column))
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


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind))


def _of_decimals(values: Iterable[Decimal | None]) -> Amounts:
    known = list(values)
    parts: Sequence[list[int]] = ([], [], [])
    with localcontext(_EXACT):
        for value in known:
            dollars, below = divmod(int((value or Decimal(0)).scaleb(PLACES)), BILLION * BILLION)
            for part, count in zip(
                parts, (dollars, below // BILLION, below % BILLION), strict=True
            ):
                part.append(count)
    arrays = tuple(np.array(part, np.int64) for part in parts)
    return Amounts(arrays, np.array([value is not None for value in known], np.bool_))  # type: ignore[arg-type] # three of three


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
