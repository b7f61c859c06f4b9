"""Stores what a person has been called about, so that a daily word calls once.

A page comes before its record: who dies in between calls twice, and never not at all.
"""

from __future__ import annotations

from core.errors import Conflict
from core.fields import digest
from handlers.store.records import Records

KEY = "told"
# AWS repeats what it asks an owner to do for weeks; after this, once more is right.
KEPT_SECONDS = 90 * 86_400.0
MOST_KEPT = 2000


def was_called(records: Records, key: str, now: float) -> bool:
    """Say whether somebody was called about `key` already."""
    return digest(key) in _recent(records.read(KEY).document, now)


def remember(records: Records, key: str, now: float) -> None:
    """Remember that somebody was called about `key`."""
    record = records.read(KEY)
    kept = {**_recent(record.document, now), digest(key): now}
    newest = sorted(kept.items(), key=lambda item: item[1])[-MOST_KEPT:]
    try:
        records.write(KEY, dict(newest), record.version)
    except Conflict:
        return  # Another call was remembered at this moment: this one may come once more.


def _recent(document: object, now: float) -> dict[str, float]:
    return {
        name: at
        for name, at in (document.items() if isinstance(document, dict) else ())
        if isinstance(at, int | float) and now - at < KEPT_SECONDS
    }
