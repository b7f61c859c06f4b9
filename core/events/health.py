"""aws.health: what AWS plans for instances, and what is wrong with instances, volumes and zones.

One event may name a hundred entities over several pages, as ids or as ARNs, arrive again in the
backup region, be updated with another start, and be closed. Every entity becomes one result, and a
copy the same result: what tells announcements apart is the account, the entity, Health's
communication and whether it is open.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.events.announcements import (
    Ignored,
    Interruption,
    Kind,
    VolumeChange,
    VolumeNotice,
    ZoneNotice,
    ZoneSource,
)
from core.events.envelope import Envelope, Identity
from core.fields import (
    LONGEST_FIELD,
    epoch,
    instance_in,
    readable,
    shown,
    text,
    volume_in,
    zone_ids_in,
)

SERVICES = frozenset({"EC2", "EBS"})
CATEGORIES = frozenset({"scheduledChange", "issue"})
# A public issue's text grows with every update of the day.
LONGEST_PROSE = 65_536
# Part of the eventTypeCode -> what became of the volume; the first that fits.
_VOLUME_CODES = (
    ("VOLUME_LOST", VolumeChange.LOST),
    ("STALLED", VolumeChange.STALLED_IO),
    ("DEGRADED", VolumeChange.DEGRADED),
    ("PERFORMANCE", VolumeChange.DEGRADED),
)

_Found = Interruption | VolumeNotice | ZoneNotice | Ignored


def read(envelope: Envelope) -> Iterator[_Found]:
    """Yield one result per affected entity; an issue without entities may be about a zone."""
    detail = envelope.detail
    service, category = text(detail, "service"), text(detail, "eventTypeCategory")
    if service not in SERVICES or category not in CATEGORIES:
        yield envelope.says(
            f"({_code(envelope)}) is about service {shown(service)}, category {shown(category)}; "
            f"only scheduled changes and issues of EC2 and EBS take a node away."
        )
        return
    entities = dict(_entities(envelope))
    for value, resolved in entities.items():
        yield _about(envelope, value, category=category, resolved=resolved)
    if not entities:
        yield from _zones(envelope) if category == "issue" else [_nameless(envelope)]


def _about(envelope: Envelope, value: str, *, category: str, resolved: bool) -> _Found:
    closed = resolved or text(envelope.detail, "statusCode") == "closed"
    instance_id, volume_id = instance_in(value), volume_in(value)
    if instance_id is not None:
        return _instance(envelope, instance_id, _kind(envelope, category), closed=closed)
    if volume_id is not None and category == "issue":
        return _volume(envelope, volume_id, closed=closed)
    return envelope.says(
        f"({_code(envelope)}) is about {shown(value)}, which is no instance, and no volume with a "
        f"problem."
    )


def _kind(envelope: Envelope, category: str) -> Kind:
    if category == "scheduledChange":
        return Kind.SCHEDULED_CHANGE
    degraded = "INSTANCE_STORE" in _code(envelope)
    return Kind.INSTANCE_STORE_DEGRADED if degraded else Kind.INSTANCE_ISSUE


def _instance(envelope: Envelope, instance_id: str, kind: Kind, *, closed: bool) -> Interruption:
    detail = envelope.detail
    return Interruption(
        kind=kind,
        instance_id=instance_id,
        event_type=text(detail, "eventTypeCode"),
        due_at=epoch(detail.get("startTime")),
        updated_at=epoch(detail.get("lastUpdatedTime")) or epoch(envelope.frame.get("time")),
        closed=closed,
        health_event=text(detail, "eventArn"),
        dedupe_key=_key(envelope, kind, instance_id, closed=closed),
        **_identity(envelope),
    )


def _volume(envelope: Envelope, volume_id: str, *, closed: bool) -> VolumeNotice:
    code = _code(envelope)
    change = next((c for part, c in _VOLUME_CODES if part in code), VolumeChange.IMPAIRED)
    return VolumeNotice(
        volume_id=volume_id,
        change=change,
        event_type=text(envelope.detail, "eventTypeCode"),
        cause=_description(envelope)[:LONGEST_FIELD],
        over=closed,
        dedupe_key=_key(envelope, change, volume_id, closed=closed),
        **_identity(envelope),
    )


def _zones(envelope: Envelope) -> Iterator[ZoneNotice | Ignored]:
    """Yield the zones an issue names by id; there is no field for them, and none is guessed."""
    detail = envelope.detail
    metadata = detail.get("eventMetadata")
    told = metadata.values() if isinstance(metadata, dict) else ()
    prose = " ".join([_description(envelope), *(value for value in told if isinstance(value, str))])
    named = zone_ids_in(prose[:LONGEST_PROSE])
    if not named:
        yield envelope.says(f"({_code(envelope)}) names no entity, and no zone by its id.")
    # Health gives an end only once there is one, sometimes before it closes the event.
    over = text(detail, "statusCode") == "closed" or epoch(detail.get("endTime")) is not None
    for zone_id in named:
        yield ZoneNotice(
            zone_id=zone_id,
            over=over,
            source=ZoneSource.HEALTH_ISSUE,
            event_type=text(detail, "eventTypeCode"),
            dedupe_key=_key(envelope, ZoneSource.HEALTH_ISSUE, zone_id, closed=over),
            **_identity(envelope),
        )


def _nameless(envelope: Envelope) -> Ignored:
    return envelope.says(f"({_code(envelope)}) names no affected entity.")


def _key(envelope: Envelope, what: str, subject: str, *, closed: bool) -> str:
    """Return what a copy of the announcement shares with it, and another announcement does not.

    A backup copy arrives in another region under another event id, with the communication's own.
    Before communicationId existed, an update kept the ARN and changed a time.
    """
    detail = envelope.detail
    times = text(detail, "lastUpdatedTime") or text(detail, "startTime") or ""
    announcement = text(detail, "communicationId") or (
        f"{text(detail, 'eventArn') or envelope.event_id} {times}"
    )
    account = _identity(envelope)["account"] or ""
    return ":".join((what, account, subject, announcement, "closed" if closed else "open"))


def _identity(envelope: Envelope) -> Identity:
    identity = envelope.identity
    return Identity(
        event_id=identity["event_id"],
        account=text(envelope.detail, "affectedAccount") or identity["account"],
        # `region` is where the event was delivered, `eventRegion` where it happens.
        region=text(envelope.detail, "eventRegion") or identity["region"],
        occurred_at=identity["occurred_at"],
        body=identity["body"],
    )


def _entities(envelope: Envelope) -> Iterator[tuple[str, bool]]:
    """Yield each affected entity and whether Health says it is resolved."""
    listed = envelope.detail.get("affectedEntities")
    named = False
    for entity in listed if isinstance(listed, list) else []:
        value = text(entity, "entityValue") if isinstance(entity, dict) else None
        if value is not None:
            named = True
            yield value, text(entity, "status") == "RESOLVED"
    # The older schema repeats the entities here; the current one leaves `resources` out.
    if not named:
        yield from ((value, False) for value in envelope.resources if value)


def _description(envelope: Envelope) -> str:
    """Return the text AWS shows a reader."""
    listed = envelope.detail.get("eventDescription")
    first = listed[0] if isinstance(listed, list) and listed else None
    said = first.get("latestDescription") if isinstance(first, dict) else None
    return readable(said) if isinstance(said, str) else ""


def _code(envelope: Envelope) -> str:
    return text(envelope.detail, "eventTypeCode") or "no code"
