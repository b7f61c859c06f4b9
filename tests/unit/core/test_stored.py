"""Whatever a newer release has added to a stored record is written back where it stood."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from core import slack
from core.availability.lease import Lease
from core.ground.fields import UNREAD, as_document, field_values, unread_keys
from core.incidents import joining, record
from core.incidents.record import Incident, InPlace, ScheduledChange, State
from core.rotation import run_record
from core.rotation.departures import Absences, remembered_absences
from core.rotation.run_record import NodeTurn, Note, Options, Phase, Replication, Run, RunState
from core.slack import Thread
from core.volumes import views
from core.volumes.sizing import Gp3
from core.volumes.views import History, Modification, ModificationState
from core.zones import incident
from core.zones.incident import ZoneEntry, ZoneIncident, ZoneState
from tests.every_case import every_case

ADDED, VALUE = "since_a_later_release", {"deep": [1, {"er": None}]}
STORED = Path(__file__).parents[2] / "data" / "stored" / "incident-0.1.0.json"
CHANGE = ScheduledChange(names=("e-1",), code="instance-stop", due_at=9.0, said_at=1.0)
INCIDENT = replace(
    record.from_json(STORED.read_text()),
    in_place=InPlace(image_id="ami-1"),
    scheduled=(CHANGE,),
    scheduled_said_at=1.0,
    due_at=9.0,
    event_type="instance-stop",
)
TURN = NodeTurn(
    node_id=10, pod="p-10", role="broker", pool="p", zone="a", instance_id="i-0a", why="old"
)
RUN = Run(
    id="rotation-1",
    state=RunState.RUNNING,
    started_at=1.0,
    started_by="ann",
    turns=(TURN,),
    options=Options(acknowledged={"10": 1}),
    replication=Replication(bytes_per_s=1.0, run_id="r", brokers=2),
    notes=(Note(1.0, "ann", "Begun."),),
)
ZONE = ZoneIncident(
    key="k",
    source="autoshift",
    state=ZoneState.FROZEN,
    opened_at=1.0,
    said_at=1.0,
    zone_id="use1-az1",
    until=9.0,
    history=(ZoneEntry(1.0, ZoneState.FROZEN, "autoshift", "It is."),),
)
GROWN = Modification(
    started_at=1.0, state=ModificationState.OPTIMIZING, target=Gp3(200), original=Gp3(100)
)
HISTORY = History(known_since=0.0, looked_at=1.0, modifications=(GROWN,))


def zones_again(document: Any) -> Any:
    read = incident.zones_from_document(document)
    return incident.zones_to_document([replace(each, said="More.") for each in read], document)


# A document -> the same as this release writes it once it has changed something.
AGAIN: Mapping[str, tuple[Any, Callable[[Any], Any]]] = {
    "incident": (json.loads(record.to_json(INCIDENT)),
        lambda document: json.loads(
            record.to_json(
                replace(record.from_json(json.dumps(document)), pages=("late",), version=3)))),
    "run": (run_record.run_to_document(RUN),
        lambda document: run_record.run_to_document(
            replace(run_record.run_from_document(document, 1), out_of_sync=(3,)))),
    "zones": (incident.zones_to_document([ZONE]), zones_again),
    "thread": (json.loads(slack.to_json(Thread(incident_id="i-0a"))),
        lambda document: json.loads(
            slack.to_json(replace(slack.from_json(json.dumps(document)), ts="1.2")))),
    "volume": (views.ledger_to_json(HISTORY),
        lambda document: views.ledger_to_json(
            views.add_observation(views.ledger_from_json(document), GROWN, Gp3(200), 60.0))),
    "absences": (
        Absences(open_ids=("i-0a",), seconds=(3.0,)).to_json(),
        lambda document: remembered_absences(
            Absences.from_json(document), (INCIDENT,), ()
        ).to_json(),
    ),
    "lease": (as_document(Lease("i-0a", 9.0)),
        lambda document: as_document(
            replace(Lease(**field_values(Lease, document)), expires_at=10.0))),
}  # fmt: skip
# Keyed by what they are about: another key there is another thing, and none of a release's.
MAPS = {("hooks",), ("hooks_said",), ("options", "acknowledged")}


def records_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every record in a document."""
    if isinstance(value, dict):
        if path not in MAPS:
            yield path
        for key, each in value.items():
            yield from records_in(each, (*path, key))
    if isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from records_in(each, (*path, number))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


@every_case(
    "kind, path",
    [(kind, path) for kind, (document, _) in AGAIN.items() for path in records_in(document)],
)
def test_a_key_at_any_depth_is_written_back(kind: str, path: tuple[Any, ...]) -> None:
    document, again = AGAIN[kind]
    newer = json.loads(json.dumps(document))
    at(newer, path)[ADDED] = VALUE
    assert at(again(newer), path)[ADDED] == VALUE
    assert ADDED not in json.dumps(again(document))


def of_dataclasses(kind: Any) -> Iterator[type]:
    """Yield a record's own type, and those of the records in it."""
    if is_dataclass(kind) and isinstance(kind, type):
        yield kind
        for hint in get_type_hints(kind).values():
            yield from of_dataclasses(hint)
    for argument in get_args(kind):
        yield from of_dataclasses(argument)


@every_case("kept", [Incident, Run, ZoneIncident, Thread, History, Absences, Lease])
def test_every_record_has_a_place_for_what_it_cannot_read(kept: type) -> None:
    flat = {section.build for section in record.SECTIONS.values()}
    # Written as a list of three figures.
    shapes = {Gp3, *of_dataclasses(Gp3)}
    lacking = {
        each.__name__
        for each in set(of_dataclasses(kept)) - flat - shapes
        if UNREAD not in {field.name for field in fields(each)}
    }
    assert lacking == set()


NEWER_WORDS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "an incident's kind": ("incident", ("kind",)),
    "an incident's state": ("incident", ("state",)),
    "a transition's state": ("incident", ("transitions", 0, "state")),
    "a run's state": ("run", ("state",)),
    "a turn's phase": ("run", ("turns", 0, "phase")),
    "a zone's state": ("zones", ("incidents", 0, "state")),
    "a state of a zone's past": ("zones", ("incidents", 0, "history", 0, "state")),
    "a modification's state": ("volume", ("modifications", 0, "state")),
}


@every_case("kind, path", NEWER_WORDS.values(), ids=NEWER_WORDS)
def test_a_word_that_nobody_here_knows_is_written_back(kind: str, path: tuple[Any, ...]) -> None:
    document, again = AGAIN[kind]
    newer = json.loads(json.dumps(document))
    at(newer, path[:-1])[path[-1]] = "rehearsing"
    if kind == "volume":
        read = views.ledger_from_json(newer)
        assert read.under_way.word == "rehearsing"
        assert views.ledger_to_json(read) == newer
        return
    assert at(again(newer), path) == "rehearsing"


def test_what_has_moved_on_has_no_word_of_a_newer_release_any_more() -> None:
    document = incident.zones_to_document([ZONE])
    document["incidents"][0]["state"] = "thawing"
    (read,) = incident.zones_from_document(document)
    thawed = read.move_to(ZoneState.THAWED, 5.0, "ann", "Ann thawed it.")
    assert incident.zones_to_document([thawed], document)["incidents"][0]["state"] == "thawed"


@every_case(
    "document",
    [
        {"pause": {"actor": "ann", "because": "a drill", "since": "today", "until": 3.0}},
        {"pause": {"who": "ann"}},
        {"pause": ["ann"]},
        {"pauses": {"all": {}}},
        ["ann"],
        "ann",
    ],
)
def test_a_pause_that_cannot_be_read_is_a_pause(document: Any) -> None:
    assert joining.pause_from_document(document).holds(2.0)


@every_case("document", [None, {}, {"pause": None}, {"pause": None, ADDED: VALUE}])
def test_no_pause_is_none(document: Any) -> None:
    assert joining.pause_from_document(document) is None


@every_case(
    "stored",
    [
        {"key": "k", "source": "autoshift", "said_at": 1, "zone_id": "use1-az1", "state": "frozen"},
        {"key": "k", "source": "autoshift", "said_at": 1.0, "zone_id": "use1-az1", "history": [3]},
    ],
)
def test_a_zone_that_cannot_be_read_stays_frozen_and_as_it_was(stored: dict[str, Any]) -> None:
    document = {"v": 1, "incidents": [stored]}
    (read,) = incident.zones_from_document(document)
    assert read.holds(2.0)
    assert read.until is not None
    assert read.unreadable
    written = incident.zones_to_document([replace(read, zone="us-east-1a")], document)["incidents"][
        0
    ]
    assert stored.items() <= written.items()


def test_two_records_that_differ_in_what_nobody_reads_are_the_same() -> None:
    assert replace(TURN, unread={"a": 1}) == TURN
    assert hash(replace(TURN, unread={"a": 1})) == hash(TURN)
    assert unread_keys().compare is False


def test_phases_and_states_are_all_read() -> None:
    for phase in Phase:
        turned = run_record.run_to_document(replace(RUN, turns=(replace(TURN, phase=phase),)))
        assert run_record.run_from_document(turned, 0).turns[0].phase is phase
    for state in State:
        assert record.from_json(record.to_json(replace(INCIDENT, state=state))).state is state
