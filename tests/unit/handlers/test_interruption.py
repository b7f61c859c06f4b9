from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.events import Kind
from core.ground.errors import Conflict
from core.incidents.observation import cluster_ownership
from core.incidents.record import Incident, State
from handlers import interruption
from handlers.incidents.desk import IntakeDesk
from tests.announcements import load
from tests.every_case import every_case
from tests.unit.handlers.announced import ec2_event, hook_event
from tests.unit.handlers.failing import Killed, fail, kill, noted
from tests.unit.handlers.fakes import NEW, OLD, PREFIX, TAG
from tests.unit.handlers.station import START, Station


def sent(station: Station) -> list[dict[str, object]]:
    return [json.loads(body) for body, _ in station.ticks.sent]


def test_an_announcement_opens_an_incident_and_sends_its_first_tick(station: Station) -> None:
    station.announce(hook_event("drain"))
    assert station.incident().state is State.OPENED
    assert sent(station) == [{"incident_id": OLD, "version": 1}]
    assert [outcome for _, outcome in station.ledger.events.values()] == [
        "Incident i-0a, which is opened."
    ]


def test_both_hooks_share_one_incident(station: Station) -> None:
    station.announce(hook_event("drain"))
    station.announce(hook_event("gate"))
    assert station.incident().hooks == {"drain": "token-drain", "gate": "token-gate"}
    assert sent(station)[-1] == {"incident_id": OLD, "version": 2}


def test_a_duplicate_changes_nothing_but_sends_the_tick_that_may_be_missing(
    station: Station,
) -> None:
    station.announce(hook_event("drain"))
    before = station.incident()
    station.announce(hook_event("drain"))
    assert station.incident() == before
    assert sent(station) == [{"incident_id": OLD, "version": 1}] * 2


def test_an_instance_of_another_cluster_is_ignored_with_its_body(station: Station) -> None:
    body = ec2_event("EC2 Instance State-change Notification", "i-0foreign", state="stopping")
    station.announce(body)
    ((kept, reason),) = station.ledger.ignored
    assert kept == body
    assert reason == "EC2 does not know instance i-0foreign."
    station.cluster.add_instance("i-0foreign", "us-east-1a")
    elsewhere = replace(station.reception, whose=cluster_ownership(f"{PREFIX}-2"))
    IntakeDesk(elsewhere, replace(station.notices, reception=elsewhere)).take(body, START)
    assert f"Instance i-0foreign has no tag {TAG}-2: another's." in {
        reason for _, reason in station.ledger.ignored
    }
    assert station.ticks.sent == []


@pytest.mark.parametrize("body", ["", "{", "[]", '{"source": "aws.s3"}', "\x00"])
def test_what_cannot_be_read_is_kept_and_never_raises(station: Station, body: str) -> None:
    station.announce(body)
    assert [kept for kept, _ in station.ledger.ignored] == [body]


def test_an_echo_of_an_instance_that_is_gone_opens_nothing(station: Station) -> None:
    station.announce(hook_event("drain"))
    incident = station.incident()
    station.ledger.put(_ended(incident, State.RELEASED))
    station.announce(ec2_event("EC2 Instance State-change Notification", OLD, state="terminated"))
    assert len(station.ticks.sent) == 1
    assert station.ledger.get("i-0a.2") is None


def test_a_retained_instance_that_is_terminated_again_opens_a_second_round(
    station: Station,
) -> None:
    station.announce(hook_event("drain"))
    station.ledger.put(_ended(station.incident(), State.RETAINED))
    station.announce(hook_event("drain"))  # an echo of the first round
    assert station.ledger.get("i-0a.2") is None
    station.announce(hook_event("drain", token="token-of-a-fresh-cycle"))
    second = station.incident("i-0a.2")
    assert second.hooks == {"drain": "token-of-a-fresh-cycle"}
    assert sent(station)[-1] == {"incident_id": "i-0a.2", "version": 1}


def _ended(incident: Incident, state: State) -> Incident:
    return replace(incident, state=state)


@every_case("after", [False, True])
@every_case("at", [1, 2, 3, 4])
def test_dying_at_any_write_loses_nothing_once_delivered_again(at: int, *, after: bool) -> None:
    station = Station()
    kill(at, [(station.ledger, "put"), (station.ledger, "record_event")], after=after)
    for body in (hook_event("drain"), hook_event("gate")):
        try:
            station.announce(body)
        except Killed:
            station.announce(body)
    assert station.incident().hooks == {"drain": "token-drain", "gate": "token-gate"}
    assert sent(station)[-1] == {"incident_id": OLD, "version": 2}
    assert len(station.ledger.events) == 2


def test_an_announcement_that_meets_another_tries_again() -> None:
    station = Station()
    fail(station.ledger, "put", Conflict("Somebody else was first."), times=4)
    station.announce(hook_event("drain"))
    assert station.incident().state is State.OPENED


def test_an_announcement_that_never_gets_through_is_delivered_again() -> None:
    station = Station()
    fail(station.ledger, "put", Conflict("Somebody else was first."), times=5)
    with pytest.raises(Conflict):
        station.announce(hook_event("drain"))


def test_a_batch_reports_only_the_messages_that_failed(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "_desk", lambda: station.desk)
    station.cluster.add_instance(NEW, "us-east-1b")
    good, bad = hook_event("drain"), hook_event("drain", instance_id=NEW)
    original = station.cluster.instance

    def failing(instance_id: str):  # type: ignore[no-untyped-def]
        if instance_id == NEW:
            raise RuntimeError("throttled")
        return original(instance_id)

    monkeypatch.setattr(station.cluster, "instance", failing)
    records = [
        {"messageId": f"m{n}", "body": body, "eventSource": "aws:sqs", "attributes": {}}
        for n, body in enumerate((good, bad))
    ]
    answer = interruption.handler({"Records": records}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert station.incident().state is State.OPENED


def test_one_event_about_hundreds_of_others_instances_is_asked_about_once(
    station: Station,
) -> None:
    event = load("health-retirement")
    named = [OLD, *(f"i-0{number:07x}" for number in range(300))]
    event["detail"]["affectedEntities"] = [{"entityValue": id_} for id_ in named]
    asked = noted(station.cluster, "instance")
    station.announce(json.dumps(event))
    assert asked == [(OLD,)]
    assert station.incident().kind is Kind.SCHEDULED_CHANGE
    ((_, reason),) = station.ledger.ignored
    assert reason.startswith("300 of the 301 instances it names are another's")
