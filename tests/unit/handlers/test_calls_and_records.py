"""A person is called once for one matter, whoever listens, and hears of what stays lent."""

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
from core.rotation.run_record import Throttle
from handlers.adapters.pages import Topic, call
from handlers.incidents.act import freeze, perform
from handlers.incidents.broom import NOT_GIVEN_BACK, PATIENCE_SECONDS, UNSEEN
from handlers.incidents.shifts import INCIDENT_CAUSE, shift_in_force
from handlers.rotation.turns import Throttles
from handlers.store.documents import LostZone
from handlers.store.ledger import STRAYS_MESSAGE
from tests.announcements import BODIES
from tests.unit.handlers.announced import ec2_event, health_event, hook_event
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fakes import NEW, OLD, group_of, node_named
from tests.unit.handlers.in_memory import FakeQueue
from tests.unit.handlers.station import Station
from tests.unit.handlers.test_notices import add_volume
from tests.unit.handlers.test_notices import announce as announce_kept
from tests.unit.handlers.walks import announce


def pages(station: Station, key: str) -> int:
    return sum(page["page"] == key for page in station.ticks.pages)


BUSY = Conflict("Somebody else was first.")


def refresh_failed(station: Station) -> None:
    body = BODIES["refresh-failed"].replace("test-orders-broker-a", group_of("us-east-1a"))
    station.announce(body)


def volume_harmed(station: Station) -> None:
    add_volume(station, instance_id=None)
    announce_kept(station, "volume-attach-failed")


@pytest.mark.parametrize(("said", "page"), [(refresh_failed, "refresh"), (volume_harmed, "volume")])
def test_an_announcement_that_is_delivered_until_it_can_be_recorded_calls_once(
    station: Station, said: Callable[[Station], None], page: str
) -> None:
    fail(station.ledger, "record_event", BUSY, times=3)
    for _ in range(3):
        with pytest.raises(Conflict):
            said(station)
    said(station)
    assert pages(station, page) == 1


def test_a_lost_zone_is_told_though_its_freeze_was_noted_by_who_died_over_it(
    station: Station,
) -> None:
    def lost() -> None:
        freeze("us-east-1a", "Lost.", station.cluster, station.freezes, station.ticks, station.now)

    fail(station.ticks, "send", BUSY, times=1)
    with pytest.raises(Conflict):
        lost()
    lost()
    lost()
    assert pages(station, "zone_lost") == 1


def test_an_instance_whose_incident_cannot_be_written_keeps_no_other_of_its_event_unheard(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_large_for_one(station, monkeypatch)
    body = json.loads(health_event())
    body["detail"]["affectedEntities"] = [{"entityValue": i} for i in (OLD, "i-0b", "i-0c")]
    with pytest.raises(StillwaterError):  # SQS delivers it again.
        station.announce(json.dumps(body))
    assert {i.instance_id for i in station.ledger.open_incidents()} == {"i-0b", "i-0c"}


def too_large_for_one(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the ledger refuse every write of the first instance's incidents, which have grown."""
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
        station.sweep()
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
        station.sweep()
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


STATE_CHANGE = "EC2 Instance State-change Notification"


@pytest.fixture
def lender() -> Station:
    """Return a station whose incident i-0a is over."""
    station = Station()
    station.announce(ec2_event(STATE_CHANGE, OLD, state="stopping"))
    station.tick(2)
    assert not station.incident().open
    return station


def refused(*_: Any, **__: Any) -> None:
    raise StillwaterError("This user may not do that.")


def throttle(station: Station) -> None:
    wanted = Throttle(brokers=(10,), topics=("t",), follower_bytes_per_s=1, leader_bytes_per_s=1)
    Throttles(station.cluster, station.records, "orders").settle("rotation-1", wanted)


def label(station: Station) -> None:
    station.cluster.change_pod(10, may_leave="i-0a")


def mark(station: Station) -> None:
    station.cluster.mark_spare(node_named(OLD), "i-0a")


def cordon(station: Station) -> None:
    station.cluster.cordon(node_named(OLD), "i-0a")


def leaders(station: Station) -> None:
    station.leadership.avoid(f"{INCIDENT_CAUSE}i-0a", [10])


def protection(station: Station) -> None:
    zone = LostZone("use1-az4", "us-east-1a", source="autoshift", occurred_at=station.now)
    station.freezes.note(zone, station.now)
    station.shifts.turn(station.now)
    assert station.cluster.groups[group_of("us-east-1a")].protected
    station.now += 1
    station.freezes.note(replace(zone, over=True, occurred_at=station.now), station.now)


LENT: dict[str, tuple[Callable[[Station], None], str, str]] = {
    "throttle": (throttle, "unthrottle", "replication is throttled"),
    "label": (label, "keep", "pod orders-broker-a-10 may leave"),
    "mark": (mark, "mark_spare", f"node {node_named(OLD)} is kept"),
    "cordon": (cordon, "uncordon", f"node {node_named(OLD)} is cordoned"),
    "leaders": (leaders, "reorder", "broker 10 leads nothing"),
    "protection": (protection, "protect", "no scale-in"),
}


def minutes(station: Station, count: int, page: str = NOT_GIVEN_BACK) -> list[str]:
    """Let the sweep and the loop try so often; return what a person was called for."""
    for _ in range(count):
        station.now += 60
        sent = len(station.ticks.sent)
        station.sweep()
        for body, _ in list(station.ticks.sent[sent:]):
            if '"page"' not in body:
                station.loop.turn(body, station.now)
    return [p["reason"] for p in station.ticks.pages if p["page"] == page]


@pytest.mark.parametrize(("lend", "call", "words"), LENT.values(), ids=LENT)
def test_what_cannot_be_given_back_calls_a_person_once(
    lender: Station,
    monkeypatch: pytest.MonkeyPatch,
    lend: Callable[[Station], None],
    call: str,
    words: str,
) -> None:
    lend(lender)
    monkeypatch.setattr(lender.cluster, call, refused)
    assert minutes(lender, int(PATIENCE_SECONDS // 60)) == []
    assert len([reason for reason in minutes(lender, 30) if words in reason]) == 1
    # Once a day, for as long as it lasts.
    lender.now += 86_400
    assert len([reason for reason in minutes(lender, 2) if words in reason]) == 2


@pytest.mark.parametrize(("lend", "call", "words"), LENT.values(), ids=LENT)
def test_what_is_given_back_in_time_is_nobodys_matter(
    lender: Station,
    monkeypatch: pytest.MonkeyPatch,
    lend: Callable[[Station], None],
    call: str,
    words: str,
) -> None:
    del words
    for _ in range(2):
        lend(lender)
        with monkeypatch.context() as patch:
            patch.setattr(lender.cluster, call, refused)
            minutes(lender, 10)
        assert minutes(lender, 2) == []


def test_a_frozen_zone_keeps_its_leaders_away_for_as_long_as_it_lasts(lender: Station) -> None:
    lender.cluster.add_instance(NEW, "us-east-1b")
    lender.freezes.note(LostZone("use1-az6", "us-east-1b", source="autoshift"), lender.now)
    assert minutes(lender, 40) == []


def test_a_sweep_that_sees_no_nodes_for_long_calls_a_person_once(lender: Station) -> None:
    lender.cluster.kubernetes_answers = False
    assert minutes(lender, 15, UNSEEN) == []
    (told,) = minutes(lender, 30, UNSEEN)
    assert "λ sweep could not read Nodes" in told
    lender.cluster.kubernetes_answers = True
    assert len(minutes(lender, 5, UNSEEN)) == 1


def test_a_sweep_that_knows_no_node_for_kafkas_calls_a_person(lender: Station) -> None:
    """Somebody has taken the pools' labels off all nodes, or described another one."""
    nodes = lender.cluster.node_views
    for id_, node in nodes.items():
        nodes[id_] = replace(node, pool=None)
    (told,) = minutes(lender, 30, UNSEEN)
    assert "none that its pods run on has the label of a pool" in told
    # Where nothing of Kafka's runs, nothing is missed.
    for node_id in (10, 20, 30):
        lender.cluster.place_pod(node_id, None)
    assert len(minutes(lender, 90, UNSEEN)) == 1


def left(station: Station) -> set[str]:
    """Return which of the things above are lent at this moment."""
    cluster = station.cluster
    found = {
        "throttle": cluster.throttled is not None,
        "label": cluster.pods[10].may_leave is not None,
        "mark": cluster.node_views[OLD].spare_for is not None,
        "cordon": not cluster.node_views[OLD].schedulable,
        "leaders": not shift_in_force(station.records, "orders").nothing,
        "protection": any(group.protected for group in cluster.groups.values()),
    }
    return {name for name, lent in found.items() if lent}


@pytest.mark.parametrize("stuck", LENT)
def test_what_cannot_be_given_back_keeps_nothing_else_lent(
    lender: Station, monkeypatch: pytest.MonkeyPatch, stuck: str
) -> None:
    for name in ("protection", "throttle", "label", "mark", "cordon", "leaders"):
        LENT[name][0](lender)
    assert left(lender) == LENT.keys()
    monkeypatch.setattr(lender.cluster, LENT[stuck][1], refused)
    minutes(lender, 3)
    assert left(lender) == {stuck}


def throttled_by_ec2(*_: Any, **__: Any) -> None:
    raise ClientError({"Error": {"Code": "RequestLimitExceeded"}}, "DescribeInstanceStatus")


@pytest.mark.parametrize("call", ["statuses", "instance_states", "groups_of"])
def test_one_question_that_aws_does_not_answer_keeps_the_sweep_from_nothing_else(
    lender: Station, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    throttle(lender)
    lender.cluster.terminate("i-0b")
    for hook in ("drain", "gate"):
        lender.announce(hook_event(hook, instance_id="i-0b", zone="us-east-1b"))
    lender.ticks.sent.clear()
    lender.now += 600
    monkeypatch.setattr(lender.cluster, call, throttled_by_ec2)
    with pytest.raises(ClientError):  # The function fails, and its alarm says so.
        lender.sweep()
    assert [body for body, _ in lender.ticks.sent if "i-0b" in body]
    assert STRAYS_MESSAGE in [body for body, _ in lender.ticks.sent]
    assert lender.archive.objects
