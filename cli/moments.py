"""Reads the durations and moments that people write: 90min, 2h, 1d, 2026-11-20T18:00."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from core.ground.errors import InvalidInput

_SPAN = re.compile(r"\+?(\d{1,5})\s*(min|h|d)")
_UNITS = {"min": 60, "h": 3_600, "d": 86_400}


def seconds_of(said: str, option: str) -> float:
    """Return a duration in seconds; raise InvalidInput where an option has none.

    >>> seconds_of("45min", "--deadline")
    2700.0
    """
    if (found := _seconds_in(said)) is None:
        raise InvalidInput([f"{option} {said!r} is no duration; write 90min, 2h or 1d."])
    return found


def moment_of(said: str, now: float) -> float:
    """Return the moment a person means: +90min, 2h, 1d, or an ISO 8601 time (UTC if it names none).

    >>> moment_of("2h", 100.0)
    7300.0
    """
    if (seconds := _seconds_in(said)) is not None:
        return now + seconds
    try:
        found = datetime.fromisoformat(said.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(
            [f"--until {said!r} is no time; write 90min, 2h, 1d or 2026-11-20T18:00 (UTC)."]
        ) from None


def _seconds_in(said: str) -> float | None:
    found = _SPAN.fullmatch(said.strip())
    return None if found is None else float(int(found[1]) * _UNITS[found[2]])
