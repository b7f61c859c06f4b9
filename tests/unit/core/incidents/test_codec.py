"""What the ledger holds is read whichever release wrote it, and nothing of it is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events import Kind
from core.ground.fields import as_document
from core.incidents.actions import Heartbeat, Page, settle
from core.incidents.decide import next_action
from core.incidents.observation import InstanceView, Observation
from core.incidents.record import (
    SECTIONS,
    SOMEBODY,
    Drainer,
    Forwarding,
    GroupRefusal,
    Incident,
    InPlace,
    LaunchFailure,
    NodeDisruption,
    Release,
    Section,
    State,
    from_json,
    to_json,
)
from tests.every_case import every_case
from tests.unit.handlers.station import POLICY

STORED = Path(__file__).parents[3] / "data" / "stored"
RUNS = InstanceView(instance_id="i-0a", state="running", zone="a", private_dns_name="ip-10-0-0-1")
RELEASED = sorted(STORED.glob("incident-*.json"))


def newer(**changes: Any) -> str:
    """Return a document as a release after this one may write it."""
    return json.dumps({**json.loads(RELEASED[-1].read_text()), **changes})


@every_case("path", RELEASED, ids=lambda path: path.stem)
def test_a_document_of_every_release_is_read(path: Path) -> None:
    incident = from_json(path.read_text())
    assert (incident.kind, incident.state) == (Kind.ASG_TERMINATE, State.DRAINING)
    assert incident.hooks == {"drain": "t1", "gate": None}
    assert incident.transitions[-1].state is State.DRAINING
    assert incident.unreadable is None
    assert json.loads(path.read_text()).items() <= json.loads(to_json(incident)).items()


@pytest.mark.parametrize(
    "added",
    [
        {"eviction_asked_at": 12.5},
        {"kind": "nodeclaim_expired"},
        {"state": "recalling"},
        {"kind": "nodeclaim_expired", "zone_incident": {"id": "z1", "since": 3.0}},
        {
            "transitions": [
                {"at": 1.5, "state": "recalling", "actor": "tick", "reason": "Recalled."}
            ]
        },
        {"in_place": {**as_document(InPlace(image_id="ami-1")), "snapshot_id": "snap-1"}},
    ],
    ids=["field", "kind", "state", "kind-and-field", "transition", "part"],
)
def test_what_a_newer_release_added_is_written_back_as_it_was(added: dict[str, Any]) -> None:
    incident = from_json(newer(**added))
    assert incident.open
    written = json.loads(to_json(incident))
    assert {name: written[name] for name in added} == added
    assert "unread" not in written
    assert from_json(to_json(incident)) == incident


@pytest.mark.parametrize("added", [{"kind": "nodeclaim_expired"}, {"state": "recalling"}])
def test_an_incident_nobody_here_can_read_is_held_and_paged_once(added: dict[str, str]) -> None:
    incident = from_json(newer(**added))
    policy = POLICY
    seen = Observation(now=incident.announced_at + policy.heartbeat_timeout_seconds, instance=RUNS)
    decision = next_action(incident, seen, policy)
    assert decision.state is incident.state
    assert {type(action) for action in decision.actions} == {Heartbeat, Page}
    (word,) = added.values()
    assert word in decision.reason
    again = next_action(settle(incident, decision, seen.now), seen, policy)
    assert not [action for action in again.actions if isinstance(action, Page)]


def test_only_a_missing_word_makes_an_incident_unreadable() -> None:
    assert from_json(newer(eviction_asked_at=12.5)).unreadable is None
    assert isinstance(from_json(newer()), Incident)


def test_a_root_volume_in_place_is_read_as_it_was_written_and_by_an_older_release() -> None:
    place = {"image_id": "ami-1", "task_id": "replacevol-1", "task_state": "in-progress"}
    incident = from_json(newer(in_place={**place, "since_a_later_release": True}))
    assert incident.in_place == InPlace(**place)
    assert from_json(to_json(incident)) == incident
    assert from_json(newer()).in_place is None


@pytest.mark.parametrize(
    "changed",
    [
        {"announcements": None},
        {"transitions": [{"when": 3.0}]},
        {"scheduled": [{"code": "X"}]},
        {"in_place": {"image": "ami-1"}},
        {"opened_at": {"at": 3.0}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_document_of_another_shape_is_held_told_once_and_left(changed: dict[str, Any]) -> None:
    stored = newer(**changed)
    incident = from_json(stored)
    assert (incident.id, incident.instance_id, incident.open) == ("i-0a.2", "i-0a", True)
    seen = Observation(now=5000.0, instance=RUNS)
    decision = next_action(incident, seen, POLICY)
    assert [a.key for a in decision.actions if isinstance(a, Page)] == ["unreadable"]
    assert Heartbeat("drain") in decision.actions
    written = to_json(settle(incident, decision, seen.now))
    again = next_action(from_json(written), replace(seen, now=5001.0), POLICY)
    assert not any(isinstance(action, Page) for action in again.actions)
    own = {"pages", "reason", "notes", "next_tick_at", "heartbeat_at", "version"}
    kept = {k: v for k, v in json.loads(written).items() if k not in own}
    assert {k: v for k, v in json.loads(stored).items() if k not in own}.items() <= kept.items()


def test_a_document_of_another_shape_that_is_over_stays_so() -> None:
    incident = from_json(newer(state="released", transitions=[{"when": 3.0}]))
    assert not incident.open


def test_a_document_without_an_id_is_no_incident() -> None:
    with pytest.raises(KeyError):
        from_json("{}")


# As the first release wrote it, and as this one writes the same.
OLDEST = json.loads((STORED / "incident-0.1.0.json").read_text())
PLAIN = json.loads(to_json(from_json(json.dumps(OLDEST))))
OPENED_AT = PLAIN["opened_at"]
KEYS = sorted(key for section in SECTIONS.values() for key in section.keys.values())
WORDS = st.text(min_size=1, max_size=8)
MOMENTS = st.floats(0, 2e9, allow_nan=False)
COUNTS = st.integers(1, 9)


def value_of(key: str) -> st.SearchStrategy[Any]:
    if key == "forwards":
        return COUNTS
    return MOMENTS if key.endswith("_at") else WORDS


def section_of(section: Section) -> st.SearchStrategy[dict[str, Any]]:
    """Return a story that has not begun, or one with all that it needs."""
    begun: dict[str, st.SearchStrategy[Any]] = {}
    for name, key in section.keys.items():
        value = value_of(key)
        begun[key] = st.none() | value if name in section.may_lack else value
    return st.just(section.flat(None)) | st.fixed_dictionaries(begun)


DOCUMENTS = st.tuples(*map(section_of, SECTIONS.values())).map(
    lambda drawn: PLAIN | {key: value for each in drawn for key, value in each.items()}
)


def written(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def read(**stored: Any) -> Incident:
    return from_json(json.dumps(PLAIN | stored))


@given(DOCUMENTS)
def test_a_document_is_written_back_as_it_was_read(document: dict[str, Any]) -> None:
    assert to_json(from_json(written(document))) == written(document)


@given(DOCUMENTS)
def test_an_incident_is_read_back_as_it_was_written(document: dict[str, Any]) -> None:
    incident = from_json(written(document))
    assert from_json(to_json(incident)) == incident
    without = replace(incident, **dict.fromkeys(SECTIONS))
    assert from_json(to_json(without)) == without


@given(DOCUMENTS, st.sets(st.sampled_from(KEYS)))
def test_a_story_stored_in_part_is_read_once(document: dict[str, Any], lost: set[str]) -> None:
    without = {key: value for key, value in document.items() if key not in lost}
    incident = from_json(written(without))
    assert from_json(to_json(incident)) == incident
    assert from_json(written(document | dict.fromkeys(lost))) == incident


def test_what_the_first_release_wrote_has_no_story_but_what_it_says() -> None:
    incident = from_json(json.dumps(OLDEST))
    assert [getattr(incident, name) for name in SECTIONS] == [None] * len(SECTIONS)
    assert OLDEST.items() <= json.loads(to_json(incident)).items()


def test_a_key_of_a_newer_release_that_is_named_like_a_section_is_kept_apart() -> None:
    incident = read(release={"by": "ada"})
    assert incident.release is None
    assert json.loads(to_json(incident))["release"] == {"by": "ada"}


@pytest.mark.parametrize(
    ("stored", "section"),
    [
        ({"replacement": "ip-1"}, {"replacement": None}),
        ({"replacement_ready_at": 9.0}, {"replacement": None}),
        ({"release_asked_by": "ada"}, {"release": None}),
        ({"release_asked_at": 9.0}, {"release": None}),
        (
            {"release_asked_by": "ada", "release_asked_at": 0.0},
            {"release": Release(by="ada", at=0.0)},
        ),
    ],
    ids=" ".join,
)
def test_half_a_good_news_is_none(stored: dict[str, Any], section: dict[str, Any]) -> None:
    incident = read(**stored)
    assert {name: getattr(incident, name) for name in section} == section


@every_case(
    ("stored", "section"),
    [
        ({"asked_at": 9.0}, {"drainer": Drainer(name=SOMEBODY, asked_at=9.0)}),
        ({"forced_at": 9.0}, {"disruption": NodeDisruption(reason="untold", forced_at=9.0)}),
        ({"forwarded_at": 9.0, "drain_reported_at": 11.0},
            {"forwarded": Forwarding(first_at=9.0, last_at=9.0, times=2, reported_at=11.0)}),
        ({"forwarded_last_at": 9.0, "forwards": 3},
            {"forwarded": Forwarding(first_at=9.0, last_at=9.0, times=3)}),
        ({"drain_reported_at": 9.0},
            {
                "forwarded": Forwarding(
                    first_at=OPENED_AT, last_at=OPENED_AT, times=2, reported_at=9.0)}),
        ({"refused_at": 9.0}, {"refusal": GroupRefusal(since=9.0, words="it gives no reason")}),
        ({"refusal": "below minSize"},
            {"refusal": GroupRefusal(since=OPENED_AT, words="below minSize")}),
        ({"launch_failed_at": 9.0},
            {"launch_failure": LaunchFailure(since=9.0, cause="AWS gave no cause")}),
        ({"launch_failure": "no capacity"},
            {"launch_failure": LaunchFailure(since=OPENED_AT, cause="no capacity")}),
    ],
    ids=" ".join,
)  # fmt: skip
def test_half_a_bad_news_is_believed(stored: dict[str, Any], section: dict[str, Any]) -> None:
    incident = read(**stored)
    assert {name: getattr(incident, name) for name in section} == section
