"""A planned departure that its group refuses: heard, in nobody's way, done before AWS's date."""

from __future__ import annotations

from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from core.incidents.joining import ask_release
from core.incidents.record import State
from core.incidents.replacement import own_refusal
from tests.unit.handlers.failing import fail
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.health_events import DAY, health_event
from tests.unit.handlers.station import POLICY, START, Station
from tests.unit.handlers.walks import announce, replace_machine

pytestmark = pytest.mark.usefixtures("quiet")

MINIMUM = (
    "Currently, desiredSize equals minSize (2). Terminating instance without replacement will "
    "violate group's min size constraint."
)
PROTECTED = "The instance is protected from termination."
DUE = START + 15 * DAY


@pytest.fixture
def station() -> Station:
    """A retirement in two weeks, its replacement Ready."""
    made = Station()
    made.announce(health_event(due=DUE))
    made.tick_until_quiet()
    made.cluster.add_instance(NEW, "us-east-1a")
    made.cluster.add_node(NEW)
    return made


def ticks(station: Station, most: int) -> None:
    for _ in range(most):
        if not station.incident().open:
            return
        station.tick()


def test_a_refusal_is_told_in_the_groups_words_and_the_lease_given_back(station: Station) -> None:
    station.cluster.group_refuses = PROTECTED
    ticks(station, 60)
    incident = station.incident()
    assert incident.pages == ("group_refuses",)
    assert "does not terminate instance i-0a: The instance is protected" in incident.reason
    assert station.ledger.leases() == ()
    asked = len(station.cluster.asked_to_terminate)
    before = station.now
    while len(station.cluster.asked_to_terminate) == asked:
        station.tick()
    assert station.now - before >= 500
    assert station.incident().pages == ("group_refuses",)


def test_a_group_that_agrees_later_goes_the_ordinary_way(station: Station) -> None:
    station.cluster.group_refuses = PROTECTED
    ticks(station, 60)
    station.cluster.group_refuses = ""
    ticks(station, 4)
    assert station.cluster.terminated == [(OLD, True)]


def test_a_group_at_its_minimum_is_asked_not_to_become_smaller(station: Station) -> None:
    station.cluster.group_refuses = MINIMUM
    station.cluster.refuses_decrement_only = True
    ticks(station, 6)
    assert station.cluster.asked_to_terminate == [(OLD, True), (OLD, False)]
    assert station.cluster.terminated == [(OLD, False)]


@pytest.mark.parametrize("lifecycle", ["Standby", "Detached", None])
def test_an_instance_its_group_cannot_terminate_is_told_and_holds_up_nobody(
    station: Station, lifecycle: str | None
) -> None:
    ticks(station, 1)
    if lifecycle is None:
        station.cluster.set_groups_without(OLD)
    else:
        station.cluster.set_lifecycle(OLD, lifecycle)
    ticks(station, 60)
    assert station.incident().pages == ("group_refuses",)
    assert station.ledger.leases() == ()
    assert station.cluster.terminated == []


def test_before_awss_date_the_node_is_drained_without_its_group(station: Station) -> None:
    station.cluster.group_refuses = PROTECTED
    ticks(station, 60)
    station.now = DUE - POLICY.planned_margin_seconds / 2
    ticks(station, 5)
    assert station.incident().state is State.DRAINING
    assert [m["detail"] for m in station.forwarded] == [{"instance-id": OLD}]
    assert [lease.node_id for lease in station.ledger.leases()] == [10]
    station.cluster.place_pod(10, NEW)
    ticks(station, 10)
    assert station.incident().state is State.RETAINED
    assert "empty until AWS takes it" in station.incident().reason
    assert station.ledger.leases() == ()


def test_what_fails_at_every_turn_is_told(station: Station) -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Terminate")
    fail(station.cluster, "terminate_in_group", denied)
    ticks(station, 200)
    assert station.incident().pages == ("action_fails",)
    assert station.incident().failing_since is not None


def test_a_planned_departure_that_nobody_can_see_is_told(station: Station) -> None:
    station.cluster.kubernetes_answers = False
    ticks(station, 200)
    assert station.incident().pages == ("blind",)
    station.cluster.kubernetes_answers = True
    ticks(station, 1)
    assert station.incident().blind_since is None
    assert replace(station.incident()).open


def test_a_refusal_is_told_though_hooks_of_an_earlier_round_were_announced() -> None:
    """A queue delivers at least once: the hook's message of the round before comes again."""
    station = Station()
    announce(station)
    station.now += POLICY.hold_limit_seconds + 1
    station.tick()
    station.cluster.set_lifecycle(OLD, "Terminating:Retained")
    station.cluster.group_refuses = PROTECTED
    again = station.ledger.put(ask_release(station.incident(), "ada", station.now))
    station.ledger.put(replace(again, hooks=station.incident().hooks))
    for _ in range(60):
        station.now += POLICY.tick_interval_seconds
        station.reception.wake(station.incident(again.id))
        station.loop.turn(station.ticks.sent[-1][0], station.now)
    assert station.incident(again.id).pages == ("group_refuses",)


@pytest.mark.parametrize(
    "words", ["violates the group's min size constraint", "Instance Id not found", None]
)
def test_a_group_that_keeps_an_idle_machine_for_good_is_asked_once(words: str | None) -> None:
    assert own_refusal(announce(Station()).incident(), "i-idle", words) is None


def test_two_brokers_on_one_machine_are_not_drained_together() -> None:
    shared = Station()
    shared.cluster.place_pod(20, OLD)
    replace_machine(shared)
    assert shared.forwarded == []
    assert [page["page"] for page in shared.ticks.pages] == ["shared_node"]


def test_who_is_called_for_a_machine_that_is_kept_hears_when_aws_takes_it_all_the_same() -> None:
    kept = announce(Station())
    kept.announce(health_event(due=START + 7 * DAY))
    kept.cluster.set_lifecycle(OLD, "Terminating:Retained")
    kept.cluster.waiting_hooks.clear()
    ticks(kept, 60)
    (page,) = kept.ticks.pages
    assert page["page"] == "retained"
    assert "AWS takes it at 2026-11-27" in page["reason"]
