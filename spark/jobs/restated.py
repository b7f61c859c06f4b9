"""Says what tables noted of a month: by which tags it was made, whether AWS changed it since."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal

from spark.months import Final, NotedMonth, month_before
from spark.report.words import cents
from spark.rows import Found
from spark.tag_keys import OURS, KafkaTags

# A month that no report is about is told of for as long after it was read again.
TOLD_DAYS = 31


def reading_of(note: Found) -> NotedMonth:
    """Return what the tables noted of a month when they were last made."""
    final = None
    if note.final_billed_cost is not None:
        final = Final(note.final_billed_cost, note.final_read_at)
    return NotedMonth(note.billed_cost, note.ingested_at, final)


def restatement(note: Found, currency: str = "") -> str | None:
    """Return how a month's total differs from what was final of it; None where it does not."""
    final = reading_of(note).final
    if final is None or cents(final.billed, currency) == cents(note.billed_cost, currency):
        return None
    more = note.billed_cost > final.billed
    return (
        f"AWS has restated {note.billing_period} since it was final: "
        f"{_money(final.billed, currency)} as read on {final.read_at:%Y-%m-%d}, "
        f"{_money(note.billed_cost, currency)} as delivered again and read on "
        f"{note.ingested_at:%Y-%m-%d}, {_money(abs(note.billed_cost - final.billed), currency)} "
        f"{'more' if more else 'less'}. Credits, refunds and late corrections do that; the tables "
        f"hold the newer delivery."
    )


def notes(month: str, deliveries: Mapping[str, Found], currency: str, today: date) -> list[str]:
    """Return a sentence for each restated month that a report's reader has to know of.

    Those are the report's own month and the one that it is compared with, and any other that was
    read again lately: nobody may ever ask for a report of it.
    """
    compared = {month, month_before(month)}
    since = today - timedelta(days=TOLD_DAYS)
    told = [
        restatement(note, note.currency or currency)
        for period, note in sorted(deliveries.items())
        if period in compared or note.ingested_at.date() >= since
    ]
    return [sentence for sentence in told if sentence is not None]


def made_by(note: Found) -> tuple[str, str] | None:
    """Return the tags by which a month's tables tell Kafka's from the rest, where that is noted."""
    return None if note.cluster_tag is None else (note.cluster_tag, note.pool_tag)


def other_tags(note: Found, kafka: KafkaTags) -> list[str]:
    """Say where tables were made by other tags than are asked for now."""
    made = made_by(note)
    if made is None or kafka.asked in (made, OURS.asked):
        return []
    shown, asked = (f"{cluster} and, of pools, {pool}" for cluster, pool in (made, kafka.asked))
    return [f"These tables were made by the tags {shown}; by {asked} they have to be made again."]


def _money(amount: Decimal, currency: str) -> str:
    return f"{cents(amount, currency)} {currency}".rstrip()
