"""A reboot that AWS schedules is ridden through: others lead meanwhile."""

from __future__ import annotations

from core.incidents.record import State
from handlers.adapters.aws import tick_message
from tests.unit.handlers.announced import DAY, REBOOT, RETIREMENT, health_event
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import START, Station
from tests.unit.handlers.test_planned import announced


def test_a_reboot_is_ridden_through_with_leaders_elsewhere(station: Station) -> None:
    due = START + 2 * 3600
    station.announce(health_event(REBOOT, due=due))
    station.tick()
    assert station.incident().state is State.OPENED
    assert station.cluster.reordered == []
    station.now = due - 600
    station.tick()
    view = station.cluster.kafka
    assert view is not None
    assert {p.leader for p in view.partitions} == {20}
    assert station.cluster.terminated == []
    station.now = due + 7200
    station.tick()
    station.tick()
    assert station.incident().state is State.RIDDEN_THROUGH
    assert station.cluster.kafka == healthy_kafka()


def test_a_reboot_that_is_over_early_gives_the_leaders_back(station: Station) -> None:
    due = START + 600
    announced(station, REBOOT, due=due)
    station.now = due
    station.announce(health_event(REBOOT, due=due, status="closed", said_at=due))
    station.tick()
    assert station.incident().state is State.CANCELLED
    assert station.cluster.kafka == healthy_kafka()


def test_a_release_nobody_could_finish_is_finished_by_the_next_shift(station: Station) -> None:
    due = START + 600
    announced(station, REBOOT, due=due)
    moved, station.cluster.kafka = station.cluster.kafka, None
    station.announce(health_event(REBOOT, due=due, status="closed", said_at=due))
    station.tick()
    assert station.incident().state is State.CANCELLED
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


def leaders(station: Station) -> set[int | None]:
    view = station.cluster.kafka
    assert view is not None
    return {p.leader for p in view.partitions}


def test_between_two_reboots_the_broker_leads(station: Station) -> None:
    reboots(station, FIRST, SECOND)
    at(station, FIRST - LEADS)
    assert leaders(station) == {20}
    station.announce(health_event(REBOOT, due=FIRST, status="closed", said_at=FIRST))
    at(station, FIRST + 60)
    assert station.cluster.kafka == healthy_kafka()
    at(station, SECOND - LEADS)
    assert leaders(station) == {20}
    at(station, SECOND + TAKES)
    assert station.incident().state is State.RIDDEN_THROUGH
    assert station.cluster.kafka == healthy_kafka()


def test_a_reboot_that_aws_never_closes_does_not_hide_the_next(station: Station) -> None:
    reboots(station, FIRST, SECOND)
    at(station, FIRST - LEADS)
    at(station, FIRST + TAKES)
    assert station.incident().state is State.OPENED
    assert station.cluster.kafka == healthy_kafka()
    at(station, SECOND - LEADS)
    assert leaders(station) == {20}


def test_of_two_reboots_that_overlap_others_lead_through_both(station: Station) -> None:
    second = FIRST + TAKES
    reboots(station, FIRST, second)
    at(station, FIRST - LEADS)
    for moment in (second - LEADS, second, second + TAKES - 1):
        at(station, moment)
        assert leaders(station) == {20}
    at(station, second + TAKES)
    assert station.incident().state is State.RIDDEN_THROUGH
    assert station.cluster.kafka == healthy_kafka()


def test_a_reboot_announced_while_another_is_under_way_is_ridden_through_too(
    station: Station,
) -> None:
    reboots(station, FIRST)
    at(station, FIRST - LEADS)
    station.announce(health_event(REBOOT, due=SECOND, said_at=FIRST, number=2))
    at(station, FIRST + TAKES)
    assert station.cluster.kafka == healthy_kafka()
    at(station, SECOND - LEADS)
    assert leaders(station) == {20}
    at(station, SECOND + TAKES)
    assert station.incident().state is State.RIDDEN_THROUGH


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


def test_a_broker_that_is_not_back_after_the_first_of_two_reboots_is_told_of(
    station: Station,
) -> None:
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
