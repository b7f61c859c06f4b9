"""Writes an incident as the JSON the ledger keeps, and reads what any release has written.

The document is flat, one key a value, whatever sections the record has (`SECTIONS`): it is read by
the release before this one, by the archive's reports and by people. Of a section that is stored in
part, good news is believed only where it is whole, and bad news as soon as any of it is there.

After a rollback the ledger holds documents of a newer release. A field it added is kept as it is
and written back; an incident whose kind or state this release does not know is read all the same,
so that the others are, and core.incidents.decide holds it until a person looks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.events import Kind
from core.incidents.nodeclaims import Reason
from core.incidents.record import (
    SOMEBODY,
    TERMINAL,
    Drainer,
    Forwarding,
    GroupRefusal,
    Incident,
    InPlace,
    LaunchFailure,
    NodeDisruption,
    Release,
    Replacement,
    ScheduledChange,
    State,
    Transition,
    instance_of,
)
from core.stored import UNREAD, own_document, take_word, values_in

# What stands in the place of a word that cannot be read: open, and nothing that acts by itself.
_KIND, _STATE = Kind.STATE_CHANGE, State.HOLDING
_STATES = frozenset(State)
_OPEN = _STATES - TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """How a section of the record stands in the document."""

    of: Callable[..., Any]
    keys: Mapping[str, str]  # its attributes -> the document's keys
    may_lack: frozenset[str] = frozenset()  # attributes that a whole one may be without
    absent: Mapping[str, Any] = field(default_factory=dict)  # keys that are not null without it
    # What a value that is missing is taken for; None: then the section is not believed at all.
    at_worst: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None

    def flat(self, values: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the section as keys of the document."""
        if values is None:
            return {key: self.absent.get(key) for key in self.keys.values()}
        return {key: values[name] for name, key in self.keys.items()}

    def read(self, stored: Mapping[str, Any]) -> Any:
        """Return the section that a document holds; None: its story has not begun."""
        said = {
            name: value
            for name, key in self.keys.items()
            if (value := stored.get(key)) not in (None, self.absent.get(key))
        }
        lacking = self.keys.keys() - self.may_lack - said.keys()
        if not said or (lacking and self.at_worst is None):
            return None
        assumed = self.at_worst(stored) if lacking and self.at_worst is not None else {}
        return self.of(**{**assumed, **said})


def _sent_at_worst(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take a drain for sent more than once: then its handler's word does not end it."""
    known = (stored.get(key) for key in ("forwarded_at", "forwarded_last_at"))
    at = next((each for each in known if each is not None), stored["opened_at"])
    return {"first_at": at, "last_at": at, "times": 2}


SECTIONS: Mapping[str, Section] = {
    "drainer": Section(
        of=Drainer,
        keys={"name": "asked_by", "asked_at": "asked_at"},
        may_lack=frozenset({"asked_at"}),
        at_worst=lambda _: {"name": SOMEBODY},
    ),
    "disruption": Section(
        of=NodeDisruption,
        keys={"reason": "disruption", "forced_at": "forced_at"},
        may_lack=frozenset({"forced_at"}),
        at_worst=lambda _: {"reason": Reason.UNTOLD.value},
    ),
    "replacement": Section(
        of=Replacement, keys={"node": "replacement", "ready_at": "replacement_ready_at"}
    ),
    "forwarded": Section(
        of=Forwarding,
        keys={
            "first_at": "forwarded_at",
            "last_at": "forwarded_last_at",
            "times": "forwards",
            "reported_at": "drain_reported_at",
        },
        may_lack=frozenset({"reported_at"}),
        absent={"forwards": 0},
        at_worst=_sent_at_worst,
    ),
    "refusal": Section(
        of=GroupRefusal,
        keys={"since": "refused_at", "words": "refusal"},
        at_worst=lambda stored: {"since": stored["opened_at"], "words": "it gives no reason"},
    ),
    "launch_failure": Section(
        of=LaunchFailure,
        keys={"since": "launch_failed_at", "cause": "launch_failure"},
        at_worst=lambda stored: {"since": stored["opened_at"], "cause": "AWS gave no cause"},
    ),
    "release": Section(of=Release, keys={"by": "release_asked_by", "at": "release_asked_at"}),
}
# What a turn of this release writes even where it cannot read the rest.
_ADDED_MEANWHILE = frozenset(
    {"pages", "reason", "notes", "heartbeat_at", "next_tick_at", "ticked_at", "version"}
)
# Of what stands in a document's place, so much is kept as evidence.
LONGEST_KEPT = 4096
_OWN = Incident.__dataclass_fields__.keys() - SECTIONS.keys() - {UNREAD}
_KNOWN = _OWN | {key for section in SECTIONS.values() for key in section.keys.values()}
_TIMED = frozenset(key for key in _KNOWN if key.endswith(("_at", "_until", "_since")))
_MOMENT = (int, float, type(None))


def flat(incident: Incident) -> dict[str, Any]:
    """Return an incident's fields as the ledger names them, without what it could not read."""
    document = own_document(incident)
    sections = {name: document.pop(name) for name in SECTIONS}
    for name, section in SECTIONS.items():
        document |= section.flat(sections[name])
    return document


def to_json(incident: Incident) -> str:
    """Return the document of an incident, with what a newer release had written into it."""
    document = {**flat(incident), **incident.unread}
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def from_json(document: str) -> Incident:
    """Read what any release wrote; raises KeyError for what names no incident.

    AttributeError, TypeError or ValueError for what is no document at all.
    """
    stored: dict[str, Any] = json.loads(document)
    try:
        return _read(stored)
    except (AttributeError, KeyError, TypeError, ValueError):
        return _of_another_shape(stored)


def without_document(id_: str, text: str) -> Incident:
    """Stand in for an incident of which the ledger has no document that anybody can read."""
    return _of_another_shape({"id": id_, "kind": "no document", "text": text[:LONGEST_KEPT]})


def _of_another_shape(stored: Mapping[str, Any]) -> Incident:
    """Stand in for an incident whose parts cannot be read; all of it but what this release adds
    is written back as it was.
    """
    state = State(stored["state"]) if stored.get("state") in _STATES else _STATE
    at = _moment(stored, "opened_at") or 0.0
    hooks, pages, group = stored.get("hooks"), stored.get("pages"), stored.get("group")
    return Incident(
        id=stored["id"],
        instance_id=str(stored.get("instance_id") or instance_of(stored["id"])),
        kind=_KIND,
        state=_STATE if state in _OPEN else state,
        opened_at=at,
        announced_at=at,
        announcements=(),
        group=group if isinstance(group, str) else None,
        hooks=hooks if isinstance(hooks, dict) else {},
        pages=tuple(pages) if isinstance(pages, list) else (),
        transitions=(Transition(at, state, "codec", "It cannot be read."),),
        heartbeat_at=_moment(stored, "heartbeat_at"),
        next_tick_at=_moment(stored, "next_tick_at"),
        ticked_at=_moment(stored, "ticked_at"),
        unread={k: v for k, v in stored.items() if k not in _ADDED_MEANWHILE},
    )


def _moment(stored: Mapping[str, Any], name: str) -> float | None:
    value = stored.get(name)
    return float(value) if isinstance(value, int | float) else None


def _read(stored: Mapping[str, Any]) -> Incident:
    for name, value in stored.items():
        if name in _TIMED and not isinstance(value, _MOMENT):
            raise TypeError(f"{name} is {value!r}, and no time.")
    known = {k: v for k, v in stored.items() if k in _OWN}
    known[UNREAD] = {k: v for k, v in stored.items() if k not in _KNOWN}
    take_word(known, "kind", Kind, _KIND)
    take_word(known, "state", State, _STATE)
    for name in ("announcements", "pages"):
        known[name] = tuple(known[name])
    for name in ("transitions", "notes"):
        known[name] = tuple(_transition(each) for each in stored[name])
    place = known.get("in_place")
    known["in_place"] = None if place is None else InPlace(**values_in(InPlace, place))
    known["scheduled"] = tuple(_change(each) for each in known.get("scheduled", ()))
    sections = {name: section.read(stored) for name, section in SECTIONS.items()}
    return Incident(**known, **sections)


def _change(stored: Mapping[str, Any]) -> ScheduledChange:
    known = values_in(ScheduledChange, stored)
    return ScheduledChange(**{**known, "names": tuple(known["names"])})


def _transition(stored: Mapping[str, Any]) -> Transition:
    known = values_in(Transition, stored)
    take_word(known, "state", State, _STATE)
    return Transition(**known)
