"""core.incidents.joining: what NTH posts, and which incident it is about."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.events import parse
from core.ground.errors import InvalidInput
from core.incidents.joining import is_reported_by, note_report, open_incident, read_drain_report
from core.incidents.record import Forwarding, Incident
from tests.every_case import every_case
from tests.unit.handlers.announced import hook_event

EVENT_ID = "event-i-0a-drain"


def posted(event_id: str = EVENT_ID, **changed: object) -> str:
    """Return what NTH posts about an announcement; its id, hex-encoded, ends NTH's own."""
    return json.dumps(
        {
            "EventID": f"asg-lifecycle-term-{event_id.encode().hex()}",
            "Kind": "ASG_LIFECYCLE",
            "Monitor": "SQS_MONITOR",
            "Description": "ASG Lifecycle Termination event received. \n",
            "NodeName": "ip-i-0a.ec2.internal",
            "Pods": ["orders-broker-a-10"],
            "InstanceID": "i-0a",
            **changed,
        }
    )


def draining() -> Incident:
    (found,) = parse(hook_event("drain"))
    sent = Forwarding(first_at=2.0, last_at=2.0)
    return replace(open_incident(found, 1.0), forwarded=sent)  # type: ignore[arg-type]


def test_a_report_leads_back_to_its_announcement() -> None:
    report = read_drain_report(posted())
    assert report.announcement_id == EVENT_ID
    assert is_reported_by(draining(), report)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (read_drain_report(posted("event-i-0a-gate")), "another announcement"),
        (read_drain_report(posted(InstanceID="i-0b")), "another instance"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_report_of_something_else_concerns_nothing(other: object, why: str) -> None:
    assert not is_reported_by(draining(), other)  # type: ignore[arg-type]


def test_a_report_before_anything_was_forwarded_concerns_nothing() -> None:
    assert not is_reported_by(replace(draining(), forwarded=None), read_drain_report(posted()))


def test_a_drain_sent_in_place_of_a_lost_announcement_is_known_by_its_request_id() -> None:
    lost = replace(draining(), drain_event=None)
    assert is_reported_by(lost, read_drain_report(posted("stillwater-i-0a")))


def test_a_report_is_noted_once() -> None:
    once = note_report(draining(), read_drain_report(posted()), 5.0)
    (note,) = once.notes
    assert (note.actor, note.at) == ("nth", 5.0)
    assert "ip-i-0a.ec2.internal" in note.reason
    assert note_report(once, read_drain_report(posted()), 6.0) is once


@every_case(
    "body",
    [
        "",
        "null",
        "[]",
        "{",
        '{"EventID": NaN}',
        # NTH's default template: a raw newline in a string.
        '{"text":"Description: interrupted \n"}',
        "[" * 100_000,
        posted(EventID="asg-lifecycle-term-xyz"),
        posted(EventID=7),
        posted(InstanceID="i-0a; drop"),
        posted(Kind=None),
    ],
)
def test_anything_else_is_refused_with_a_sentence(body: str) -> None:
    with pytest.raises(InvalidInput, match=r"\.$"):
        read_drain_report(body)
