"""Sections of the record are flat in the ledger, where every release finds its own keys."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.incidents.record import (
    SECTIONS,
    SOMEBODY,
    Drainer,
    Forwarding,
    GroupRefusal,
    Incident,
    LaunchFailure,
    NodeDisruption,
    Release,
    Section,
    from_json,
    to_json,
)
from tests.every_case import every_case

STORED = Path(__file__).parents[3] / "data" / "stored"
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
def test_a_story_stored_in_part_is_read_once_and_for_all(
    document: dict[str, Any], lost: set[str]
) -> None:
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
        (
            {"forwarded_at": 9.0, "drain_reported_at": 11.0},
            {"forwarded": Forwarding(first_at=9.0, last_at=9.0, times=2, reported_at=11.0)},
        ),
        (
            {"forwarded_last_at": 9.0, "forwards": 3},
            {"forwarded": Forwarding(first_at=9.0, last_at=9.0, times=3)},
        ),
        (
            {"drain_reported_at": 9.0},
            {
                "forwarded": Forwarding(
                    first_at=OPENED_AT, last_at=OPENED_AT, times=2, reported_at=9.0
                )
            },
        ),
        (
            {"refused_at": 9.0},
            {"refusal": GroupRefusal(since=9.0, words="it gives no reason")},
        ),
        (
            {"refusal": "below minSize"},
            {"refusal": GroupRefusal(since=OPENED_AT, words="below minSize")},
        ),
        (
            {"launch_failed_at": 9.0},
            {"launch_failure": LaunchFailure(since=9.0, cause="AWS gave no cause")},
        ),
        (
            {"launch_failure": "no capacity"},
            {"launch_failure": LaunchFailure(since=OPENED_AT, cause="no capacity")},
        ),
    ],
    ids=" ".join,
)
def test_half_a_bad_news_is_believed(stored: dict[str, Any], section: dict[str, Any]) -> None:
    incident = read(**stored)
    assert {name: getattr(incident, name) for name in section} == section
