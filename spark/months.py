"""When a billing period is final."""

from __future__ import annotations

from datetime import date, timedelta

# AWS corrects a month for up to two weeks after it closed (Data Exports, "Export refreshing").
SETTLING_DAYS = 14


def settled_on(billing_period: str) -> date:
    """Return the day from which a month's bill is final: 2026-11 -> 2026-12-15."""
    year, month = (int(part) for part in billing_period.split("-"))
    return date(year + month // 12, month % 12 + 1, 1) + timedelta(days=SETTLING_DAYS)
