"""After a rollback the ledger holds a run of a newer release: it is kept, and carried by nobody."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.rotation.run_codec import from_document, to_document
from core.rotation.run_record import Run, RunState
from handlers.store.messages import rotation_message
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_rotations import ask, current, start

ADDED: dict[str, dict[str, Any]] = {
    "state": {"state": "rehearsing"},
    "phase": {"phase": "weighed"},
}


@pytest.fixture
def station() -> Station:
    return Station()


def stored(run: Run) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(to_document(run)))
    return document


def newer(station: Station, **added: Any) -> dict[str, Any]:
    """Have a newer release write the run as it is, with words of its own."""
    document = stored(start(station))
    if "phase" in added:
        first, *others = document["turns"]
        document["turns"] = [{**first, **added}, *others]
    else:
        document |= added
    station.records.write("rotation#orders", document, current(station).version)
    return document


@pytest.mark.parametrize("added", ADDED.values(), ids=ADDED)
def test_a_run_with_a_word_that_cannot_be_read_is_left_as_it_is_and_told(
    station: Station, added: dict[str, Any]
) -> None:
    document = newer(station, **added)
    station.rotations.turn(current(station).version, station.now)
    for _ in range(3):
        station.now += 600
        station.broom.sweep(station.now)
        station.loop.turn(rotation_message(current(station).version), station.now)
    assert station.records.read("rotation#orders").document == document
    assert station.ledger.open_incidents() == ()
    pages = [page["reason"] for page in station.ticks.pages if page["page"] == "unreadable"]
    assert len(pages) == 1
    assert next(iter(added.values())) in pages[0]


@pytest.mark.parametrize("added", ADDED.values(), ids=ADDED)
@pytest.mark.parametrize("command", ["pause", "resume"])
def test_nobody_goes_on_with_what_cannot_be_read(
    station: Station, added: dict[str, Any], command: str
) -> None:
    document = newer(station, **added)
    (problem,) = ask(station, command)["problems"]  # type: ignore[misc]
    assert "newer release" in problem
    assert station.records.read("rotation#orders").document == document


def test_a_person_may_abort_it_and_start_another(station: Station) -> None:
    newer(station, state="rehearsing")
    assert ask(station, "abort")["run"]["state"] == "aborted"  # type: ignore[index]
    station.now += 60
    assert start(station).state is RunState.RUNNING


def test_what_a_newer_release_added_is_written_back_as_it_was(station: Station) -> None:
    document = stored(start(station))
    first, *others = document["turns"]
    document |= {
        "turns": [{**first, "weight": 3}, *others],
        "options": {**document["options"], "pace": "slow"},
        "budget": {"spent": 2},
    }
    assert stored(from_document(document, 1)) == {**document, "version": 1}
