"""A zone in trouble is an incident of its own: what is remembered, and how AWS's words move it.

    watched -> frozen -> thawed

An incident is known by what all words about it share: Health's eventArn, ARC's shift, a person or
our own sight of a lost zone. ARC, people and our own sight freeze at once. Health's prose is only
watched until somebody bears it out (core.zones.evidence). Whatever is said or not said, nothing
stays frozen for ever: every freeze has an end (`until`), counted from the last word. The ledger's
document is {"v": 1, "incidents": [...]}; before that it was a bare list of freezes without a key,
which are read as incidents that end by the age of their word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from core.availability.consent import HEALTH_ISSUE, LOST_ZONE, Freeze
from core.events.announcements import CLOCKS_APART_SECONDS, ZoneNotice
from core.ground.fields import as_document, drop_keys, field_values, take_word, unread_keys
from core.ground.window import clock

PERSON = "person"
AUTOSHIFT = "autoshift"
MANUAL_SHIFT = "manual_shift"
# A rehearsal says nothing about the zone's health, and freezes nothing.
REHEARSAL = "practice_run"
_DAY = 86_400.0
# How long a word counts when no other follows. Health speaks every hour or two while an issue
# lasts; ARC ends a manual shift after three days at the latest; an autoshift has no limit of its
# own, so its end may have been lost. Our own sight of a zone needs none: it looks every minute.
LONGEST_SILENCE_SECONDS: Mapping[str, float] = {
    HEALTH_ISSUE: 1 * _DAY,
    AUTOSHIFT: 3 * _DAY,
    MANUAL_SHIFT: 3 * _DAY,
    PERSON: 7 * _DAY,
}
LONGEST_OTHER_SECONDS = 1 * _DAY
# Several of one zone may be under way at once, and are told apart by their names.
_NAMED = frozenset({HEALTH_ISSUE, MANUAL_SHIFT})
# Remembered after their end, so that a word which comes late finds its event over.
MOST_KEPT = 60
MOST_HISTORY = 60
LONGEST_SAID = 500


class ZoneState(StrEnum):
    """Where a zone's incident stands."""

    WATCHED = "watched"  # announced and not borne out: nothing is frozen
    FROZEN = "frozen"
    THAWED = "thawed"  # over


@dataclass(frozen=True, slots=True)
class ZoneEntry:
    """One line of an incident's history."""

    at: float  # epoch seconds
    state: ZoneState
    actor: str
    reason: str
    unread: Mapping[str, Any] = unread_keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneIncident:
    """Everything remembered about one trouble of a zone."""

    key: str
    source: str
    state: ZoneState
    opened_at: float
    said_at: float  # when the last word about it was said
    zone_ids: tuple[str, ...] = ()  # those the last word that named any calls troubled
    zone_id: str | None = None  # the one that is frozen, or was
    zone: str | None = None  # this account's name for it
    until: float | None = None  # when a freeze ends by itself
    owner: str | None = None  # the person whose word counts here, whatever AWS says
    event_type: str | None = None
    said: str = ""  # the beginning of AWS's last text
    reason: str = ""
    pages: tuple[str, ...] = ()
    history: tuple[ZoneEntry, ...] = ()
    unread: Mapping[str, Any] = unread_keys()

    @property
    def open(self) -> bool:
        return self.state is not ZoneState.THAWED

    @property
    def unreadable(self) -> str | None:
        """Return the state that a newer release wrote, for which another stands in."""
        return str(self.unread["state"]) if "state" in self.unread else None

    @property
    def where(self) -> str:
        """Name what it is about, for a sentence."""
        named = self.zone or self.zone_id or ", ".join(self.zone_ids)
        return f"zone {named}" if named else "no zone by its id"

    def holds(self, now: float) -> bool:
        """Say whether it keeps a zone frozen now."""
        return self.state is ZoneState.FROZEN and (self.until is None or now < self.until)

    def freeze(self) -> Freeze:
        """Return what a frozen incident forbids; its `zone_id` is known then."""
        return Freeze(
            zone_id=self.zone_id or "",
            zone=self.zone,
            since=self.opened_at,
            until=self.until,
            source=self.source,
        )

    def move_to(self, state: ZoneState, now: float, actor: str, reason: str) -> ZoneIncident:
        """Return it in a state, or with another reason for the present one, on its history."""
        if state is self.state and reason == self.reason:
            return self
        entry = ZoneEntry(now, state, actor, reason)
        history = (*self.history, entry)[-MOST_HISTORY:]
        # What a newer release had made of it counts no more once it stands elsewhere.
        decided = self.__dataclass_fields__ if state is not self.state else ()
        left = drop_keys(self.unread, *decided)
        return replace(self, state=state, reason=reason, history=history, unread=left)


@dataclass(frozen=True, slots=True)
class LostZone:
    """Our own word, or a person's: a zone in which none of our Kafka nodes is left, or one is."""

    zone_id: str
    zone: str | None
    over: bool = False
    source: str = LOST_ZONE
    occurred_at: float | None = None
    until: float | None = None
    said: str = ""
    # What a word of AWS's has besides.
    healthy_ids: tuple[str, ...] = ()
    updated_at: float | None = None
    event_type: str | None = None

    @property
    def key(self) -> str:
        return legacy_key(self.source, self.zone_id)

    @property
    def zone_ids(self) -> tuple[str, ...]:
        return (self.zone_id,)


# Something said about zones: by AWS, by a person, or by our own sight.
ZoneWord = ZoneNotice | LostZone


def silence_limit(source: str) -> float:
    """Return how long a word of this source counts when no other follows, in seconds."""
    return LONGEST_SILENCE_SECONDS.get(source, LONGEST_OTHER_SECONDS)


def said_at(word: ZoneWord, now: float) -> float:
    """Return when a word was said, by the clock of whoever said it: that orders its words.

    A clock that is wrong by more than clocks are must not outlive the mistake.
    """
    at = word.updated_at if word.updated_at is not None else word.occurred_at
    return now if at is None else min(at, now + CLOCKS_APART_SECONDS)


def too_old(word: ZoneWord, now: float) -> bool:
    """Say whether a word, replayed or redriven, is older than any that still counts."""
    limit = silence_limit(word.source)
    return word.source != LOST_ZONE and not word.over and now - said_at(word, now) >= limit


def hear(word: ZoneWord, incidents: Sequence[ZoneIncident], now: float) -> tuple[ZoneIncident, ...]:
    """Return the incidents after a word: opened, carried on, ended, or as they were.

    A word older than the last one about the same event changes nothing; of two of one moment the
    end counts.
    """
    if word.source == REHEARSAL:
        return tuple(incidents)
    if word.over:
        return _apply_end(word, incidents, now)
    if too_old(word, now):
        return tuple(incidents)
    present = next((i for i in incidents if i.key == word.key), None)
    if present is None:
        opened = _opened_incident(word, now)
        return tuple(incidents) if opened is None else _forget_oldest((*incidents, opened))
    return tuple(_carried_on(i, word, now) if i is present else i for i in incidents)


def _opened_incident(word: ZoneWord, now: float) -> ZoneIncident | None:
    if not word.zone_ids:
        return None  # Nobody's zone yet; a later word of the same event may name one.
    blank = ZoneIncident(
        key=word.key,
        source=str(word.source),
        state=ZoneState.WATCHED,
        opened_at=said_at(word, now),
        said_at=said_at(word, now),
    )
    return _taken_over(blank, word, now)


def _carried_on(incident: ZoneIncident, word: ZoneWord, now: float) -> ZoneIncident:
    at = said_at(word, now)
    # An end is not followed by a beginning of the same moment; a repetition changes nothing.
    if at < incident.said_at or (at == incident.said_at and not incident.open):
        return incident
    thawed = incident.owner is not None and incident.state is ZoneState.THAWED
    if thawed and not isinstance(word, LostZone):
        return replace(incident, said_at=at)  # A person has thawed it, and knows of the event.
    begins_again = not incident.open
    if begins_again and not word.zone_ids:
        return replace(incident, said_at=at)
    if begins_again:
        incident = replace(incident, opened_at=at, pages=(), zone_id=None, zone=None, owner=None)
    return _taken_over(incident, word, now)


def _taken_over(incident: ZoneIncident, word: ZoneWord, now: float) -> ZoneIncident:
    """Add what a word says to an incident that it belongs to."""
    at = said_at(word, now)
    # A clock ahead of ours makes no freeze longer.
    limit = min(at, now) + silence_limit(incident.source)
    until = None if incident.source == LOST_ZONE else min(word.until or limit, limit)
    named = replace(
        incident,
        said_at=at,
        until=until,
        zone_ids=word.zone_ids or incident.zone_ids,
        event_type=word.event_type or incident.event_type,
        said=word.said[:LONGEST_SAID] or incident.said,
    )
    if incident.source == HEALTH_ISSUE:
        return _watched_incident(named, word, now)
    zone_id = word.zone_ids[0] if word.zone_ids else incident.zone_id
    reason = f"{speaker(incident.source)} says that zone {zone_id} is to be left alone."
    taken = replace(named, zone_id=zone_id)
    return taken.move_to(ZoneState.FROZEN, now, incident.source, reason)


def _watched_incident(incident: ZoneIncident, word: ZoneWord, now: float) -> ZoneIncident:
    """Keep a zone frozen until its event calls it healthy; freeze none on prose alone."""
    well = incident.zone_id in word.healthy_ids and incident.zone_id not in word.zone_ids
    if incident.state is ZoneState.FROZEN and not well:
        return incident
    if incident.state is ZoneState.FROZEN:
        reason = f"AWS says that {incident.where} is well again, and that the issue goes on."
        left = tuple(z for z in incident.zone_ids if z != incident.zone_id)
        # The word counts on for what it still calls troubled; another zone calls another time.
        thawed = replace(incident, zone_id=None, zone=None, zone_ids=left, pages=())
        state = ZoneState.WATCHED if left else ZoneState.THAWED
        return thawed.move_to(state, now, incident.source, reason)
    reason = f"AWS announces {incident.event_type or 'an issue'} in {incident.where}."
    if incident.state is ZoneState.WATCHED and incident.history:
        return incident
    return incident.move_to(ZoneState.WATCHED, now, incident.source, reason)


def _apply_end(
    word: ZoneWord, incidents: Sequence[ZoneIncident], now: float
) -> tuple[ZoneIncident, ...]:
    """End what a word ends: its own event, or what is kept without an event's name."""
    at = said_at(word, now)
    known = any(i.key == word.key for i in incidents)
    ended = tuple(
        _over(i, at, now) if i.key == word.key or _means(word, i, known=known) else i
        for i in incidents
    )
    if known or ended != tuple(incidents) or word.source in {LOST_ZONE, PERSON}:
        return ended
    # Remembered although nothing was known of it: an older word may still come.
    reason = "AWS ended it before its first message arrived."
    over = ZoneIncident(
        key=word.key,
        source=str(word.source),
        state=ZoneState.THAWED,
        opened_at=at,
        said_at=at,
        zone_ids=word.zone_ids,
        event_type=word.event_type,
        reason=reason,
    )
    return _forget_oldest((*ended, over))


def _means(word: ZoneWord, incident: ZoneIncident, *, known: bool) -> bool:
    """Say whether an end without an incident of its own key is about this one all the same."""
    unnamed = incident.key == legacy_key(incident.source, incident.zone_id or "")
    return (
        not known
        and incident.source == word.source
        and incident.zone_id in {*word.zone_ids, *word.healthy_ids}
        # Events and people's shifts have names; only what older versions kept has none.
        and (word.source not in _NAMED or unnamed)
    )


def _over(incident: ZoneIncident, at: float, now: float) -> ZoneIncident:
    if at < incident.said_at:
        return incident  # It has been said since that it goes on.
    said = replace(incident, said_at=at)
    if not incident.open:
        return said
    reason = f"{speaker(incident.source)} says that it is over."
    return replace(said, until=None).move_to(ZoneState.THAWED, now, incident.source, reason)


def legacy_key(source: str, zone_id: str) -> str:
    """Return the key of a freeze that names no event: an older version's, or our own."""
    return f"{source}:{zone_id}"


def freezes_in_force(incidents: Sequence[ZoneIncident], now: float) -> tuple[Freeze, ...]:
    """Return the freezes in force."""
    return tuple(incident.freeze() for incident in incidents if incident.holds(now))


def name_zones(
    incidents: Sequence[ZoneIncident], names: Mapping[str, str]
) -> tuple[ZoneIncident, ...]:
    """Return the incidents with this account's names of their zones."""
    return tuple(
        replace(i, zone=i.zone or names.get(i.zone_id or "")) if i.open else i for i in incidents
    )


def thaw(
    incidents: Sequence[ZoneIncident], zone_id: str, now: float, actor: str, because: str
) -> tuple[ZoneIncident, ...]:
    """Return the incidents once a person has thawed a zone; no word about them freezes it again."""
    why = f": {because}" if because else ""
    reason = f"{actor} thawed {zone_id}{why}."
    return tuple(
        replace(i, until=None, owner=actor).move_to(ZoneState.THAWED, now, actor, reason)
        if i.open and zone_id in {i.zone_id, *i.zone_ids}
        else i
        for i in incidents
    )


def _forget_oldest(incidents: tuple[ZoneIncident, ...]) -> tuple[ZoneIncident, ...]:
    """Forget the oldest of those that are over."""
    over = sorted((i for i in incidents if not i.open), key=lambda i: i.said_at)
    forgotten = {i.key for i in over[: max(len(over) - MOST_KEPT, 0)]}
    return tuple(i for i in incidents if i.open or i.key not in forgotten)


def speaker(source: str) -> str:
    """Name who says so, to begin a sentence."""
    speakers = {
        HEALTH_ISSUE: "AWS Health",
        AUTOSHIFT: "ARC's autoshift",
        MANUAL_SHIFT: "ARC's manual shift",
        LOST_ZONE: "Our own sight of its nodes",
        PERSON: "A person",
    }
    return speakers.get(source, source)


def ends_at(incident: ZoneIncident) -> str:
    """Say when a freeze ends by itself."""
    if incident.until is None:
        return "it ends when a Kafka node of the zone is Ready again"
    return f"it ends by itself at {clock(incident.until)} unless another message comes"


VERSION = 1
_TUPLES = frozenset({"zone_ids", "pages"})


def zones_to_document(incidents: Sequence[ZoneIncident], before: object = None) -> dict[str, Any]:
    """Return the document of incidents, in the place of the one they were read in."""
    added = drop_keys(before, "v", "incidents") if isinstance(before, dict) else {}
    return {**added, "v": VERSION, "incidents": [as_document(each) for each in incidents]}


def zones_from_document(document: object) -> tuple[ZoneIncident, ...]:
    """Read what any version wrote.

    A state of a newer release's is taken for a freeze, which ends by the age of its last word; so
    is an entry that cannot be read otherwise. It is written back as it was until it has moved on.
    """
    if isinstance(document, list):
        found = (_legacy(each) for each in document)
    elif isinstance(document, dict) and isinstance(document.get("incidents"), list):
        found = (_incident(each) for each in document["incidents"])
    else:
        return ()
    return tuple(incident for incident in found if incident is not None)


def _incident(stored: object) -> ZoneIncident | None:
    if not isinstance(stored, dict):
        return None
    try:
        known = field_values(ZoneIncident, stored)
        known |= {name: tuple(known.get(name, ())) for name in _TUPLES}
        known["history"] = tuple(_entry(each) for each in stored.get("history") or ())
        take_word(known, "state", ZoneState, ZoneState.FROZEN)
        incident = ZoneIncident(**known)
        return _bound_freeze(incident) if incident.unreadable else incident
    except (AttributeError, KeyError, TypeError, ValueError):
        return _stand_in(stored)


def _stand_in(stored: Mapping[str, Any]) -> ZoneIncident:
    """Stand in for an entry that cannot be read: a freeze of the zone that it names, if any."""
    said = (stored.get(name) for name in ("said_at", "opened_at"))
    times = [float(at) for at in said if isinstance(at, int | float)]
    zone_id, pages = stored.get("zone_id"), stored.get("pages")
    incident = ZoneIncident(
        key=str(stored.get("key")),
        source=str(stored.get("source")),
        state=ZoneState.FROZEN,
        opened_at=min(times, default=0.0),
        said_at=max(times, default=0.0),
        zone_id=zone_id if isinstance(zone_id, str) else None,
        pages=tuple(pages) if isinstance(pages, list) else (),
        unread={"state": "of another shape", **drop_keys(stored, "pages")},
    )
    return _bound_freeze(incident)


def _bound_freeze(incident: ZoneIncident) -> ZoneIncident:
    """Return an incident whose state cannot be read as a freeze, or as watched without a zone."""
    if incident.zone_id is None:
        return replace(incident, state=ZoneState.WATCHED)
    limit = incident.said_at + silence_limit(incident.source)
    return replace(incident, until=min(incident.until or limit, limit))


def _entry(stored: Mapping[str, Any]) -> ZoneEntry:
    known = field_values(ZoneEntry, stored)
    known |= {"at": float(stored["at"]), **{n: str(stored[n]) for n in ("actor", "reason")}}
    take_word(known, "state", ZoneState, ZoneState.FROZEN)
    return ZoneEntry(**known)


def _legacy(stored: object) -> ZoneIncident | None:
    """Read a freeze as older versions kept it: a zone, a source, when it began and maybe ends."""
    if not isinstance(stored, dict):
        return None
    zone_id, since = stored.get("zone_id"), stored.get("since")
    if not isinstance(zone_id, str) or not isinstance(since, int | float):
        return None
    source, until = str(stored.get("source") or "unknown"), stored.get("until")
    limit = since + silence_limit(source)
    ends = min(until, limit) if isinstance(until, int | float) else limit
    reason = "It was frozen before freezes had an event of their own."
    return ZoneIncident(
        key=legacy_key(source, zone_id),
        source=source,
        state=ZoneState.FROZEN,
        opened_at=since,
        said_at=since,
        zone_ids=(zone_id,),
        zone_id=zone_id,
        zone=stored.get("zone") if isinstance(stored.get("zone"), str) else None,
        until=None if source == LOST_ZONE else ends,
        reason=reason,
        history=(ZoneEntry(since, ZoneState.FROZEN, source, reason),),
    )
