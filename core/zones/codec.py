"""Turns zone incidents into a document of the ledger and back, keeping what it does not know.

Version 1 is {"v": 1, "incidents": [...]}. Before it the document was a bare list of freezes without
a key: those are read as incidents that end by the age of their word, as every freeze does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.availability.zones import LOST_ZONE
from core.stored import as_document, take_word, values_in, without
from core.zones.incident import ZoneEntry, ZoneIncident, ZoneState, legacy_key, silence_limit

VERSION = 1
_TUPLES = frozenset({"zone_ids", "pages"})


def to_document(incidents: Sequence[ZoneIncident], before: object = None) -> dict[str, Any]:
    """Return the document of incidents, in the place of the one they were read in."""
    added = without(before, "v", "incidents") if isinstance(before, dict) else {}
    return {**added, "v": VERSION, "incidents": [as_document(each) for each in incidents]}


def from_document(document: object) -> tuple[ZoneIncident, ...]:
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
        known = values_in(ZoneIncident, stored)
        known |= {name: tuple(known.get(name, ())) for name in _TUPLES}
        known["history"] = tuple(_entry(each) for each in stored.get("history") or ())
        take_word(known, "state", ZoneState, ZoneState.FROZEN)
        incident = ZoneIncident(**known)
        return _with_end(incident) if incident.unreadable else incident
    except (AttributeError, KeyError, TypeError, ValueError):
        return _of_another_shape(stored)


def _of_another_shape(stored: Mapping[str, Any]) -> ZoneIncident:
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
        unread={"state": "of another shape", **without(stored, "pages")},
    )
    return _with_end(incident)


def _with_end(incident: ZoneIncident) -> ZoneIncident:
    """Return an incident whose state cannot be read as a freeze, or as watched without a zone."""
    if incident.zone_id is None:
        return replace(incident, state=ZoneState.WATCHED)
    limit = incident.said_at + silence_limit(incident.source)
    return replace(incident, until=min(incident.until or limit, limit))


def _entry(stored: Mapping[str, Any]) -> ZoneEntry:
    known = values_in(ZoneEntry, stored)
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
