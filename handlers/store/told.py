"""Calls a person once about each thing, and stores about what.

A page comes before its record: who dies in between calls twice, and never not at all.
"""

from __future__ import annotations

from core.ground.errors import Conflict
from core.ground.fields import digest
from handlers.adapters.aws import Queue
from handlers.adapters.pages import call
from handlers.store.records import Records

KEY = "told"
# AWS repeats what it asks an owner to do for weeks; after this, once more is right.
KEPT_SECONDS = 90 * 86_400.0
MOST_KEPT = 2000


def call_once(
    records: Records, ticks: Queue, key: str, now: float, reason: str, *, page: str, **about: str
) -> None:
    """Call a person about `page`, unless somebody was called about `key` already."""
    if digest(key) not in _recent(records.read(KEY).document, now):
        call(ticks, reason, page=page, **about)
        _remember(records, key, now)


def _remember(records: Records, key: str, now: float) -> None:
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
