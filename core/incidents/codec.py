"""Writes an incident as the JSON the ledger keeps, and reads what any release has written.

After a rollback the ledger holds documents of a newer release. A field it added is kept as it is
and written back; an incident whose kind or state this release does not know is read all the same,
so that the others are, and core.incidents.decide holds it until a person looks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any, TypeVar

from core.events import Kind
from core.incidents.record import Incident, InPlace, State, Transition

E = TypeVar("E", bound=StrEnum)
# What stands in the place of a word that cannot be read: open, and nothing that acts by itself.
_KIND, _STATE = Kind.STATE_CHANGE, State.HOLDING


def to_json(incident: Incident) -> str:
    """Return the document of an incident, with what a newer release had written into it."""
    document = asdict(incident)
    unread = document.pop("unread")
    return json.dumps({**document, **unread}, separators=(",", ":"), sort_keys=True)


def from_json(document: str) -> Incident:
    """Read what any release wrote."""
    stored: dict[str, Any] = json.loads(document)
    known = {k: v for k, v in stored.items() if k in Incident.__dataclass_fields__}
    unread = {k: v for k, v in stored.items() if k not in known}
    known["kind"] = _member(Kind, "kind", stored, unread, _KIND)
    known["state"] = _member(State, "state", stored, unread, _STATE)
    for name in ("announcements", "pages"):
        known[name] = tuple(known[name])
    for name in ("transitions", "notes"):
        known[name] = tuple(_transition(each) for each in stored[name])
        if any(each["state"] not in set(State) for each in stored[name]):
            unread[name] = stored[name]
    known["in_place"] = _in_place(known.get("in_place"))
    return Incident(**known, unread=unread)


def _in_place(stored: Mapping[str, Any] | None) -> InPlace | None:
    if stored is None:
        return None
    return InPlace(**{k: v for k, v in stored.items() if k in InPlace.__dataclass_fields__})


def _member(
    words: type[E], name: str, stored: Mapping[str, Any], unread: dict[str, Any], instead: E
) -> E:
    word = stored[name]
    if word in set(words):
        return words(word)
    unread[name] = word
    return instead


def _transition(stored: Mapping[str, Any]) -> Transition:
    state = stored["state"] if stored["state"] in set(State) else _STATE
    return Transition(stored["at"], State(state), stored["actor"], stored["reason"])
