"""aws.health: what AWS plans for instances, and what is wrong with instances, volumes and zones.

One event may name a hundred entities over several pages, as ids or as ARNs, arrive again in the
backup region, be updated with another start, and be closed. Every entity becomes one result, and a
copy the same result: what tells announcements apart is the account, the entity, Health's
communication and whether it is open. One table says by its code what a scheduled change means for
an instance. A code that is not in it becomes an advisory, as does what names nobody: somebody is
told, nothing is replaced, for AWS announces more under this category than the end of machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from core.events.announcements import (
    CLOCKS_APART_SECONDS,
    Advisory,
    Envelope,
    Identity,
    Ignored,
    Interruption,
    Kind,
    VolumeChange,
    VolumeNotice,
    ZoneNotice,
    ZoneSource,
)
from core.events.prose import LONGEST_PROSE, ZoneWords, says_resolved, zone_words
from core.ground.fields import (
    LONGEST_FIELD,
    display_text,
    epoch,
    instance_in,
    part,
    readable,
    text,
    unreadable_time,
    volume_in,
    zone_id_in,
    zone_name_in,
)

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


class ChangeResponse(StrEnum):
    """What becomes of an instance that a scheduled change names."""

    RETIRE = "retire"  # replaced in a maintenance window before AWS's date
    RIDE_THROUGH = "ride_through"  # AWS gives it back: leaders move away meanwhile
    TELL = "tell"  # a person decides


_RETIRED = (
    "INSTANCE_RETIREMENT_SCHEDULED",
    "INSTANCE_RETIREMENT_EXPEDITED",
    "PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
    "PERSISTENT_INSTANCE_RETIREMENT_EXPEDITED",
    "INSTANCE_STOP_SCHEDULED",
    "INSTANCE_TERMINATION_SCHEDULED",
    "DEDICATED_HOST_RETIREMENT_SCHEDULED",
    "DEDICATED_HOST_ACCESSREVOKED_RETIREMENT_SCHEDULED",
)
_RIDDEN_THROUGH = (
    "INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
    "INSTANCE_REBOOT_FLEXIBLE_MAINTENANCE_SCHEDULED",
    "SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
    "INSTANCE_NETWORK_MAINTENANCE_SCHEDULED",
    "INSTANCE_POWER_MAINTENANCE_SCHEDULED",
    "PERSISTENT_INSTANCE_POWER_MAINTENANCE_SCHEDULED",
    "DEDICATED_HOST_NETWORK_MAINTENANCE_SCHEDULED",
    "DEDICATED_HOST_POWER_MAINTENANCE_SCHEDULED",
)
# Known, and a person's business: when to move to another version or instance type, what to do about
# a volume, and what AWS does to software and hosts that it does not name an end for.
_TOLD = (
    "AWS_EC2_PLANNED_LIFECYCLE_EVENT",
    "AWS_EBS_PLANNED_LIFECYCLE_EVENT",
    "AWS_EKS_PLANNED_LIFECYCLE_EVENT",
)
CODES: Mapping[str, ChangeResponse] = {
    **{f"AWS_EC2_{code}": ChangeResponse.RETIRE for code in _RETIRED},
    **{f"AWS_EC2_{code}": ChangeResponse.RIDE_THROUGH for code in _RIDDEN_THROUGH},
    **dict.fromkeys(_TOLD, ChangeResponse.TELL),
}


def answer_to(code: str | None) -> ChangeResponse:
    """Return what a scheduled change of this code asks for; of one that is not known: tell.

    >>> [answer_to(c).value for c in ("aws_ec2_instance_stop_scheduled", "AWS_EC2_NEW", None)]
    ['retire', 'tell', 'tell']
    """
    return CODES.get((code or "").strip().upper(), ChangeResponse.TELL)


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
            f"{display_text(category)}; only issues, and scheduled changes of "
            f"{', '.join(sorted(SCHEDULING_SERVICES))}, take a node away."
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
        yield _advisory(envelope, "does not name an instance", others)
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
        yield _advisory(envelope, "does not name an instance, volume or zone", entities)
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
