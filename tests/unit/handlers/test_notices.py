"""Announcements of volumes, zones and groups, and of those who may not speak."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from core.events import Kind
from core.events.parsing import Home
from core.ground.constants import PAGES_SENT
from core.ground.errors import Conflict, StillwaterError
from core.ground.naming import CLUSTER_TAG, ENVIRONMENT_TAG
from core.incidents.observation import EbsVolume
from core.incidents.record import State
from core.volumes.sizing import Gp3
from core.volumes.views import History, Modification, ModificationState
from handlers.store import volume_records
from tests.announcements import BODIES, load
from tests.every_case import every_case
from tests.unit.handlers.announced import DAY, ec2_event, health_event, hook_event
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fakes import OLD, group_of
from tests.unit.handlers.station import START, Station
from tests.unit.handlers.walks import critical

VOLUME = "vol-03a55cf56513fa1b6"
POD = "orders-broker-a-10"
OURS = {
    CLUSTER_TAG: "orders",
    ENVIRONMENT_TAG: "local",
    "kubernetes.io/created-for/pvc/name": f"data-0-{POD}",
}


def add_volume(station: Station, *, instance_id: str | None = OLD, **tags: str) -> None:
    station.cluster.volumes[VOLUME] = EbsVolume(
        volume_id=VOLUME, instance_id=instance_id, zone="us-east-1a", tags=tags or OURS
    )


def announce(station: Station, name: str, **detail: Any) -> None:
    event = load(name)
    event["detail"] |= detail
    station.announce(json.dumps(event))


def outcomes(station: Station) -> list[str]:
    return [outcome for _, outcome in station.ledger.events.values()]


def reasons(station: Station) -> list[str]:
    return [reason for _, reason in station.ledger.ignored]


def in_our_group(name: str) -> str:
    return BODIES[name].replace("test-orders-broker-a", group_of("us-east-1a"))


def test_a_harmed_volume_is_an_incident_of_the_instance_it_is_attached_to(station: Station) -> None:
    add_volume(station)
    announce(station, "alarm-stalled-volume")
    incident = station.incident()
    assert incident.kind is Kind.VOLUME_PROBLEM
    assert incident.event_type == f"stalled_io {VOLUME}"
    assert len(station.ticks.sent) == 1


def test_one_event_about_two_volumes_of_two_instances_is_two_incidents(station: Station) -> None:
    for volume_id, instance_id in (("vol-0aaaaaaa", OLD), ("vol-0bbbbbbb", "i-0b")):
        station.cluster.volumes[volume_id] = EbsVolume(
            volume_id=volume_id, instance_id=instance_id, zone="us-east-1a", tags=OURS
        )
    announce(station, "health-volume-degraded")
    assert {i.instance_id for i in station.ledger.open_incidents()} == {OLD, "i-0b"}


def test_a_failed_attachment_joins_the_incident_that_moves_its_pod(station: Station) -> None:
    station.announce(hook_event("drain"))
    station.ledger.put(replace(station.incident(), pod_name=POD))
    add_volume(station, instance_id=None)
    announce(station, "volume-attach-failed")
    assert station.incident().kind is Kind.ASG_TERMINATE
    assert any("attach_failed" in key for key in station.incident().announcements)
    announce(station, "volume-attach-failed")  # SQS delivers twice.
    (told,) = station.ticks.pages
    assert (told["page"], told["incident_id"]) == ("damaged", OLD)
    assert f"attach_failed {VOLUME}" in told["reason"]


def test_a_harmed_volume_that_is_attached_nowhere_is_recorded_and_somebody_paged(
    station: Station, counted: list[str]
) -> None:
    add_volume(station, instance_id=None)
    announce(station, "volume-attach-failed")
    assert station.ledger.open_incidents() == ()
    (outcome,) = outcomes(station)
    assert POD in outcome
    assert "attached nowhere" in outcome
    assert counted == [PAGES_SENT]


THEIRS = {CLUSTER_TAG: "orders", ENVIRONMENT_TAG: "prod"}
ANOTHERS = f"Volume {VOLUME} is another's."


@every_case(
    ("name", "changes", "tags", "reason"),
    [
        ("volume-attach-failed", {}, THEIRS, ANOTHERS),
        ("volume-attach-failed", {}, {"Name": "theirs"}, ANOTHERS),
        ("health-volume-lost", {}, {}, "EC2 does not know volume vol-04e5b75b51ba5e835."),
        ("alarm-stalled-volume-ok", {}, {}, ""),
        ("zone-practice-started", {}, {},
            "A practice run in use1-az4 says nothing about the zone itself."),
        ("zone-autoshift", {"metadata": {"awayFrom": "euw1-az1"}}, {},
            "This region has no zone euw1-az1."),
    ],
)  # fmt: skip
def test_what_is_not_our_matter_is_kept_with_its_reason(
    name: str, changes: dict[str, Any], tags: dict[str, str], reason: str
) -> None:
    station = Station()
    add_volume(station, instance_id="i-0theirs" if tags else OLD, **tags)
    announce(station, name, **changes)
    assert station.ledger.open_incidents() == ()
    assert station.freezes.current(station.now) == ()
    assert station.ledger.events == {}
    (said,) = reasons(station)
    assert said == (reason or said)


def test_a_root_volume_of_an_instance_of_ours_is_ours(station: Station) -> None:
    add_volume(station, Name="root")
    announce(station, "alarm-stalled-volume")
    assert station.incident().kind is Kind.VOLUME_PROBLEM


def test_a_modification_is_kept_on_record_and_opens_nothing(station: Station) -> None:
    add_volume(station)
    announce(station, "volume-modify-completed")
    assert outcomes(station) == [f"Volume {VOLUME}: modification_completed."]
    assert station.ledger.open_incidents() == ()


@pytest.mark.parametrize(("late", "over"), [(-60.0, False), (60.0, True)], ids=["before", "of it"])
def test_a_modification_ends_by_its_own_word(station: Station, late: float, over: bool) -> None:
    add_volume(station)
    event = load("volume-modify-completed")
    said_at = datetime.fromisoformat(event["time"]).timestamp()
    station.now = said_at + 12 * 3600
    running = Modification(
        started_at=said_at - late, state=ModificationState.OPTIMIZING, target=Gp3(100)
    )
    history = History(known_since=0.0, modifications=(running,))
    volume_records.write(station.records, VOLUME, volume_records.Memory(history=history))
    station.announce(json.dumps(event))
    (found,) = volume_records.read(station.records, VOLUME).history.modifications
    assert found.state.over is over


def test_a_shift_freezes_the_zone_by_this_accounts_name_until_its_end(station: Station) -> None:
    announce(station, "zone-autoshift")
    (freeze,) = station.freezes.current(station.now)
    assert (freeze.zone, freeze.zone_id, freeze.source) == ("us-east-1a", "use1-az4", "autoshift")
    assert outcomes(station) == [
        "use1-az4: frozen: ARC's autoshift says that zone use1-az4 is to be left alone."
    ]
    end = load("zone-autoshift-completed") | {"time": "2026-11-20T12:00:00Z"}
    station.announce(json.dumps(end))
    assert station.freezes.current(station.now + 7200) == ()


@pytest.fixture
def waiting(station: Station) -> Station:
    """An incident of the group that waits for a replacement."""
    station.announce(hook_event("drain"))
    station.ticks.sent.clear()
    return station


def test_a_launch_that_failed_is_noted_once_and_wakes_the_groups_incidents(
    waiting: Station,
) -> None:
    waiting.announce(in_our_group("group-launch-failed"))
    incident = waiting.incident()
    assert incident.launch_failure.since == waiting.now
    assert "sufficient r7g.xlarge capacity" in incident.launch_failure.cause
    waiting.now += 60
    waiting.announce(in_our_group("group-launch-failed"))
    assert waiting.incident() == incident
    woken = {"incident_id": OLD, "version": incident.version}
    assert [(json.loads(body), delay) for body, delay in waiting.ticks.sent] == 2 * [(woken, 0)]


def test_what_another_group_did_wakes_nobody(waiting: Station) -> None:
    waiting.announce(BODIES["group-launch-failed"])
    assert waiting.ticks.sent == []
    assert outcomes(waiting)[-1].endswith("Woken: nobody.")


def test_a_refresh_is_kept_on_record_and_wakes_nobody(waiting: Station) -> None:
    waiting.announce(in_our_group("refresh-started"))
    assert waiting.ticks.sent == []
    assert f"{group_of('us-east-1a')}: refresh_started." in outcomes(waiting)[-1]


@pytest.mark.parametrize(("times", "noted"), [(4, True), (5, False)])
def test_a_note_that_meets_a_tick_tries_again_and_then_is_late(times: int, *, noted: bool) -> None:
    station = Station()
    station.announce(hook_event("drain"))
    fail(station.ledger, "put", Conflict("Somebody else was first."), times=times)
    try:
        station.announce(in_our_group("group-launch-failed"))
    except Conflict:
        assert not noted
    assert (station.incident().launch_failure is not None) is noted


@pytest.mark.parametrize("name", sorted(BODIES))
def test_every_announcement_leaves_a_record(station: Station, name: str) -> None:
    add_volume(station)
    station.announce(BODIES[name])
    assert len(station.ledger.events) + len(station.ledger.ignored) >= 1


@pytest.mark.parametrize("name", sorted(BODIES))
def test_every_announcement_delivered_twice_is_recorded_once(station: Station, name: str) -> None:
    add_volume(station)
    for instance_id in ("i-0b662ef9931388ba0", "i-0633ac2b0d9769723", "i-1234567890abcdef0"):
        station.cluster.add_instance(instance_id, "us-east-1b")
    station.announce(BODIES[name])
    before = (dict(station.ledger.events), dict(station.ledger.ignored))
    incidents = station.ledger.open_incidents()
    station.announce(BODIES[name])
    assert (station.ledger.events, station.ledger.ignored) == before
    assert station.ledger.open_incidents() == incidents
    assert all(i.state is State.OPENED for i in incidents)


HOME = Home("123456789012", "us-east-1")
SPOT = ec2_event("EC2 Spot Instance Interruption Warning", OLD)


def changed(body: str, **frame: object) -> str:
    return json.dumps(json.loads(body) | frame)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ({"account": "999999999999"}, "account 999999999999"),
        ({"region": "eu-west-1"}, "region eu-west-1"),
    ],
)
def test_what_is_about_another_account_or_region_is_kept_with_its_reason(
    station: Station, frame: dict[str, str], says: str
) -> None:
    for body in (hook_event("drain"), SPOT, json.dumps(load("zone-manual-shift-started"))):
        station.desk.take(changed(body, **frame), station.now, home=HOME)
    assert station.ledger.open_incidents() == ()
    assert station.freezes.incidents() == ()
    assert len(station.ledger.ignored) == 3
    assert all(says in reason for _, reason in station.ledger.ignored)


@pytest.mark.parametrize(
    ("frame", "detail", "ours"),
    [
        ({"region": "us-west-2"}, {"eventRegion": "us-east-1", "backupEvent": "true"}, True),
        ({"region": "us-east-1"}, {"eventRegion": "global"}, True),
        ({"region": "us-east-1"}, {"eventRegion": "eu-west-1"}, False),
        # An organization's administrator hears of every account's.
        ({}, {"affectedAccount": "999999999999"}, False),
    ],
)
def test_a_health_event_counts_for_whom_and_where_it_happens(
    station: Station, frame: dict[str, str], detail: dict[str, str], ours: bool
) -> None:
    event = load("health-retirement")
    event["detail"] |= detail | {"affectedEntities": [{"entityValue": OLD}]}
    station.desk.take(json.dumps(event | frame), station.now, home=HOME)
    assert bool(station.ledger.open_incidents()) is ours


@pytest.mark.parametrize("arn", [None, "", "arn:aws:sqs", "arn:aws:sns:us-east-1:1:x", "::::::"])
def test_an_address_that_is_no_queues_says_nothing_about_home(arn: str | None) -> None:
    assert Home.from_queue_arn(arn) is None


def test_a_spot_warning_for_an_instance_that_is_not_spot_is_told_and_not_acted_on(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    known = station.cluster.instances[OLD]
    station.cluster.instances[OLD] = replace(known, market="on-demand")
    station.announce(hook_event("drain"))
    station.announce(SPOT)
    assert not station.incident().urgent
    assert "EC2 calls the instance on-demand" in critical(caplog)[0]
    station.cluster.instances[OLD] = replace(known, market="spot")
    station.announce(SPOT)
    assert station.incident().urgent


def test_a_warning_too_old_is_only_told(station: Station, caplog: pytest.LogCaptureFixture) -> None:
    station.now += 3600
    station.announce(SPOT)
    assert station.ledger.open_incidents() == ()
    assert "two minutes old at most" in critical(caplog)[0]


def test_an_issue_replayed_after_weeks_opens_nothing(station: Station) -> None:
    event = load("health-instance-issue")
    event["detail"]["affectedEntities"] = [{"entityValue": OLD}]
    station.now += 30 * 86_400
    station.announce(json.dumps(event))
    assert station.ledger.open_incidents() == ()


def test_a_failed_refresh_is_paged(station: Station, caplog: pytest.LogCaptureFixture) -> None:
    station.announce(json.dumps(load("refresh-failed")))
    assert len(critical(caplog)) == 1


@pytest.mark.parametrize(
    ("due", "said_at", "opens"),
    [
        (START - 20 * DAY, START - 40 * DAY, False),
        (START + DAY, START - 40 * DAY, True),  # announced long before, as AWS does
        (START - DAY, START - 20 * DAY, True),  # late, and AWS may be late, too
        (START - 20 * DAY, START - DAY, True),  # AWS repeats it: it means it still
    ],
)
def test_a_schedule_replayed_weeks_after_its_date_is_told_and_not_acted_on(
    station: Station, due: float, said_at: float, *, opens: bool
) -> None:
    station.announce(health_event(due=due, said_at=said_at))
    assert bool(station.ledger.open_incidents()) is opens


def test_a_warning_that_cannot_be_true_calls_nobody_before_it_is_kept(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    station.now += 3600  # older than a spot warning can be
    away = StillwaterError("The ledger does not answer.")
    fail(station.ledger, "record_ignored", away, times=3)
    for _ in range(3):
        with pytest.raises(StillwaterError):
            station.desk.take(SPOT, station.now, home=HOME)
    assert critical(caplog) == []
    station.desk.take(SPOT, station.now, home=HOME)
    assert len(critical(caplog)) == 1


def test_whoever_redrives_what_cannot_be_true_or_has_failed_calls_a_person_once(
    station: Station, caplog: pytest.LogCaptureFixture
) -> None:
    station.now += 3600  # older than a spot warning can be
    for body in (SPOT, json.dumps(load("refresh-failed"))):
        caplog.clear()
        for _ in range(3):
            station.announce(body)
        assert len(critical(caplog)) == 1
