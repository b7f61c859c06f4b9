"""Writes a rotation run as the document the ledger keeps, and reads what any release has written.

After a rollback the ledger holds the run of a newer release. A field that it added is kept and
written back. A state or a phase that this release does not know stands for `stopped`: nobody
carries the run, the sweep calls a person, and `abort` ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.incidents.codec import as_document
from core.rotation.run_record import (
    OVER,
    NodeTurn,
    Note,
    Options,
    Phase,
    Replication,
    Run,
    RunState,
)

# Where in `Run.unread` the run's own keys and its options' are; a turn's stand under its node's id.
_OWN, _OPTIONS = "run", "options"
# What stands in the place of a word that cannot be read: nothing that acts by itself.
_STATE, _PHASE = RunState.STOPPED, Phase.FAILED
# A member of either is equal to its word.
_STATES, _PHASES = frozenset(RunState), frozenset(Phase)
# An earlier release's name of `at_once`, where that is a number.
_EARLIER = "parallel_per_zone"


def to_document(run: Run) -> dict[str, Any]:
    """Return the document of a run, with what a newer release had written into it."""
    document: dict[str, Any] = as_document(run)
    del document["unreadable"]
    unread = document.pop("unread")
    turns = [{**turn, **unread.get(str(turn["node_id"]), {})} for turn in document["turns"]]
    options = {**document["options"], **unread.get(_OPTIONS, {})}
    return {**document, **unread.get(_OWN, {}), "turns": turns, "options": options}


def from_document(document: Mapping[str, Any], version: int) -> Run:
    """Read what any release wrote."""
    known = _known_fields(Run, document)
    own = _unknown_fields(Run, document)
    turns = {str(turn["node_id"]): turn for turn in document["turns"]}
    unread = {id_: _unread_of_turn(turn) for id_, turn in turns.items()}
    words = [each["phase"] for each in unread.values() if "phase" in each]
    state = known["state"]
    if state not in _STATES:
        words.append(state)
    elif RunState(state) in OVER:
        words = []  # Nobody goes on with it, whatever its nodes were at.
    if words:
        own["state"] = state
    options = document["options"]
    others = {_OWN: own, _OPTIONS: _unknown_fields(Options, options, _EARLIER), **unread}
    known |= {
        "state": _STATE if words else RunState(state),
        "options": _options(options),
        "turns": tuple(_turn(turn) for turn in turns.values()),
        "notes": tuple(Note(**_known_fields(Note, note)) for note in known["notes"]),
        "pages": tuple(known["pages"]),
        "out_of_sync": tuple(known.get("out_of_sync", ())),
        "throttled": tuple(known.get("throttled", ())),
        "version": version,
        "unread": {where: kept for where, kept in others.items() if kept},
        "unreadable": tuple(str(word) for word in words),
    }
    if known.get("replication"):
        known["replication"] = Replication(**_known_fields(Replication, known["replication"]))
    return Run(**known)


def without_unread_state(run: Run) -> Run:
    """Return a run that this release has ended, whatever a newer one had made of it."""
    own = {key: value for key, value in run.unread.get(_OWN, {}).items() if key != "state"}
    return replace(run, unread={**run.unread, _OWN: own}, unreadable=())


def _unread_of_turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    found = _unknown_fields(NodeTurn, turn)
    return found if turn["phase"] in _PHASES else {**found, "phase": turn["phase"]}


def _turn(stored: Mapping[str, Any]) -> NodeTurn:
    known = _tuples(_known_fields(NodeTurn, stored))
    known["phase"] = Phase(stored["phase"]) if stored["phase"] in _PHASES else _PHASE
    return NodeTurn(**known)


def _options(stored: Mapping[str, Any]) -> Options:
    """Read options; before `at_once` a number alone was called otherwise."""
    earlier = {"at_once": stored.get(_EARLIER, 1)}
    return Options(**_tuples(_known_fields(Options, {**earlier, **stored})))


def _known_fields(of: type[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    fields = of.__dataclass_fields__
    return {k: v for k, v in stored.items() if k in fields}


def _unknown_fields(of: type[Any], stored: Mapping[str, Any], *but: str) -> dict[str, Any]:
    fields = of.__dataclass_fields__
    return {k: v for k, v in stored.items() if k not in fields and k not in but}


def _tuples(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
