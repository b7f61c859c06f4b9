"""aws.health: what AWS plans for instances, and what is wrong with instances, volumes and zones.

One event may name a hundred entities over several pages, as ids or as ARNs, arrive again in the
backup region, be updated with another start, and be closed. Every entity becomes one result, and a
copy the same result: what tells announcements apart is the account, the entity, Health's
communication and whether it is open. What names nobody, and what no rule answers, becomes an
advisory: somebody is told, nothing is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.events.announcements import (
    Advisory,
    Ignored,
    Interruption,
    Kind,
    VolumeChange,
    VolumeNotice,
    ZoneNotice,
    ZoneSource,
)
from core.events.envelope import Envelope
from core.events.health_detail import (
    Entity,
    code_of,
    description_of,
    entities_of,
    has_ended,
    identity_of,
    is_closed,
    is_public,
    unknown_status,
    updated_at,
)
from core.events.prose import LONGEST_PROSE, ZoneWords, says_resolved, zone_words
from core.events.scheduled import ChangeResponse, answer_to
from core.fields import (
    LONGEST_FIELD,
    display_text,
    epoch,
    instance_in,
    part,
    text,
    unreadable_time,
    volume_in,
    zone_id_in,
    zone_name_in,
)

SCHEDULED, ISSUE = "scheduledChange", "issue"
# Whose scheduled changes concern a node. An issue may be any service's: a lost zone has been
# announced under MULTIPLE_SERVICES.
SCHEDULING_SERVICES = frozenset({"EC2", "EBS", "EKS"})
# What names nobody: an account, or a word in place of one.
MOST_SUBJECTS = 100
# Part of the eventTypeCode -> what became of the volume; the first that fits.
_VOLUME_CODES = (
    ("VOLUME_LOST", VolumeChange.LOST),
    ("STALLED", VolumeChange.STALLED_IO),
    ("DEGRADED", VolumeChange.DEGRADED),
    ("PERFORMANCE", VolumeChange.DEGRADED),
)

_Found = Interruption | VolumeNotice | ZoneNotice | Advisory | Ignored


def read(envelope: Envelope) -> Iterator[_Found]:
    """Yield one result per affected entity, and one for the zones that an issue speaks of."""
    category = (text(envelope.detail, "eventTypeCategory") or "").strip()
    service = text(envelope.detail, "service")
    planned = (
        category.lower() == SCHEDULED.lower() and (service or "").upper() in SCHEDULING_SERVICES
    )
    if planned:
        yield from _scheduled_changes(envelope)
    elif category.lower() == ISSUE:
        yield from _issue(envelope)
    else:
        yield envelope.says(
            f"({code_of(envelope)}) is about service {display_text(service)}, category "
            f"{display_text(category)}; "
            f"only issues, and scheduled changes of {', '.join(sorted(SCHEDULING_SERVICES))}, take "
            f"a node away."
        )


def _scheduled_changes(envelope: Envelope) -> Iterator[_Found]:
    entities = list(entities_of(envelope))
    answer = answer_to(code_of(envelope))
    problem = unreadable_time(envelope.detail, "startTime")
    if problem is not None and not is_closed(envelope):
        yield _advisory(envelope, f"gives no date to act by: {problem}", entities)
        return
    status = unknown_status(envelope)
    if status is not None:
        yield _advisory(
            envelope, f"has status {display_text(status)}, which Health does not have", entities
        )
        return
    if answer is ChangeResponse.TELL:
        if is_closed(envelope):
            yield envelope.says(f"({code_of(envelope)}) is over; nothing was done about it.")
        else:
            yield _advisory(envelope, "is a change that only a person can answer", entities)
        return
    others = []
    for entity in entities:
        instance_id = instance_in(entity.value)
        if instance_id is None:
            others.append(entity)
            continue
        closed = entity.resolved or is_closed(envelope)
        yield _instance(envelope, instance_id, Kind.SCHEDULED_CHANGE, closed=closed)
    if (others or not entities) and not is_closed(envelope):
        yield _advisory(envelope, "names what is no instance", others)
    elif len(others) == len(entities):
        yield envelope.says(
            f"({code_of(envelope)}) names no affected entity that is an instance, and is over."
        )


def _issue(envelope: Envelope) -> Iterator[_Found]:
    """Yield what is wrong with each instance and volume, and with zones, by id or in prose."""
    named: list[str] = []
    well: list[str] = []
    told = False
    for entity in entities_of(envelope):
        closed = entity.well or is_closed(envelope)
        instance_id, volume_id = instance_in(entity.value), volume_in(entity.value)
        zone = _zone_in(entity.value, envelope)
        if instance_id is not None:
            kind = _kind(envelope)
            yield _instance(envelope, instance_id, kind, closed=closed)
        elif volume_id is not None:
            yield _volume(envelope, volume_id, closed=closed)
        elif zone is not None:
            (well if entity.well else named).append(zone)
        told = told or instance_id is not None or volume_id is not None
    zones = _zones(envelope, named, well)
    entities = list(entities_of(envelope))
    speaks = zones.zone_ids or zones.healthy_ids or zones.over
    if entities and not (told or speaks) and _is_ours_alone(envelope):
        yield _advisory(envelope, "is an issue with what is no instance, volume or zone", entities)
        return
    # An instance's own trouble needs no word about its zone, unless there is one, or it ends one.
    if speaks or not told:
        yield zones


def _zone_in(value: object, envelope: Envelope) -> str | None:
    """Return a zone by its id; by its name, which is each account's own, in our events alone."""
    return zone_id_in(value) or (None if is_public(envelope) else zone_name_in(value))


def _is_ours_alone(envelope: Envelope) -> bool:
    """Say whether an issue of our machines or volumes was announced to this account alone."""
    service = (text(envelope.detail, "service") or "").upper()
    return service in SCHEDULING_SERVICES and not is_public(envelope)


def _zones(envelope: Envelope, named: list[str], well: list[str]) -> ZoneNotice:
    """Return what an issue says of zones; one that names none may be the last word about one."""
    detail = envelope.detail
    told = part(detail.get("eventMetadata")).values()
    prose = description_of(envelope)
    extra = "\n".join(value for value in told if isinstance(value, str))
    words = zone_words(f"{prose[:LONGEST_PROSE]}\n{extra}", names=not is_public(envelope))
    where = _zone_in(detail.get("availabilityZone"), envelope)  # a field of the API's own event
    if where is not None and where not in {*well, *words.healthy}:
        named = [*named, where]
    troubled = tuple(dict.fromkeys([*named, *words.troubled]))
    healthy = dict.fromkeys([*well, *words.healthy])
    words = ZoneWords(troubled, tuple(z for z in healthy if z not in troubled))
    # An end may stand there before the event is closed: AWS's sample of a last word is `open`.
    over = is_closed(envelope) or has_ended(envelope) or says_resolved(prose)
    subject = "+".join(words.troubled) or "no zone"
    return ZoneNotice(
        key=text(detail, "eventArn") or f"health:{envelope.event_id}",
        zone_ids=words.troubled,
        healthy_ids=words.healthy,
        over=over,
        source=ZoneSource.HEALTH_ISSUE,
        updated_at=updated_at(envelope),
        event_type=text(detail, "eventTypeCode"),
        said=prose[:LONGEST_FIELD],
        dedupe_key=_key(envelope, ZoneSource.HEALTH_ISSUE, subject, closed=over),
        **identity_of(envelope),
    )


def _kind(envelope: Envelope) -> Kind:
    degraded = "INSTANCE_STORE" in code_of(envelope).upper()
    return Kind.INSTANCE_STORE_DEGRADED if degraded else Kind.INSTANCE_ISSUE


def _instance(envelope: Envelope, instance_id: str, kind: Kind, *, closed: bool) -> Interruption:
    detail = envelope.detail
    return Interruption(
        kind=kind,
        instance_id=instance_id,
        event_type=text(detail, "eventTypeCode"),
        # An issue has begun: that is no date to act by.
        due_at=epoch(detail.get("startTime")) if kind is Kind.SCHEDULED_CHANGE else None,
        updated_at=updated_at(envelope),
        closed=closed,
        health_event=text(detail, "eventArn"),
        dedupe_key=_key(envelope, kind, instance_id, closed=closed),
        **identity_of(envelope),
    )


def _volume(envelope: Envelope, volume_id: str, *, closed: bool) -> VolumeNotice:
    code = code_of(envelope).upper()
    change = next((c for part, c in _VOLUME_CODES if part in code), VolumeChange.IMPAIRED)
    return VolumeNotice(
        volume_id=volume_id,
        change=change,
        event_type=text(envelope.detail, "eventTypeCode"),
        cause=description_of(envelope)[:LONGEST_FIELD],
        over=closed,
        dedupe_key=_key(envelope, change, volume_id, closed=closed),
        **identity_of(envelope),
    )


def _advisory(envelope: Envelope, what: str, entities: list[Entity]) -> Advisory:
    """Return one for the whole event: it may repeat daily, and name every instance there is."""
    due_at = epoch(envelope.detail.get("startTime"))
    arn = text(envelope.detail, "eventArn") or envelope.event_id
    subjects = tuple(e.value for e in entities if not e.resolved)[:MOST_SUBJECTS]
    named = ", ".join(display_text(value) for value in subjects[:3]) or "nobody"
    return Advisory(
        sentence=f"{envelope.name} ({code_of(envelope)}) {what}. It names {named}.",
        subjects=subjects,
        due_at=due_at,
        dedupe_key=":".join(("advisory", identity_of(envelope)["account"] or "", arn, what[:40])),
        **identity_of(envelope),
    )


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
    account = identity_of(envelope)["account"] or ""
    return ":".join((what, account, subject, announcement, "closed" if closed else "open"))
