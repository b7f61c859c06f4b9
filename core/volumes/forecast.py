"""When a volume is full: the trend of its fill, and how far above its trend it goes at times.

Two trends. The long one says what the days ahead want; the short one sees what began this morning,
and is believed for half a day only: a Kafka volume breathes with its retention and with the day.
The long one is believed for as long as it was seen: EBS never shrinks a volume that was grown for a
day's backfill as though it went on for ever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SHORT_SECONDS = 6 * 3600.0
SHORT_BELIEVED_SECONDS = 12 * 3600.0
# Of the distances above the trend, this share is below the one that is reckoned with.
QUANTILE = 0.95
LEAST_SPAN_SECONDS = 600.0
# A long trend over less than this is no trend of days.
LONG_LEAST_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What a volume held at a moment."""

    at: float
    used_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
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


def forecast(samples: Sequence[Sample], used_bytes: float, now: float) -> Forecast:
    """Return the forecast of a volume that holds `used_bytes` now, from what it held before."""
    points = [s for s in samples if s.at < now]
    points.append(Sample(now, used_bytes))
    recent = [s for s in points if s.at >= now - SHORT_SECONDS]
    short = max(_slope(recent), _steepest_end(recent))
    span = now - points[0].at
    if span < LONG_LEAST_SECONDS:
        return Forecast(used_bytes=used_bytes, short_rate=short, span_seconds=span)
    long = _slope(points)
    return Forecast(
        used_bytes=used_bytes,
        long_rate=long,
        short_rate=short,
        spread_bytes=_spread(points, long),
        span_seconds=span,
        long_believed_seconds=span,
    )


def _slope(points: Sequence[Sample]) -> float:
    """Return the slope of the least squares' line, 0 where there is too little to say."""
    if len(points) < 2 or points[-1].at - points[0].at < LEAST_SPAN_SECONDS:
        return 0.0
    count = len(points)
    mid_at = sum(p.at for p in points) / count
    mid_used = sum(p.used_bytes for p in points) / count
    over = sum((p.at - mid_at) * (p.used_bytes - mid_used) for p in points)
    under = sum((p.at - mid_at) ** 2 for p in points)
    return over / under if under else 0.0


def _steepest_end(points: Sequence[Sample]) -> float:
    """Return the slope since the sample before: what began just now shows nowhere else."""
    last = points[-1]
    for before in reversed(points):
        if last.at - before.at >= LEAST_SPAN_SECONDS:
            return (last.used_bytes - before.used_bytes) / (last.at - before.at)
    return 0.0


def _spread(points: Sequence[Sample], slope: float) -> float:
    """Return how much higher above its trend it may stand than it does now."""
    mid_at = sum(p.at for p in points) / len(points)
    mid_used = sum(p.used_bytes for p in points) / len(points)
    above = [p.used_bytes - mid_used - slope * (p.at - mid_at) for p in points]
    high = sorted(above)[min(len(above) - 1, int(QUANTILE * len(above)))]
    return max(0.0, high - above[-1])
