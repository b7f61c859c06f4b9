"""Machines that are sick, or rebooted by AWS: replaced or ridden through, never two at a time."""

from dataclasses import replace
from typing import Any

import pytest

from core.events import Kind
from core.ground.constants import PAGES_SENT
from core.incidents.observation import NodeClaim, StatusView
from core.incidents.record import State
from handlers.adapters.aws import tick_message
from tests.every_case import every_case
from tests.unit.handlers.announced import DAY, REBOOT, RETIREMENT, health_event, hook_event
from tests.unit.handlers.fakes import NEW, OLD, group_of
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import START, Station
from tests.unit.handlers.test_planned import announced
from tests.unit.handlers.walks import freeze_zone, leaders

ZONE = "us-east-1a"
HOUR = 3600.0


def fall_sick(station: Station, instance_id: str = OLD, since: float = START - HOUR) -> None:
    ill = replace(station.cluster.node_views[instance_id], sick={"StorageReady": since})
    station.cluster.node_views[instance_id] = ill


@pytest.fixture
def sick() -> Station:
    station = Station()
    station.cluster.checks = {id_: StatusView(instance_id=id_) for id_ in (OLD, "i-0b", "i-0c")}
    fall_sick(station)
    return station


def opened(station: Station) -> int:
    return station.sweep()["opened"]


def test_a_sick_machine_is_replaced_before_it_dies(sick: Station) -> None:
    cluster = sick.cluster
    assert opened(sick) == 1
    assert sick.incident().kind is Kind.SICK_NODE
    sick.tick_until(State.REPLACING)
    sick.tick(2)
    assert cluster.desired_calls == [(group_of(ZONE), 2)]
    assert cluster.terminated == []
    cluster.join(NEW, ZONE)
    sick.tick(4)
    assert cluster.terminated == [(OLD, True)]
    sick.announce(hook_event("drain"))
    sick.announce(hook_event("gate"))
    sick.tick_until(State.DRAINING)
    cluster.place_pod(10, NEW)
    sick.tick_until(State.RELEASED)
    assert opened(sick) == 0


def test_the_next_sick_machine_waits_until_the_first_has_left(sick: Station) -> None:
    for id_ in ("i-0e", "i-0f", "i-0g"):  # so many that two are no more than a share
        sick.cluster.join(id_, "us-east-1c")
    assert opened(sick) == 1
    fall_sick(sick, "i-0b")
    sick.now += 60
    assert opened(sick) == 0
    # Its termination governs it by now, and it still is what leaves.
    sick.ledger.put(replace(sick.incident(), kind=Kind.ASG_TERMINATE))
    assert opened(sick) == 0
    sick.ledger.put(replace(sick.incident(), state=State.RELEASED))
    sick.cluster.node_views.pop(OLD)
    assert opened(sick) == 1
    assert sick.incident("i-0b").kind is Kind.SICK_NODE


def test_one_that_gets_well_is_not_replaced_after_all(sick: Station) -> None:
    opened(sick)
    sick.tick_until(State.REPLACING)
    sick.cluster.change_node(OLD, sick={})
    sick.now += 60
    assert opened(sick) == 1  # the word that calls it off
    sick.tick_until(State.CANCELLED)
    assert "well again" in sick.incident().reason
    assert sick.cluster.terminated == []
    fall_sick(sick, since=sick.now)
    sick.now += HOUR
    assert opened(sick) == 1
    assert sick.incident(f"{OLD}.2").open


RETIRED = START + 40 * DAY


def test_a_retirement_that_aws_calls_off_keeps_no_sick_machine(sick: Station) -> None:
    opened(sick)
    for status in ("upcoming", "closed"):
        sick.now += 60
        sick.announce(health_event(RETIREMENT, due=RETIRED, status=status, said_at=sick.now))
        assert sick.incident().kind is Kind.SICK_NODE
        assert sick.incident().taken_at == (None if status == "closed" else RETIRED)
    sick.tick_until(State.REPLACING)


def test_a_sick_machine_that_gets_well_is_still_retired(sick: Station) -> None:
    opened(sick)
    sick.announce(health_event(RETIREMENT, due=RETIRED, said_at=START))
    sick.cluster.change_node(OLD, sick={})
    assert opened(sick) == 1  # the word that calls it off
    waits = sick.tick().incident()
    assert (waits.kind, waits.open, waits.called_off) == (Kind.SCHEDULED_CHANGE, True, False)
    fall_sick(sick, "i-0b")
    assert opened(sick) == 1  # It waits for weeks, and nobody waits for it.


@pytest.mark.parametrize("code", [REBOOT, RETIREMENT])
def test_a_machine_that_falls_sick_does_not_wait_for_awss_date(sick: Station, code: str) -> None:
    sick.announce(health_event(code, due=RETIRED, said_at=START))
    assert opened(sick) == 1
    sick.tick_until(State.REPLACING)


def test_a_machine_that_aws_reboots_looks_sick_and_is_not(sick: Station) -> None:
    sick.announce(health_event(REBOOT, due=START, said_at=START))
    assert opened(sick) == 0
    sick.now += TAKES
    assert opened(sick) == 1


def test_a_sick_spare_takes_nobodys_pod(sick: Station) -> None:
    opened(sick)
    sick.tick_until(State.REPLACING)
    sick.cluster.join(NEW, ZONE)
    fall_sick(sick, NEW)
    assert sick.tick(3).incident().state is State.REPLACING
    assert "StorageReady" in sick.incident().reason


def test_a_frozen_zone_keeps_its_sick_machines(sick: Station) -> None:
    assert opened(freeze_zone(sick)) == 0


@pytest.mark.parametrize("lifecycle", ["Standby", "EnteringStandby", "ReplacingRootVolume", None])
def test_a_machine_that_its_group_set_aside_is_told_once_a_day(
    sick: Station, counted: list[str], lifecycle: str | None
) -> None:
    sick.cluster.change_node(OLD, sick={})
    if lifecycle is None:
        sick.cluster.set_groups_without(OLD)
    else:
        sick.cluster.set_lifecycle(OLD, lifecycle)
    for _ in range(3):
        sick.now += 60
        assert opened(sick) == 0
    assert counted == [PAGES_SENT]
    sick.sweep(86_400)
    assert counted == 2 * [PAGES_SENT]


def set_aside_pages(station: Station) -> list[str]:
    """Return whom one sweep of machines that are well calls for those that no group looks after."""
    station.cluster.change_node(OLD, sick={})
    station.sweep()
    return [p["reason"] for p in station.ticks.pages if p["page"] == "set_aside"]


def test_a_machine_that_waits_for_a_reboot_is_told_to_be_set_aside(sick: Station) -> None:
    sick.announce(health_event(REBOOT, due=START + 20 * DAY, said_at=START))
    sick.cluster.set_lifecycle(OLD, "Standby")
    (told,) = set_aside_pages(sick)
    assert f"Instance {OLD}" in told


def launched_by_karpenter(station: Station, *instance_ids: str) -> None:
    station.cluster.node_claims = tuple(
        NodeClaim(name=f"kafka-{id_}", uid=id_, instance_id=id_, pool="broker")
        for id_ in instance_ids
    )
    for id_ in instance_ids:
        station.cluster.set_groups_without(id_)


def test_machines_whose_groups_are_all_gone_are_told_in_one_call(sick: Station) -> None:
    sick.cluster.groups.clear()
    (told,) = set_aside_pages(sick)
    assert "Kafka runs on machines (i-0a, i-0b, i-0c) without an Auto" in told
    sick.now += 3600
    assert set_aside_pages(sick) == [told]


def test_a_cluster_of_karpenters_machines_has_no_groups_and_lacks_none(sick: Station) -> None:
    launched_by_karpenter(sick, OLD, "i-0b", "i-0c")
    sick.cluster.groups.clear()
    assert set_aside_pages(sick) == []


def test_karpenters_machines_beside_a_groups_belong_to_nobody_elses_group(sick: Station) -> None:
    launched_by_karpenter(sick, OLD)
    sick.cluster.set_groups_without("i-0b")
    (told,) = set_aside_pages(sick)
    assert "Instance i-0b" in told


def test_a_detached_machine_that_lost_its_tags_is_known_by_the_broker_on_it(sick: Station) -> None:
    for id_ in (OLD, "i-0b"):
        untagged = replace(sick.cluster.instances[id_], tags={})
        sick.cluster.instances[id_] = untagged
        sick.cluster.set_groups_without(id_)
    sick.cluster.place_pod(20, None)
    (told,) = set_aside_pages(sick)
    assert f"Instance {OLD}" in told


def test_who_belongs_nowhere_is_unknown_while_claims_are_unreadable(sick: Station) -> None:
    sick.cluster.set_groups_without(OLD)
    sick.cluster.set_lifecycle("i-0b", "Standby")
    sick.cluster.node_claims = None
    (told,) = set_aside_pages(sick)
    assert "Instance i-0b" in told


def test_a_sick_machine_that_was_retained_is_not_opened_every_minute(sick: Station) -> None:
    opened(sick)
    sick.ledger.put(replace(sick.incident(), state=State.RETAINED))
    assert opened(sick) == 0


def test_a_reboot_that_is_over_early_gives_the_leaders_back(station: Station) -> None:
    due = START + 600
    announced(station, REBOOT, due=due)
    station.now = due
    station.announce(health_event(REBOOT, due=due, status="closed", said_at=due))
    assert station.tick().incident().state is State.CANCELLED
    assert station.cluster.kafka == healthy_kafka()


def test_a_release_nobody_could_finish_is_finished_by_the_next_shift(station: Station) -> None:
    due = START + 600
    announced(station, REBOOT, due=due)
    moved, station.cluster.kafka = station.cluster.kafka, None
    station.announce(health_event(REBOOT, due=due, status="closed", said_at=due))
    assert station.tick().incident().state is State.CANCELLED
    station.cluster.kafka = moved
    station.shifts.turn(station.now)
    assert station.cluster.kafka == healthy_kafka()


LEADS, TAKES = 600.0, 7200.0
FIRST, SECOND = START + 1 * DAY, START + 4 * DAY


def reboots(station: Station, *dates: float) -> None:
    for number, due in enumerate(dates, start=1):
        station.announce(health_event(REBOOT, due=due, said_at=station.now, number=number))
    station.tick()


def at(station: Station, moment: float, id_: str = "i-0a") -> None:
    """Look at the incident at a moment, and once more at what that led to."""
    station.now = moment
    for _ in range(2):
        incident = station.incident(id_)
        station.loop.turn(tick_message(incident.id, incident.version), moment)


CLOSED = health_event(REBOOT, due=FIRST, status="closed", said_at=FIRST)
ANOTHER = health_event(REBOOT, due=SECOND, said_at=FIRST, number=2)
OVERLAPS = FIRST + TAKES
# The dates; of each moment whether others lead then, and what AWS says before it; how it ends.
REBOOTS: dict[str, tuple[list[float], list[tuple[Any, ...]], State]] = {
    "one": (
        [FIRST],
        [(START + HOUR, False), (FIRST - LEADS, True), (FIRST + TAKES, False)],
        State.RIDDEN_THROUGH,
    ),
    "between two the broker leads": (
        [FIRST, SECOND],
        [
            (FIRST - LEADS, True),
            (FIRST + 60, False, CLOSED),
            (SECOND - LEADS, True),
            (SECOND + TAKES, False),
        ],
        State.RIDDEN_THROUGH,
    ),
    "one that AWS never closes does not hide the next": (
        [FIRST, SECOND],
        [(FIRST - LEADS, True), (FIRST + TAKES, False), (SECOND - LEADS, True)],
        State.OPENED,
    ),
    "two that overlap": (
        [FIRST, OVERLAPS],
        [
            (FIRST - LEADS, True),
            *((moment, True) for moment in (OVERLAPS - LEADS, OVERLAPS, OVERLAPS + TAKES - 1)),
            (OVERLAPS + TAKES, False),
        ],
        State.RIDDEN_THROUGH,
    ),
    "one that is announced during another": (
        [FIRST],
        [
            (FIRST - LEADS, True),
            (FIRST + TAKES, False, ANOTHER),
            (SECOND - LEADS, True),
            (SECOND + TAKES, False),
        ],
        State.RIDDEN_THROUGH,
    ),
}


@every_case(("dates", "moments", "ends"), REBOOTS.values(), ids=REBOOTS)
def test_a_reboot_is_ridden_through_with_leaders_elsewhere(
    dates: list[float], moments: list[tuple[Any, ...]], ends: State
) -> None:
    station = Station()
    reboots(station, *dates)
    for moment, elsewhere, *said in moments:
        for body in said:
            station.announce(body)
        at(station, moment)
        assert leaders(station) == {20} if elsewhere else station.cluster.kafka == healthy_kafka()
    assert station.incident().state is ends
    assert station.cluster.terminated == []


def test_a_reboot_announced_after_another_is_an_incident_of_its_own(station: Station) -> None:
    reboots(station, FIRST)
    at(station, FIRST - LEADS)
    at(station, FIRST + TAKES)
    assert station.incident().state is State.RIDDEN_THROUGH
    station.announce(health_event(REBOOT, due=SECOND, said_at=station.now, number=2))
    at(station, SECOND - LEADS, "i-0a.2")
    assert leaders(station) == {20}


def test_others_lead_through_a_reboot_that_comes_before_a_retirement(station: Station) -> None:
    retired = START + 40 * DAY
    station.announce(health_event(RETIREMENT, due=retired, said_at=START))
    reboots(station, FIRST)
    at(station, FIRST - LEADS)
    assert leaders(station) == {20}
    at(station, FIRST + TAKES)
    assert station.cluster.kafka == healthy_kafka()
    incident = station.incident()
    assert incident.open
    assert (incident.event_type, incident.called_off) == (RETIREMENT, False)


def test_a_broker_not_back_after_the_first_of_two_reboots_is_told(station: Station) -> None:
    reboots(station, FIRST, SECOND)
    at(station, FIRST - LEADS)
    moved = station.cluster.kafka
    station.cluster.kafka = healthy_kafka(out=10)
    at(station, FIRST + TAKES)
    assert [p.partition(":")[0] for p in station.incident().pages] == ["not_back"]
    assert station.incident().leaders_moved_at is not None
    station.cluster.kafka = moved
    at(station, FIRST + TAKES + 60)
    assert station.cluster.kafka == healthy_kafka()
