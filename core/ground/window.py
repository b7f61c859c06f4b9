"""Decides when planned work may begin: the maintenance window, and AWS's own time behind it.

A scheduled retirement leaves days. The replacement is made inside the window, before AWS takes the
instance; where no window is left before that, it is made at once. Pure; times are epoch seconds,
windows are UTC, so no clock is put forward or back inside one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEK_MINUTES = 7 * 1440
_WEEK_SECONDS = _WEEK_MINUTES * 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of time that opens on some days of the week, by the clock of UTC."""

    days: frozenset[str]  # of DAYS
    start_minute: int  # after midnight
    duration_minutes: int

    def opening(self, now: float) -> tuple[float, float]:
        """Return when the window that is open now opened, or else the next one, and its end."""
        midnight = datetime.fromtimestamp(now, UTC).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        # A window of yesterday's may still be open; one is at most a week away.
        for offset in range(-1, len(DAYS) + 1):
            day = midnight + timedelta(days=offset)
            start = (day + timedelta(minutes=self.start_minute)).timestamp()
            end = start + self.duration_minutes * 60
            if DAYS[day.weekday()] in self.days and end > now:
                return start, end
        raise AssertionError("a window names at least one day")

    def stretches(self, now: float) -> Iterator[tuple[float, float]]:
        """Yield from when to when it is open, now and in the week to come; what touches is one."""
        opens, closes = self.opening(now)
        while opens < now + _WEEK_SECONDS:
            following, until = self.opening(closes)
            if following > closes:
                yield opens, closes
                opens, closes = following, until
            elif until - opens < _WEEK_SECONDS:
                closes = until
            else:
                # Every week is like this one.
                yield opens, inf
                return

    def closed_spans(self) -> tuple[tuple[int, int], ...]:
        """Return from when on it is closed each week, and for how long; both in minutes of UTC.

        The first counts from Monday's midnight.

        >>> Window(days=frozenset({"sun"}), start_minute=180, duration_minutes=120).closed_spans()
        ((8940, 9960),)
        """
        opens = sorted(DAYS.index(day) * 1440 + self.start_minute for day in self.days)
        ends = [at + self.duration_minutes for at in opens]
        following = [*opens[1:], opens[0] + _WEEK_MINUTES]
        return tuple(
            (end % _WEEK_MINUTES, until - end)
            for end, until in zip(ends, following, strict=True)
            if end < until
        )


@dataclass(frozen=True, slots=True)
class Start:
    """When planned work may begin, and why then."""

    at: float
    reason: str


def start_of(
    due_at: float | None, now: float, window: Window | None, *, margin_seconds: float
) -> Start:
    """Say when to begin what AWS does by itself at `due_at`.

    A window counts when it opens `margin_seconds` or more before the due time. The answer is never
    before `now`; asked again later, it moves to the next window, or to at once.
    """
    if window is None:
        return Start(now, "no maintenance window is set, so the replacement begins at once")
    opens, closes = window.opening(now)
    latest = None if due_at is None else due_at - margin_seconds
    if latest is not None and now >= latest:
        return Start(now, f"less than {margin_seconds / 3600:.1f} h are left, so it begins at once")
    if opens <= now:
        return Start(now, f"the maintenance window is open until {clock(closes)}")
    if latest is not None and opens > latest:
        return Start(now, "no maintenance window opens in time, so it begins at once")
    return Start(opens, f"the maintenance window opens at {clock(opens)}")


def clock(at: float) -> str:
    """Return a moment as people write it.

    >>> clock(0)
    '1970-01-01 00:00 UTC'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
