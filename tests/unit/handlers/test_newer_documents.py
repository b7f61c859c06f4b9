"""After a rollback the ledger holds what a newer release wrote: it is kept, and never good news."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.ground.errors import StillwaterError
from core.rotation.run_record import Run, RunState, run_from_document, run_to_document
from core.zones.incident import AUTOSHIFT, silence_limit
from handlers.store.documents import LostZone
from handlers.store.ledger import rotation_message
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
    document: dict[str, Any] = json.loads(json.dumps(run_to_document(run)))
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
    assert stored(run_from_document(document, 1)) == {**document, "version": 1}


def frozen(station: Station, **changed: Any) -> None:
    """Have a newer release freeze zone a, in words of its own."""
    word = LostZone("use1-az4", "us-east-1a", source=AUTOSHIFT, occurred_at=station.now)
    station.freezes.note(word, station.now)
    document = station.records.read("freezes#orders")
    changes = [{**each, **changed} for each in document.document["incidents"]]
    kept = {**document.document, "incidents": changes}
    station.records.write("freezes#orders", kept, document.version)


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "thawing"},
        {"history": [{"at": 1.0, "state": "thawing", "actor": "tick", "reason": "Soon."}]},
    ],
    ids=["state", "history"],
)
def test_a_zone_in_a_state_that_cannot_be_read_stays_frozen(
    station: Station, changed: dict[str, Any]
) -> None:
    frozen(station, **changed)
    other = LostZone("use1-az6", "us-east-1b", source=AUTOSHIFT, occurred_at=station.now)
    station.freezes.note(other, station.now)
    zones = {freeze.zone for freeze in station.freezes.current(station.now)}
    assert zones == {"us-east-1a", "us-east-1b"}


def test_a_zone_in_a_state_that_cannot_be_read_stays_so_for_no_longer_than_others(
    station: Station,
) -> None:
    frozen(station, state="thawing", until=None)
    station.now += silence_limit(AUTOSHIFT) + 1
    assert station.freezes.current(station.now) == ()


@pytest.mark.parametrize("message", ["{", "[]", '"shift"', '{"volume": "vol-1"}'])
def test_a_message_that_cannot_be_read_is_refused_in_a_sentence(
    station: Station, message: str
) -> None:
    with pytest.raises(StillwaterError, match="names nothing that this release knows"):
        station.loop.turn(message, station.now)
