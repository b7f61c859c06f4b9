"""Documents of the ledger of another shape or release: kept, counted, and never good news.

Nothing that reads it ends with a traceback: what cannot be read is silence, so hooks beat on, the
sweep does all the rest, and nobody is drained because of it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.ground.constants import LEDGER_ERRORS
from core.ground.errors import Conflict, StillwaterError
from core.incidents.joining import ask_release
from core.rotation.run_record import Run, RunState, run_from_document, run_to_document
from core.zones.incident import AUTOSHIFT, silence_limit
from handlers.store.documents import LostZone
from handlers.store.ledger import rotation_message
from handlers.store.table import Records
from tests.every_case import every_case
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.tables import REGION, TABLE
from tests.unit.handlers.test_rotations import ask, current, start
from tests.unit.handlers.walks import announce

pytestmark = pytest.mark.usefixtures("quiet")

ADDED: dict[str, dict[str, Any]] = {"state": {"state": "rehearsing"}, "phase": {"phase": "weighed"}}


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
def test_an_unreadable_run_is_left_and_told(station: Station, added: dict[str, Any]) -> None:
    document = newer(station, **added)
    station.rotations.turn(current(station).version, station.now)
    for _ in range(3):
        station.sweep(600)
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
    (problem,) = ask(station, command)["problems"]
    assert "newer release" in problem
    assert station.records.read("rotation#orders").document == document


def test_a_person_may_abort_it_and_start_another(station: Station) -> None:
    newer(station, state="rehearsing")
    assert ask(station, "abort")["run"]["state"] == "aborted"
    station.now += 60
    assert start(station).state is RunState.RUNNING


@every_case("changed", [{"state": "parked"}, {"kind": "parked"}, {"announcements": None}])
def test_a_person_lets_an_instance_go_whose_incident_cannot_be_read(changed: object) -> None:
    station = Station()
    announce(station)
    version, document = station.ledger._incidents[OLD]
    station.ledger._incidents[OLD] = version, json.dumps({**json.loads(document), **changed})
    assert station.incident().unreadable
    station.ledger.put(ask_release(station.incident(), "ada", station.now))
    station.sweep(60)
    station.tick(6)
    assert len(station.forwarded) == 1


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
def test_an_unreadable_zone_stays_frozen(station: Station, changed: dict[str, Any]) -> None:
    frozen(station, **changed)
    other = LostZone("use1-az6", "us-east-1b", source=AUTOSHIFT, occurred_at=station.now)
    station.freezes.note(other, station.now)
    zones = {freeze.zone for freeze in station.freezes.current(station.now)}
    assert zones == {"us-east-1a", "us-east-1b"}


def test_a_zone_in_an_unreadable_state_stays_so_no_longer_than_others(station: Station) -> None:
    frozen(station, state="thawing", until=None)
    station.now += silence_limit(AUTOSHIFT) + 1
    assert station.freezes.current(station.now) == ()


@pytest.mark.parametrize("message", ["{", "[]", '"shift"', '{"volume": "vol-1"}'])
def test_a_message_nobody_can_read_is_a_sentence(station: Station, message: str) -> None:
    with pytest.raises(StillwaterError, match="names nothing that this release knows"):
        station.loop.turn(message, station.now)


FIELDS = ("incidents", "pause", "turns", "options", "avoided", "original")
SHAPES: Mapping[str, Any] = {
    "list": [],
    "list of one": [{"zone": 3}],
    "text": "edited by hand",
    "number": 7,
    "nothing it knows": {"edited": True},
    "nulls": dict.fromkeys(
        ("incidents", "pause", "turns", "options", "avoided", "original", "topics")
    ),
    "numbers": dict.fromkeys(FIELDS, 7),
}
KEYS = (
    *("freezes#orders", "pause#orders", "rotation#orders", "leaders#orders"),
    *("protected#orders", "throttle#orders", "told", "cursor#sweep"),
    *("lasting#orders#not_given_back", "lasting#orders#sweep_blind"),
)


def edited() -> Iterator[tuple[str, str, Any]]:
    for key in KEYS:
        yield from ((key, name, shape) for name, shape in SHAPES.items())


@every_case("key, name, shape", edited, ids=lambda each: each if isinstance(each, str) else "")
def test_a_document_of_another_shape_ends_nobodys_turn(key: str, name: str, shape: Any) -> None:
    station = announce(Station())
    station.records._kept[key] = (1, json.dumps(shape))
    station.cluster.join(NEW)
    before, refused = len(station.cluster.beats), 0
    for _ in range(4):
        station.now += station.policy.heartbeat_timeout_seconds / 2
        try:
            station.sweep()
        except StillwaterError:
            refused += 1  # Its alarm rings, and everything else was done.
        station.reception.wake(station.incident())
        station.loop.turn(station.ticks.sent[-1][0], station.now)
    incident = station.incident()
    assert refused in {0, 4}
    assert not incident.open or len(station.cluster.beats) > before
    if key == "pause#orders" and name not in {"list", "nulls"}:
        assert station.forwarded == []
        assert "unreadable" in {page["page"] for page in station.ticks.pages}
    assert incident.instance_id == OLD


REFUSED = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow down"}}


class Throttled:
    """A client of DynamoDB whose every call is refused."""

    def __getattr__(self, call: str) -> Any:
        def refuse(**_: Any) -> None:
            raise ClientError(REFUSED, call)

        return refuse


def test_a_document_that_cannot_be_read_or_written_is_counted(counted: list[str]) -> None:
    records = Records(TABLE, REGION, client=Throttled())
    with pytest.raises(ClientError):
        records.read("freezes#orders")
    with pytest.raises(ClientError):
        records.write("freezes#orders", [], 1)
    assert counted == [LEDGER_ERRORS, LEDGER_ERRORS]


def test_a_lost_race_is_no_failure(aws: None, counted: list[str]) -> None:
    records = Records(TABLE, REGION)
    records.write("freezes#orders", [1], 0)
    with pytest.raises(Conflict, match=r"freezes#orders was changed"):
        records.write("freezes#orders", [2], 0)
    assert records.read("freezes#orders").document == [1]
    assert not counted
