"""The fields of a Health event's detail, read the same way for whatever it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from core.events.announcements import CLOCKS_APART_SECONDS
from core.events.envelope import Envelope, Identity
from core.fields import LONGEST_FIELD, epoch, readable, text

LANGUAGE = "en"


class Entity(NamedTuple):
    """One affected entity; `resolved` once Health says so of it alone, `well` if it is not hurt."""

    value: str
    resolved: bool
    well: bool


def is_public(envelope: Envelope) -> bool:
    return (text(envelope.detail, "eventScopeCode") or "").upper() == "PUBLIC"


def is_closed(envelope: Envelope) -> bool:
    return (text(envelope.detail, "statusCode") or "").strip().lower() == "closed"


def has_ended(envelope: Envelope) -> bool:
    """Say whether Health gives an end that is past; one that lies ahead is a plan."""
    ended_at, said_at = epoch(envelope.detail.get("endTime")), updated_at(envelope)
    return ended_at is not None and (said_at is None or ended_at <= said_at + CLOCKS_APART_SECONDS)


def updated_at(envelope: Envelope) -> float | None:
    detail = envelope.detail
    return epoch(detail.get("lastUpdatedTime")) or epoch(envelope.frame.get("time"))


def identity_of(envelope: Envelope) -> Identity:
    identity = envelope.identity
    is_copy = (text(envelope.detail, "backupEvent") or "").lower() == "true"
    return Identity(
        event_id=identity["event_id"],
        account=text(envelope.detail, "affectedAccount") or identity["account"],
        # `region` is where the event was delivered, `eventRegion` where it happens; a copy in the
        # backup region happens elsewhere.
        region=text(envelope.detail, "eventRegion") or (None if is_copy else identity["region"]),
        occurred_at=identity["occurred_at"],
        body=identity["body"],
    )


def entities_of(envelope: Envelope) -> Iterator[Entity]:
    """Yield each affected entity once; the older schema repeats them in `resources`."""
    listed = envelope.detail.get("affectedEntities")
    found: dict[str, str] = {}
    for entity in listed if isinstance(listed, list) else [listed]:
        # A list of plain values has been seen where a list of objects is documented.
        value = text(entity, "entityValue") if isinstance(entity, dict) else entity
        if not isinstance(value, str) or not value.strip():
            continue
        status = text(entity, "status") if isinstance(entity, dict) else None
        found[readable(value).strip()[:LONGEST_FIELD]] = (status or "").strip().upper()
    if not found:
        found = dict.fromkeys((value for value in envelope.resources if value), "")
    for value, status in found.items():
        # What AWS plans, it plans for machines that are well: there `resolved` alone is an end.
        resolved = status == "RESOLVED"
        yield Entity(value, resolved, resolved or status == "UNIMPAIRED")


def description_of(envelope: Envelope) -> str:
    """Return the text AWS shows a reader: in English where there is one, else in all languages."""
    listed = envelope.detail.get("eventDescription")
    texts = [
        (text(each, "language") or "", readable(said))
        for each in (listed if isinstance(listed, list) else [listed])
        if isinstance(each, dict) and isinstance(said := each.get("latestDescription"), str)
    ]
    english = [said for language, said in texts if language.lower().startswith(LANGUAGE)]
    return "\n".join(english or [said for _, said in texts])


def code_of(envelope: Envelope) -> str:
    return text(envelope.detail, "eventTypeCode") or "no code"
