"""Turns zone incidents into a document of the ledger and back, forgiving what it does not know.

Version 1 is {"v": 1, "incidents": [...]}. Before it the document was a bare list of freezes without
a key: those are read as incidents that end by the age of their word, as every freeze does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from core.availability.zones import LOST_ZONE
from core.zones.incident import (
    ZoneEntry,
    ZoneIncident,
    ZoneState,
    legacy_key,
    silence_limit,
)

VERSION = 1
_KNOWN = frozenset(field.name for field in fields(ZoneIncident))
_STATES = frozenset(state.value for state in ZoneState)
_TUPLES = frozenset({"zone_ids", "pages"})


def to_document(incidents: Sequence[ZoneIncident]) -> dict[str, Any]:
    return {"v": VERSION, "incidents": [asdict(incident) for incident in incidents]}


def from_document(document: object) -> tuple[ZoneIncident, ...]:
    """Read what any version wrote; an entry that makes no sense is left out, the others count.

    A state of a newer release's is taken for a freeze, which ends by the age of its last word.
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
    known: dict[str, Any] = {
        k: tuple(v) if k in _TUPLES else v for k, v in stored.items() if k in _KNOWN
    }
    try:
        unread = str(known["state"]) not in _STATES
        known["state"] = _state(known["state"])
        known["history"] = tuple(_entry(each) for each in stored.get("history") or ())
        incident = ZoneIncident(**known)
        return _with_end(incident) if unread else incident
    except (KeyError, TypeError, ValueError):
        return None


def _state(word: object) -> ZoneState:
    return ZoneState(word) if word in _STATES else ZoneState.FROZEN


def _with_end(incident: ZoneIncident) -> ZoneIncident:
    """Return an incident whose state cannot be read as a freeze, or as watched without a zone."""
    if incident.zone_id is None:
        return replace(incident, state=ZoneState.WATCHED)
    limit = incident.said_at + silence_limit(incident.source)
    return replace(incident, until=min(incident.until or limit, limit))


def _entry(stored: Mapping[str, Any]) -> ZoneEntry:
    return ZoneEntry(
        float(stored["at"]),
        _state(stored["state"]),
        str(stored["actor"]),
        str(stored["reason"]),
    )


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
