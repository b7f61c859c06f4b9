"""A person is called once for one matter, and whoever listens is reached."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from core.ground.errors import Conflict, StillwaterError
from core.incidents.actions import Page
from core.incidents.record import Incident
from handlers.adapters.pages import Topic, call
from handlers.incidents.act import freeze, perform
from tests.announcements import BODIES
from tests.unit.handlers.announced import ec2_event, health_event, hook_event
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fakes import OLD, group_of
from tests.unit.handlers.in_memory import FakeQueue
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_notices import add_volume
from tests.unit.handlers.test_notices import announce as announce_kept
from tests.unit.handlers.walks import announce


def pages(station: Station, key: str) -> int:
    return sum(page["page"] == key for page in station.ticks.pages)


def busy(*_: Any, **__: Any) -> None:
    raise Conflict("Somebody else was first.")


def refresh_failed(station: Station) -> None:
    body = BODIES["refresh-failed"].replace("test-orders-broker-a", group_of("us-east-1a"))
    station.announce(body)


def volume_harmed(station: Station) -> None:
    add_volume(station, instance_id=None)
    announce_kept(station, "volume-attach-failed")


@pytest.mark.parametrize(("said", "page"), [(refresh_failed, "refresh"), (volume_harmed, "volume")])
def test_an_announcement_that_is_delivered_until_it_can_be_recorded_calls_once(
    station: Station,
    monkeypatch: pytest.MonkeyPatch,
    said: Callable[[Station], None],
    page: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(station.ledger, "record_event", busy)
        for _ in range(3):
            with pytest.raises(Conflict):
                said(station)
    said(station)
    assert pages(station, page) == 1


def test_a_lost_zone_is_told_though_its_freeze_was_noted_by_who_died_over_it(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        freeze("us-east-1a", "Lost.", station.cluster, station.freezes, station.ticks, station.now)

    with monkeypatch.context() as patch:
        patch.setattr(station.ticks, "send", busy)
        with pytest.raises(Conflict):
            lost()
    lost()
    lost()
    assert pages(station, "zone_lost") == 1


def test_an_instance_whose_incident_cannot_be_written_keeps_no_other_of_its_event_unheard(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose record has grown beyond what an item may hold."""
    put = station.ledger.put

    def refused(incident: Incident) -> Incident:
        if incident.instance_id == OLD:
            raise Conflict("Item size has exceeded the maximum allowed size.")
        return put(incident)

    monkeypatch.setattr(station.ledger, "put", refused)
    body = json.loads(health_event())
    body["detail"]["affectedEntities"] = [{"entityValue": i} for i in (OLD, "i-0b", "i-0c")]
    with pytest.raises(Conflict):  # SQS delivers it again.
        station.announce(json.dumps(body))
    assert {i.instance_id for i in station.ledger.open_incidents()} == {"i-0b", "i-0c"}


def too_large_for_one(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the ledger refuse every write of the first instance's incidents."""
    for name in ("put", "file"):
        write = getattr(station.ledger, name)

        def refused(incident: Incident, *more: Any, write: Any = write) -> Any:
            if incident.instance_id == OLD:
                raise StillwaterError("Item size has exceeded the maximum allowed size.")
            return write(incident, *more)

        monkeypatch.setattr(station.ledger, name, refused)


def test_what_the_sweep_cannot_write_of_one_machine_keeps_no_other_unheard(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_large_for_one(station, monkeypatch)
    for instance_id in (OLD, "i-0b"):
        station.cluster.terminate(instance_id)
    with pytest.raises(StillwaterError):
        station.broom.sweep(station.now)
    assert {i.instance_id for i in station.ledger.open_incidents()} == {"i-0b"}


def test_an_incident_that_cannot_be_filed_keeps_no_other_from_the_archive(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    for instance_id in (OLD, "i-0b"):
        station.announce(ec2_event("EC2 Instance Rebalance Recommendation", instance_id))
        station.tick()
        assert not station.incident(instance_id).open
    too_large_for_one(station, monkeypatch)
    with pytest.raises(StillwaterError):
        station.broom.sweep(station.now)
    assert [i.instance_id for i in station.ledger.closing(9)] == [OLD]


def test_a_launch_that_cannot_be_noted_in_one_incident_is_noted_in_the_next(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = group_of("us-east-1a")
    for instance_id in (OLD, "i-0b"):
        station.announce(hook_event("drain", instance_id=instance_id))
    too_large_for_one(station, monkeypatch)
    with pytest.raises(StillwaterError):
        station.announce(BODIES["group-launch-failed"].replace("test-orders-broker-a", group))
    assert station.incident("i-0b").launch_failure is not None


@dataclass
class FakeTopic:
    told: list[tuple[str, str]] = field(default_factory=list)

    def publish(self, subject: str, text: str) -> None:
        self.told.append((subject, text))


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
            "It waits.\n\npage: first\nincident_id: i-0a\n",
        ),
        ("Stillwater: second", "AWS has none.\n\npage: second\nincident_id: i-0a\n"),
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
