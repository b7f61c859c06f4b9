"""Reads the times of a bill: as days, and as months.

Every different text is read once, of a month's lines a few hundred.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # ships no types

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
