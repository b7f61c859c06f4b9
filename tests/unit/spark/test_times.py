"""Times as bills write them: a day in UTC, a month where it begins, or none."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from spark.ingest.times import day_of, month_of

NOVEMBER, DAY = date(2026, 11, 1), date(2026, 11, 20)
# 2026-11-20 12:00 UTC.
SECONDS = 1_795_176_000


@pytest.mark.parametrize(
    "written",
    [
        *("2026-11-20T12:00:00Z", "2026-11-20 12:00:00", "2026-11-20", "2026-11-20T12:00:00.123Z"),
        # To the minute, as Azure and Oracle write them in FOCUS.
        *("2026-11-20T12:00Z", "2026-11-20T12:00+00:00", "2026-11-20T12:00 UTC"),
        *("2026-11-21T02:00:00+05:30", "2026-11-20T05:30:00+05:30", "2026-11-19T19:00:00-05:00"),
        # As databases count them.
        *(f"{SECONDS * unit}" for unit in (10**3, 10**6, 10**9)),
        *(SECONDS * unit for unit in (1, 10**3, 10**6, 10**9)),
        *(float(SECONDS), datetime(2026, 11, 20, 12), DAY),  # noqa: DTZ001 - CUR writes no zone
    ],
)
def test_a_time_is_a_day_in_utc(written: Any) -> None:
    assert (day_of(written), month_of(written)) == (DAY, NOVEMBER)


@pytest.mark.parametrize(
    "written", ["2026-11", "2026-11-01T00:00:00+05:30", "2026-10-31T19:00:00-05:00"]
)
def test_a_month_begins_up_to_half_a_day_before_it_does_in_utc(written: str) -> None:
    assert month_of(written) == NOVEMBER


@pytest.mark.parametrize(
    "written",
    [
        *("00:00.0", "12:00:00", "46327", "46327.5", "0026-11-20", "2026", "Nov 2026", "yesterday"),
        # Seconds have as many digits as a day and its hour.
        *(f"{SECONDS}", "2026-11-31", "2026-11-20T25:00:00Z", "11/1/2026 0:00", "", None, True),
        datetime(9999, 12, 1),  # noqa: DTZ001 - the same
    ],
)
def test_what_says_no_month_is_no_time(written: Any) -> None:
    assert month_of(written) is None
