"""core.volumes.views: when a volume is full, by its trends and its spread."""

from __future__ import annotations

import math

from core.volumes.views import FillSample, forecast
from tests.unit.core.volumes.views import DAY, HOUR, NOW


def hourly(days: float, per_hour: float, start: float = 0.0) -> list[FillSample]:
    count = int(days * 24)
    return [FillSample(NOW - (count - n) * HOUR, start + n * per_hour) for n in range(count)]


def test_a_steady_fill_is_full_when_arithmetic_says() -> None:
    seen = forecast(hourly(7, 1.0), 168.0, NOW)
    assert math.isclose(seen.long_rate * HOUR, 1.0, rel_tol=1e-6)
    found = seen.seconds_until(268.0)
    assert found is not None
    assert math.isclose(found, 100 * HOUR, rel_tol=1e-3)


def test_a_volume_that_empties_is_never_full() -> None:
    assert forecast(hourly(7, -1.0, 1000.0), 832.0, NOW).seconds_until(2000.0) is None


def test_what_is_there_already_is_there_in_no_time() -> None:
    assert forecast([], 100.0, NOW).seconds_until(100.0) == 0.0


def test_two_samples_of_an_hour_are_no_trend_of_days() -> None:
    seen = forecast([FillSample(NOW - HOUR, 0.0)], 50.0, NOW)
    assert seen.long_rate == 0
    assert math.isclose(seen.short_rate * HOUR, 50.0)
    assert seen.seconds_until(550.0) == 10 * HOUR
    # Half a day is as long as a morning's rate is believed.
    assert seen.seconds_until(50.0 + 13 * 50.0) is None


def test_a_spike_of_the_last_minutes_shows() -> None:
    flat = [*hourly(7, 0.0, 100.0), FillSample(NOW - 900, 100.0)]
    seen = forecast(flat, 200.0, NOW)
    found = seen.seconds_until(300.0)
    assert found is not None
    assert found <= 900


def test_a_volume_that_breathes_is_reckoned_at_its_height() -> None:
    swing = [
        FillSample(NOW - (168 - n) * HOUR, 500 + 100 * math.sin(2 * math.pi * n / 24))
        for n in range(168)
    ]
    seen = forecast(swing, 500.0, NOW)
    assert 80 < seen.spread_bytes < 120
    assert seen.seconds_until(580.0) == 0.0
    assert abs(seen.long_rate) * DAY < 20
