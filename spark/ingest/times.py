"""Reads the times of a bill, in whatever way they are written: as days, and as months.

Every different text or number is read once, of a month's lines a few hundred.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any, TypeVar

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

# A year and a month come first: a time without a day (a spreadsheet's 00:00.0) is none, and neither
# is a spreadsheet's number of a day (46327). The time may stop at the minute, as Azure's does.
_TIME = re.compile(
    r"([12]\d{3})-(\d{1,2})(?:-(\d{1,2}))?"
    r"(?:[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*"
    r"(Z|z|UTC|GMT|(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?)?)?"
)
_DAY = re.compile(r"([12]\d{3})-(\d{1,2})-(\d{1,2})(?:[T ].*)?", re.DOTALL)
YEARS = (1000, 2999)
# Times as numbers, as databases hand them on: what each unit of an epoch counts up to. No digits of
# a day are as many, but those of seconds, which text may not be.
_EPOCH = re.compile(r"\d{13}|\d{16}|\d{19}")
_SECONDS, _MILLIS, _MICROS, _NANOS = (10**places for places in (9, 12, 15, 18))
# East of UTC a month begins up to 14 hours before it does there.
_EASTERNMOST = timedelta(hours=14)
_START = datetime(1970, 1, 1, tzinfo=UTC)
T = TypeVar("T")


def day_of(value: Any) -> date | None:
    """Return the UTC day of a time; text that names another zone says another day at times."""
    moment = moment_of(value)
    if moment is not None:
        return moment.date()
    found = _DAY.fullmatch(value.strip()) if isinstance(value, str) else None
    return _made(lambda: date(*map(int, found.groups()))) if found else None


def month_of(value: Any) -> date | None:
    """Return the first day of the month that begins at a time."""
    moment = moment_of(value)
    return None if moment is None else (moment + _EASTERNMOST).date().replace(day=1)


def moment_of(value: Any) -> datetime | None:
    """Return a time in UTC; of a text one that says its year and month, of a number an epoch's."""
    if isinstance(value, datetime):
        known = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return known if YEARS[0] <= known.year <= YEARS[1] else None
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        text = value.strip()
        return _of_epoch(int(text)) if _EPOCH.fullmatch(text) else _of_text(text)
    return (
        None if value is None or isinstance(value, bool) else _made(lambda: _of_epoch(int(value)))
    )


def _of_text(text: str) -> datetime | None:
    found = _TIME.fullmatch(text)
    if not found:
        return None
    year, month, day, hour, minute, second, places, _, sign, hours, minutes = found.groups()
    zone: tzinfo = UTC
    if sign:
        away = timedelta(hours=int(hours), minutes=int(minutes or 0))
        zone = timezone(away if sign == "+" else -away)
    micros = int(f"{places or 0:0<6}"[:6])
    clock = tuple(int(part or 0) for part in (hour, minute, second))

    def made() -> datetime:
        start = datetime(int(year), int(month), int(day or 1), tzinfo=zone)
        if not (clock[0] < 24 and clock[1] < 60 and clock[2] < 60):
            raise ValueError(text)
        away = timedelta(hours=clock[0], minutes=clock[1], seconds=clock[2], microseconds=micros)
        return (start + away).astimezone(UTC)

    return _made(made)


def _of_epoch(number: int) -> datetime | None:
    """Return the time that a number counts to from 1970, in the unit that its size tells."""
    units = ((_NANOS, 1000), (_MICROS, 1), (_MILLIS, -1000), (_SECONDS, -1_000_000))
    size = next((size for least, size in units if number >= least), None)
    if size is None:
        return None
    micros = number // size if size > 0 else number * -size
    return _made(lambda: _START + timedelta(microseconds=micros))


def _made(make: Callable[[], T]) -> T | None:
    """Return what is made, or None of numbers that are no day (a 31st of November)."""
    try:
        return make()
    except (ValueError, OverflowError):
        return None


def distinct(column: pa.Array) -> tuple[list[Any], Any]:
    """Return a column's different values, last nothing, and which of them each line has."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = [*coded.dictionary.to_pylist(), None]
    return values, coded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
