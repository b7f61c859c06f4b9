"""Forecasts when a volume is full, from the trend of its fill and how far it strays above it.

Two trends. The long one says what the days ahead want; the short one sees what began this morning,
and is believed for half a day only: a Kafka volume breathes with its retention and with the day.
The long one is believed for as long as it was seen: EBS never shrinks a volume that was grown for a
day's backfill as though it went on for ever.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, mul

SHORT_SECONDS = 6 * 3600.0
SHORT_BELIEVED_SECONDS = 12 * 3600.0
# Of the distances above the trend, this share is below the one that is reckoned with.
QUANTILE = 0.95
LEAST_SPAN_SECONDS = 600.0
# A long trend over less than this is no trend of days.
LONG_LEAST_SECONDS = 24 * 3600.0
_AT, _USED = attrgetter("at"), attrgetter("used_bytes")


@dataclass(frozen=True, slots=True)
class FillSample:
    """What a volume held at a moment."""

    at: float
    used_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FillForecast:
    """A volume's fill from now on; rates are bytes a second."""

    used_bytes: float
    long_rate: float = 0.0
    short_rate: float = 0.0
    # What it may stand above its trend, beyond where it stands now.
    spread_bytes: float = 0.0
    # How far back the samples go that it rests on; a long trend is believed for no longer ahead.
    span_seconds: float = 0.0
    long_believed_seconds: float = math.inf

    def used_in(self, seconds: float) -> float:
        """Return what it holds then, with the spread."""
        short = max(0.0, self.short_rate) * min(seconds, SHORT_BELIEVED_SECONDS)
        long = max(0.0, self.long_rate) * min(seconds, self.long_believed_seconds)
        ahead = max(long, short)
        return self.used_bytes + ahead + self.spread_bytes

    def seconds_until(self, level_bytes: float) -> float | None:
        """Return when it holds so much, 0 where it does already; None where it never will."""
        left = level_bytes - self.used_bytes - self.spread_bytes
        if left <= 0:
            return 0.0
        found = [left / self.long_rate] if self.long_rate > 0 else []
        if self.short_rate > 0 and left / self.short_rate <= SHORT_BELIEVED_SECONDS:
            found.append(left / self.short_rate)
        return min(found, default=None)


def forecast(samples: Sequence[FillSample], used_bytes: float, now: float) -> FillForecast:
    """Return the forecast of a volume that holds `used_bytes` now, from what it held before.

    Samples come the oldest first.
    """
    points = [*samples[: bisect_left(samples, now, key=_AT)], FillSample(now, used_bytes)]
    recent = points[bisect_left(points, now - SHORT_SECONDS, key=_AT) :]
    short = max(_Line(recent).slope, _steepest_end(recent))
    span = now - points[0].at
    if span < LONG_LEAST_SECONDS:
        return FillForecast(used_bytes=used_bytes, short_rate=short, span_seconds=span)
    long = _Line(points)
    return FillForecast(
        used_bytes=used_bytes,
        long_rate=long.slope,
        short_rate=short,
        spread_bytes=long.spread(),
        span_seconds=span,
        long_believed_seconds=span,
    )


class _Line:
    """The least squares' line through points; its slope is 0 where there is too little to say.

    Two weeks of hours for every volume at every look: sums run over lists of their own.
    """

    def __init__(self, points: Sequence[FillSample]) -> None:
        self._from_mid = _deviations(list(map(_AT, points)))
        self._above_mid = _deviations(list(map(_USED, points)))
        self.slope = 0.0
        if len(points) >= 2 and points[-1].at - points[0].at >= LEAST_SPAN_SECONDS:
            over = sum(map(mul, self._from_mid, self._above_mid))
            self.slope = over / sum(map(mul, self._from_mid, self._from_mid))

    def spread(self) -> float:
        """Return how much higher above the line a volume may stand than it does now."""
        slope = self.slope
        above = [
            used - slope * at for at, used in zip(self._from_mid, self._above_mid, strict=True)
        ]
        high = sorted(above)[min(len(above) - 1, int(QUANTILE * len(above)))]
        return max(0.0, high - above[-1])


def _deviations(values: list[float]) -> list[float]:
    """Return values less their mean."""
    mid = sum(values) / len(values)
    return [value - mid for value in values]


def _steepest_end(points: Sequence[FillSample]) -> float:
    """Return the slope since the sample before: what began just now shows nowhere else."""
    last = points[-1]
    for before in reversed(points):
        if last.at - before.at >= LEAST_SPAN_SECONDS:
            return (last.used_bytes - before.used_bytes) / (last.at - before.at)
    return 0.0
