"""The fields of a Health event's detail, read the same way for whatever it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from core.events.announcements import CLOCKS_APART_SECONDS
from core.events.envelope import Envelope, Identity
from core.fields import LONGEST_FIELD, epoch, instance_in, part, readable, text, volume_in

LANGUAGE = "en"
_STATUSES = frozenset({"", "open", "upcoming", "closed"})
_WELL = frozenset({"RESOLVED", "UNIMPAIRED"})


class Entity(NamedTuple):
    """One affected entity; `resolved` once Health says so of it alone, `well` if it is not hurt."""

    value: str
    resolved: bool
    well: bool


def is_public(envelope: Envelope) -> bool:
    return (text(envelope.detail, "eventScopeCode") or "").upper() == "PUBLIC"


def is_closed(envelope: Envelope) -> bool:
    return (text(envelope.detail, "statusCode") or "").strip().lower() == "closed"


def unknown_status(envelope: Envelope) -> str | None:
    """Return a status that is none of Health's, as written; None: it is one, or there is none."""
    status = envelope.detail.get("statusCode")
    if status is None or (isinstance(status, str) and status.strip().lower() in _STATUSES):
        return None
    return readable(str(status))[:LONGEST_FIELD]


def has_ended(envelope: Envelope) -> bool:
    """Say whether Health gives an end that is past; one that lies ahead is a plan.

    An end beside no date of the word itself may lie ahead, too.
    """
    ended_at, said_at = epoch(envelope.detail.get("endTime")), updated_at(envelope)
    if ended_at is None or said_at is None:
        return False
    return ended_at <= said_at + CLOCKS_APART_SECONDS


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
    """Yield each affected entity once; the older schema repeats them in `resources`.

    One that is named twice, as an id and as an ARN perhaps, is as well as the worst word about it.
    """
    listed = envelope.detail.get("affectedEntities")
    named: dict[str, str] = {}
    statuses: dict[str, set[str]] = {}
    for entity in listed if isinstance(listed, list) else [listed]:
        # A list of plain values has been seen where a list of objects is documented.
        value = text(entity, "entityValue") if isinstance(entity, dict) else entity
        if not isinstance(value, str) or not value.strip():
            continue
        status = text(part(entity), "status")
        value = readable(value).strip()[:LONGEST_FIELD]
        which = instance_in(value) or volume_in(value) or value
        named.setdefault(which, value)
        statuses.setdefault(which, set()).add((status or "").strip().upper())
    if not named:
        named = {value: value for value in envelope.resources if value}
    for which, value in named.items():
        said = statuses.get(which, {""})
        # What AWS plans, it plans for machines that are well: there `resolved` alone is an end.
        yield Entity(value, said == {"RESOLVED"}, said <= _WELL)


def description_of(envelope: Envelope) -> str:
    """Return the text AWS shows a reader: in English where there is one, else in all languages."""
    listed = envelope.detail.get("eventDescription")
    texts = [
        (language, readable(said))
        for each in (listed if isinstance(listed, list) else [listed])
        for language, said in [_text_and_language(each)]
        if isinstance(said, str)
    ]
    english = [said for language, said in texts if language.lower().startswith(LANGUAGE)]
    return "\n".join(english or [said for _, said in texts])


def _text_and_language(each: object) -> tuple[str, object]:
    """Return a text and its language; one that stands there plain has none."""
    if not isinstance(each, dict):
        return "", each
    return text(each, "language") or "", each.get("latestDescription")


def code_of(envelope: Envelope) -> str:
    return text(envelope.detail, "eventTypeCode") or "no code"
