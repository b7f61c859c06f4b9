"""Decides which months of a bill a run reads: all but those that are final and unchanged.

The job of every morning and the report on one's own machine ask it alike. What tables hold of a
month (DELIVERIES) is held against what is delivered now (spark.months.unsettled).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spark.files import Files, address_of, files_of, fingerprint
from spark.ingest import loose_files, manifest
from spark.ingest.bill import label_of
from spark.ingest.delivery import readable
from spark.months import UNKNOWN_PERIOD, Refresh, unsettled
from spark.rows import Found
from spark.tables import DELIVERIES, Store
from spark.tag_keys import KafkaTags


def months_to_read(
    bill: str | Path, store: Store, kafka: KafkaTags
) -> tuple[list[str] | None, list[str]]:
    """Return the months of a bill to read, None for all, and those that are left as they are."""
    address = address_of(bill)
    with readable(f"The bill {bill}"):
        return of_files(files_of(address), address, store, kafka)


def of_files(
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
    unlisted = loose_files.unlisted(files, address)
    if unlisted:
        return fingerprint(files.versions(address), address, unlisted)
    if files.is_folder(address):
        return None
    return (
        fingerprint(files.versions(address), address, [address]) if files.is_file(address) else ""
    )
