"""Decides when a billing period is final, and which of them a daily job makes again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache

from spark.rows import Found
from spark.tag_keys import OURS, KafkaTags

# AWS corrects a month for up to two weeks after it closed (Data Exports, "Export refreshing").
SETTLING_DAYS = 14
# How many days must come before one for it to stand out.
FEWEST_BEFORE = 5
# The month of rows whose month cannot be read.
UNKNOWN_PERIOD = "unknown"


@dataclass(frozen=True, slots=True)
class Refresh:
    """One month of a bill as it was delivered."""

    execution: str
    files: int = 1
    # What tells its files from others of their names; empty where one of them is gone.
    fingerprint: str = ""


def final_of(
    period: str, billed: Decimal, now: datetime, before: Found | None
) -> tuple[Decimal | None, datetime | None]:
    """Return what a month that is read now came to when it was first final, and when that was read.

    `before` is what DELIVERIES noted of it the last time. Tables that were made before this was
    noted say it by the day on which they were made; before a month is final nothing says it.
    """
    if period == UNKNOWN_PERIOD:
        return None, None
    if before is not None and before.final_billed_cost is not None:
        return before.final_billed_cost, before.final_read_at
    if before is not None and before.ingested_at.date() >= settled_on(period):
        return before.billed_cost, before.ingested_at
    return (billed, now) if now.date() >= settled_on(period) else (None, None)


def made_by(note: Found) -> tuple[str, str] | None:
    """Return the tags by which a month's tables tell Kafka's from the rest, where that is noted."""
    return None if note.cluster_tag is None else (note.cluster_tag, note.pool_tag)


def first_day_after(billing_period: str) -> date:
    """Return the day after a month's last: 2026-12 -> 2027-01-01."""
    year, month = (int(part) for part in billing_period.split("-"))
    return date(year + month // 12, month % 12 + 1, 1)


def is_by_the_month(days: Collection[date], today: date) -> bool:
    """Say whether charges stand on the first day of their month alone, though that is long over.

    So they do on the bills of an export whose time granularity is monthly: nothing is known of
    single days, and a month's quantity is not a day's.
    """
    is_first = bool(days) and all(day.day == 1 for day in days)
    return is_first and today > max(days) + timedelta(days=2)


# Rows by the hundred thousand have some ninety days.
_month_of = cache(lambda day: None if day is None else day.isoformat()[:7])


def is_of_its_month(row: Found) -> bool:
    """Say whether a row's day is one of the month that billed it.

    A correction of an earlier month, or a fee that begins later, is no day of this one.
    """
    return bool(_month_of(row.day) == row.billing_period)


def last_complete_day(last: date, read_on: date | None) -> date:
    """Return the last day whose charges are all there, of a bill that ends with `last`.

    AWS bills with a day's delay, so the last day of a bill is half of one. That of a month is whole
    where the bill was read when the month was final; nothing is of a day that had not passed then,
    though a fee may name one.
    """
    ends_its_month = last + timedelta(days=1) == first_day_after(f"{last:%Y-%m}")
    is_final = read_on is not None and read_on >= settled_on(f"{last:%Y-%m}")
    complete = last if ends_its_month and is_final else last - timedelta(days=1)
    return complete if read_on is None else min(complete, read_on - timedelta(days=1))


def month_before(billing_period: str) -> str:
    """Return the month before one: 2027-01 -> 2026-12."""
    return f"{date.fromisoformat(f'{billing_period}-01') - timedelta(days=1):%Y-%m}"


def settled_on(billing_period: str) -> date:
    """Return the day from which a month's bill is final: 2026-11 -> 2026-12-15."""
    return first_day_after(billing_period) + timedelta(days=SETTLING_DAYS)


def unsettled(
    delivered: Mapping[str, Refresh], held: Mapping[str, Found], kafka: KafkaTags = OURS
) -> list[str]:
    """Return the months to make again: all but those held as AWS left them.

    `delivered` is the newest refresh of every month of the bill, `held` what DELIVERIES noted of
    those in the tables; what an earlier version did not note is None. A month last read before it
    was final is made once more, however long the job was away; so is one whose Kafka was told by
    something else than `kafka`, since months are compared with each other.
    """
    done = {
        period
        for period, refresh in delivered.items()
        if period in held and _is_settled(period, refresh, held[period], kafka)
    }
    return sorted(set(delivered) - done)


def _is_settled(period: str, refresh: Refresh, held: Found, kafka: KafkaTags) -> bool:
    final_on = settled_on(period)
    # Files of a month that nobody reads may be gone, and tables of an earlier version noted none:
    # then the execution says whether it is another.
    is_same_by_name = held.fingerprint is None and refresh.execution != ""
    return (
        (is_same_by_name or refresh.fingerprint in ("", held.fingerprint))
        and held.execution == refresh.execution
        and held.ingested_at.date() >= final_on
        and made_by(held) in (None, kafka.asked)
        and held.told_by in (None, kafka.told_by(final_on))
    )
