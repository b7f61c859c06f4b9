"""Writes a rotation run as the document the ledger keeps, and reads what any release has written.

After a rollback the ledger holds the run of a newer release. A field that it added is kept and
written back. A state or a phase that this release does not know stands for `stopped`: nobody
carries the run, the sweep calls a person, and `abort` ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
from core.stored import UNREAD, as_document, take_word, values_in, without

# An earlier release's name of `at_once`, where that is a number.
_EARLIER = "parallel_per_zone"


def to_document(run: Run) -> dict[str, Any]:
    """Return the document of a run, with what a newer release had written into it."""
    document: dict[str, Any] = as_document(run)
    return document


def from_document(document: Mapping[str, Any], version: int) -> Run:
    """Read what any release wrote."""
    known = _tuples(values_in(Run, document))
    known["options"] = _options(document["options"])
    known["turns"] = tuple(_turn(turn) for turn in document["turns"])
    known["notes"] = tuple(Note(**values_in(Note, note)) for note in document["notes"])
    if known.get("replication"):
        known["replication"] = Replication(**values_in(Replication, known["replication"]))
    take_word(known, "state", RunState, RunState.STOPPED)
    if known["state"] not in OVER and any("phase" in turn.unread for turn in known["turns"]):
        # What stands in its place acts by itself no more than an unknown state's does.
        unread = {"state": document["state"], **known.get(UNREAD, {})}
        known |= {"state": RunState.STOPPED, UNREAD: unread}
    return Run(**{**known, "version": version})


def without_unread_state(run: Run) -> Run:
    """Return a run that this release has ended, whatever a newer one had made of it."""
    return replace(run, unread=without(run.unread, "state"))


def _turn(stored: Mapping[str, Any]) -> NodeTurn:
    known = _tuples(values_in(NodeTurn, stored))
    take_word(known, "phase", Phase, Phase.FAILED)
    return NodeTurn(**known)


def _options(stored: Mapping[str, Any]) -> Options:
    """Read options; before `at_once` a number alone was called otherwise."""
    given = without({"at_once": stored.get(_EARLIER, 1), **stored}, _EARLIER)
    return Options(**_tuples(values_in(Options, given)))


def _tuples(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
