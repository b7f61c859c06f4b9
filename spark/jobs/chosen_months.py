"""Chooses which month a report is about, and which months of a bill a run reads.

A run leaves out those that are final and unchanged: what tables hold of a month (DELIVERIES) is
held against what is delivered now (spark.months.unsettled). The job of every morning and the report
on one's own machine ask it alike. A report says what the tables noted of its month and of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from core.ground.errors import InvalidInput
from spark import tables
from spark.files import Files, address_of, files_of, fingerprint
from spark.ingest import manifest
from spark.ingest.bill import label_of
from spark.months import UNKNOWN_PERIOD, Refresh, first_day_after, made_by, month_before, unsettled
from spark.report.document import cents, enumeration
from spark.rows import Found
from spark.tables import DELIVERIES, Store
from spark.tag_keys import OURS, KafkaTags

MONTHS_NAMED = 12
# A month that no report is about is told of for as long after it was read again.
TOLD_DAYS = 31


@dataclass(frozen=True, slots=True)
class Chosen:
    """The month to report on, and what was noted of it and of the others as they were read."""

    month: str
    today: date
    deliveries: Mapping[str, Found]

    @classmethod
    def of(cls, store: Store, asked: str | None, today: date | None) -> Chosen:
        """Return the month asked for, or the best one of those that the tables hold."""
        deliveries = {row.billing_period: row for row in store.rows(tables.DELIVERIES)}
        today = today or datetime.now(UTC).date()
        return cls(month_to_report(asked, deliveries, today), today, deliveries)

    @property
    def note(self) -> Found:
        return self.deliveries[self.month]

    @property
    def compared(self) -> list[str]:
        return compared_months(self.month, self.deliveries)

    def notes(self, currency: str) -> list[str]:
        """Say what other months there are, what bills could not say, and what AWS restated."""
        return [
            *others(self.month, self.deliveries, currency),
            *(self.note.notes or "").splitlines(),
            *not_compared(self.month, self.deliveries),
            *restatements(self.month, self.deliveries, currency, self.today),
        ]


def month_to_report(asked: str | None, deliveries: Mapping[str, Found], today: date) -> str:
    """Return the month asked for; without one the last whole one, or that with most of the bill.

    A month that is over counts as whole where it holds half of what the dearest does: an export's
    last days spill into a month of their own. Where every month gave back, every one is whole.
    Raises InvalidInput for a month that is not there.
    """
    known = sorted(period for period in deliveries if period != UNKNOWN_PERIOD)
    if not known:
        raise InvalidInput(["The tables hold no bill yet; name one with --bill."])
    if asked is not None:
        if asked not in known:
            raise InvalidInput([f"The tables hold no bill of {asked}, only of {', '.join(known)}."])
        return asked
    currencies = [deliveries[period].currency for period in known if deliveries[period].currency]
    known = [p for p in known if deliveries[p].currency in (None, *currencies[-1:])]
    most = max(deliveries[period].billed_cost for period in known)
    whole = [
        period
        for period in known
        if first_day_after(period) <= today
        and (deliveries[period].billed_cost * 2 >= most or most <= 0)
    ]
    if whole:
        return whole[-1]
    return max(known, key=lambda period: (deliveries[period].billed_cost, period))


def compared_months(month: str, deliveries: Mapping[str, Found]) -> list[str]:
    """Return a month and the one before it, which is left out where its currency is another."""
    before, known = deliveries.get(month_before(month)), deliveries[month].currency
    was = before.currency if before is not None else None
    return [month] if None not in (known, was) and known != was else [month_before(month), month]


def not_compared(month: str, deliveries: Mapping[str, Found]) -> list[str]:
    """Say where the month before is billed in another currency."""
    if len(compared_months(month, deliveries)) > 1:
        return []
    before = deliveries[month_before(month)]
    sentence = (
        f"{before.billing_period} is billed in {before.currency}: nothing of it is compared with "
        f"{month}, in {deliveries[month].currency}."
    )
    return [sentence]


def others(month: str, deliveries: Mapping[str, Found], currency: str) -> list[str]:
    """Name the other months that there are."""
    held = sorted(p for p in deliveries if p not in {month, UNKNOWN_PERIOD})
    if not held:
        return []
    named = [
        f"{p} ({cents(deliveries[p].billed_cost, known)} {known})"
        for p in held[-MONTHS_NAMED:]
        for known in [deliveries[p].currency or currency]
    ]
    return [f"This is {month}; there is also {enumeration(named)}: name one with --month."]


def restatement(note: Found, currency: str = "") -> str | None:
    """Return how a month's total differs from what was final of it; None where it does not."""
    final = note.final_billed_cost
    if final is None or cents(final, currency) == cents(note.billed_cost, currency):
        return None
    more = note.billed_cost > final
    return (
        f"AWS has restated {note.billing_period} since it was final: {_money(final, currency)} as "
        f"read on {note.final_read_at:%Y-%m-%d}, {_money(note.billed_cost, currency)} as delivered "
        f"again and read on {note.ingested_at:%Y-%m-%d}, "
        f"{_money(abs(note.billed_cost - final), currency)} {'more' if more else 'less'}. Credits, "
        "refunds and late corrections do that; the tables hold the newer delivery."
    )


def restatements(
    month: str, deliveries: Mapping[str, Found], currency: str, today: date
) -> list[str]:
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


def other_tags(note: Found, kafka: KafkaTags) -> list[str]:
    """Say where tables were made by other tags than are asked for now."""
    made = made_by(note)
    if made is None or kafka.asked in (made, OURS.asked):
        return []
    shown, asked = (f"{cluster} and, of pools, {pool}" for cluster, pool in (made, kafka.asked))
    return [f"These tables were made by the tags {shown}; by {asked} they have to be made again."]


def _money(amount: Decimal, currency: str) -> str:
    return f"{cents(amount, currency)} {currency}".rstrip()


def months_to_read(
    bill: str | Path, store: Store, kafka: KafkaTags
) -> tuple[list[str] | None, list[str]]:
    """Return the months of a bill to read, None for all, and those that are left as they are."""
    address = address_of(bill)
    return months_of_files(files_of(address), address, store, kafka)


def months_of_files(
    files: Files, address: str, store: Store, kafka: KafkaTags
) -> tuple[list[str] | None, list[str]]:
    """Return the same of a bill in any file system.

    Files that no manifest describes say nothing of their months: they are read whole, or not at
    all where tables hold every month that came of the same files.
    """
    rows = store.rows(DELIVERIES)
    loose = _loose(files, address)
    if loose is None:
        name, delivered = manifest.refreshes(files, address)
        held = _held_by_month(rows, name)
        again = unsettled(delivered, held, kafka)
        kept = sorted(set(delivered) - set(again))
        # Where no file is named there is nothing to read.
        return (again if any(delivered[each].files for each in again) else []), kept
    held = _held_by_month(rows, label_of(address))
    delivered = dict.fromkeys(held, Refresh("", fingerprint=loose))
    if not loose or not held or UNKNOWN_PERIOD in held or unsettled(delivered, held, kafka):
        return None, []
    return [], sorted(held)


def _held_by_month(rows: Sequence[Found], bill: str) -> dict[str, Found]:
    """Return what tables hold of one bill; the months of another are not this one's."""
    return {row.billing_period: row for row in rows if row.bill == bill}


def _loose(files: Files, address: str) -> str | None:
    """Return what tells files that no manifest describes from others; None of an export.

    It is empty where there is nothing.
    """
    unlisted = manifest.unlisted(files, address)
    if unlisted:
        return fingerprint(files.versions(address), address, unlisted)
    if files.is_folder(address):
        return None
    return (
        fingerprint(files.versions(address), address, [address]) if files.is_file(address) else ""
    )
