"""A page reaches everybody who listens, also while its alarm is in ALARM already."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from core.incidents.actions import Page
from handlers.adapters.pages import Topic, call
from handlers.incidents.act import perform
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fake_queue import FakeQueue
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce


@dataclass
class FakeTopic:
    told: list[tuple[str, str]] = field(default_factory=list)

    def publish(self, subject: str, text: str) -> None:
        self.told.append((subject, text))


@pytest.fixture
def station() -> Station:
    return Station()


def published(station: Station, topic: FakeTopic) -> None:
    """λ tick takes the pages that lie in its queue."""
    loop = replace(station.loop, topic=topic)
    for message in station.ticks.pages:
        loop.turn(json.dumps(message), station.now)


def test_every_page_of_every_incident_is_published(station: Station) -> None:
    announce(station)
    topic = FakeTopic()
    pages = (Page("first", "It waits."), Page("second", "AWS has none."))
    perform(station.incident(), pages, station.loop.effects, station.now)
    published(station, topic)
    assert topic.told == [
        (
            "Stillwater: first",
            "It waits.\n\npage: first\nincident_id: i-0a\nrunbook: docs/runbooks/first.md\n",
        ),
        (
            "Stillwater: second",
            "AWS has none.\n\npage: second\nincident_id: i-0a\nrunbook: docs/runbooks/second.md\n",
        ),
    ]


def test_a_page_that_cannot_be_published_is_delivered_again(station: Station) -> None:
    call(station.ticks, "It waits.", page="late_replacement")
    topic = FakeTopic()
    fail(topic, "publish", ClientError({"Error": {"Code": "AuthorizationError"}}, "Publish"))
    with pytest.raises(ClientError):
        published(station, topic)


def test_a_page_that_nobody_took_is_not_recorded(station: Station) -> None:
    """The queue refuses it: the decision is made again, and calls again."""
    announce(station)
    body, _ = station.ticks.sent[-1]
    station.now += station.policy.hold_limit_seconds + 60
    fail(station.ticks, "send", ClientError({"Error": {"Code": "Unavailable"}}, "SendMessage"))
    with pytest.raises(ClientError):
        station.loop.turn(body, station.now)
    assert station.incident().pages == ()


def test_without_alerts_the_log_and_the_count_are_all_there_is(station: Station) -> None:
    station.loop.turn(json.dumps({"page": "advisory", "reason": "Read this."}), station.now)


def test_a_topic_takes_a_subject_of_its_own_letters_and_length() -> None:
    queue, topic = FakeQueue(), FakeTopic()
    call(queue, "Too long.", page=f"budget:{'ä' * 200}", incident_id=None)
    loop = replace(Station().loop, topic=topic)
    loop.turn(json.dumps(queue.pages[0]), 0.0)
    subject, text = topic.told[0]
    assert subject.isascii()
    assert len(subject) <= 100
    assert "ä" * 200 in text


def test_sns_is_told() -> None:
    with mock_aws():
        sns = boto3.client("sns", region_name="us-east-1")
        arn = sns.create_topic(Name="local-orders-alerts")["TopicArn"]
        Topic(arn, "us-east-1").publish("Stillwater: lost", "It is gone.")
        with pytest.raises(ClientError):
            Topic(f"{arn}-gone", "us-east-1").publish("Stillwater: lost", "It is gone.")
