"""A retirement is replaced ahead of it, with Kafka's consent, or its group refuses."""

from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from core.events import GroupChange, GroupNotice
from core.ground.window import DAYS, Window
from core.incidents.actions import LATE_REPLACEMENT_SECONDS
from core.incidents.joining import ask_release, ignore, note_group
from core.incidents.record import State
from core.incidents.replacement import own_refusal
from tests.unit.handlers.announced import DAY, RETIREMENT, health_event, hook_event
from tests.unit.handlers.failing import Killed, fail, kill
from tests.unit.handlers.fakes import NEW, OLD, group_of
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, START, Station
from tests.unit.handlers.walks import announce, freeze_zone, replace_machine

pytestmark = pytest.mark.usefixtures("quiet")

ZONE = "us-east-1a"
GROUP = group_of(ZONE)
# Opens two hours after the station's clock starts, at 12:00 UTC.
NOON = Window(days=frozenset(DAYS), start_minute=720, duration_minutes=60)


def announced(station: Station, code: str = RETIREMENT, **said: float) -> Station:
    station.announce(health_event(code, **said))
    station.tick_until_quiet()
    return station


def spare(station: Station) -> None:
    """The group launches what its desired capacity asks for, and the node joins."""
    station.cluster.join(NEW, ZONE)


def test_a_retirement_makes_room_moves_the_broker_ends_the_instance(station: Station) -> None:
    announced(station)
    cluster = station.cluster
    assert cluster.desired_calls == [(GROUP, 2)]
    assert cluster.terminated == []
    spare(station)
    cluster.add_node(NEW, ready=False)
    station.tick()
    # It is kept from Cluster Autoscaler until it is used.
    assert cluster.node_views[NEW].spare_for == OLD
    cluster.change_node(NEW, ready=True)
    assert station.tick().incident().state is State.HOLDING
    station.tick(2)
    assert cluster.terminated == [(OLD, True)]
    # What was raised is lowered again by the termination itself.
    assert cluster.groups[GROUP].desired == 1
    station.announce(hook_event("drain"))
    station.announce(hook_event("gate"))
    station.tick_until(State.DRAINING)
    assert station.termination_handler.sent == [(hook_event("drain"), 0.0)]
    cluster.place_pod(10, NEW)
    station.tick()
    assert cluster.node_views[NEW].spare_for == OLD
    station.tick_until(State.RELEASED)
    assert cluster.node_views[NEW].spare_for is None
    assert (OLD, "gate", "CONTINUE") in cluster.completed
    expected = ["opened", "replacing", "holding", "draining", "gating", "released"]
    assert [t.state.value for t in station.incident().transitions] == expected
    assert cluster.terminated == [(OLD, True)]


def test_capacity_is_raised_once_however_often_the_invocation_dies(station: Station) -> None:
    station.announce(health_event())
    kill(1, [(station.cluster, "set_desired")], after=True)
    station.tick(2)
    with pytest.raises(Killed):
        station.tick()
    station.sweep(60)
    station.tick(2)
    assert station.cluster.groups[GROUP].desired == 2


def test_a_retirement_waits_for_its_window(station: Station) -> None:
    station = Station(policy=replace(POLICY, maintenance=NOON))
    station.announce(health_event())
    assert station.tick().incident().state is State.OPENED
    assert "opens at 2026-11-20 12:00 UTC" in station.incident().reason
    station.now = START + 2 * 3600 - 10
    station.tick()
    assert station.tick_until_quiet().incident().state is State.REPLACING
    assert station.cluster.desired_calls == [(GROUP, 2)]


def test_a_window_that_closes_over_the_replacement_waits_for_the_next() -> None:
    station = Station(policy=replace(POLICY, maintenance=NOON), now=START + 2 * 3600)
    announced(station)
    spare(station)
    station.now = START + 3 * 3600 + 1
    station.ledger.take_lease(OLD, station.now, 900, node_id=10)
    assert station.tick().ledger.leases() == ()
    assert station.tick().cluster.terminated == []
    assert "opens at 2026-11-21 12:00 UTC" in station.incident().reason
    station.now = START + 26 * 3600
    station.tick(5)
    assert station.cluster.terminated == [(OLD, True)]


def test_a_window_that_is_missed_is_not_waited_for() -> None:
    policy = replace(POLICY, maintenance=NOON, planned_margin_seconds=6 * 3600)
    station = Station(policy=policy)
    announced(station, due=START + 7 * 3600)
    assert station.incident().state is State.REPLACING


def test_what_aws_expedites_is_done_at_once() -> None:
    station = Station(policy=replace(POLICY, maintenance=NOON))
    announced(station, "AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED")
    assert station.incident().state is State.REPLACING


def failed_launch(station: Station) -> None:
    notice = GroupNotice(
        event_id="e",
        dedupe_key="k",
        account=None,
        region=None,
        occurred_at=station.now,
        body="{}",
        group=GROUP,
        what=GroupChange.LAUNCH_FAILED,
        cause="We currently do not have sufficient r7g.large capacity.",
    )
    station.ledger.put(note_group(station.incident(), notice, station.now))


def test_without_capacity_the_old_node_is_kept_and_the_wait_grows(station: Station) -> None:
    announced(station)
    failed_launch(station)
    station.sweep(60)
    delays = []
    for _ in range(8):
        station.tick()
        delays.append(station.ticks.sent[-1][1])
    incident = station.incident()
    assert incident.state is State.REPLACING
    assert "sufficient r7g.large capacity" in incident.reason
    assert incident.pages == ("no_capacity",)
    assert delays == sorted(delays)
    assert delays[-1] == 900
    assert station.cluster.terminated == []
    spare(station)
    assert station.tick().incident().state is State.HOLDING


def test_a_maximum_lowered_meanwhile_is_not_asked_for_more_and_told(station: Station) -> None:
    announced(station)
    station.cluster.change_group(GROUP, desired=1, maximum=1)
    station.tick(3)
    assert station.cluster.desired_calls == [(GROUP, 2)]
    assert station.incident().pages == ("no_room",)
    station.cluster.change_group(GROUP, desired=1, maximum=2)
    station.tick()
    assert station.cluster.desired_calls == [(GROUP, 2), (GROUP, 2)]


def test_a_retirement_called_off_early_lowers_what_was_raised(station: Station) -> None:
    announced(station)
    station.announce(health_event(status="closed", said_at=START + 60))
    assert station.tick().incident().state is State.CANCELLED
    assert station.cluster.groups[GROUP].desired == 1
    assert station.cluster.terminated == []


@pytest.mark.parametrize("ready", [True, False])
def test_a_retirement_called_off_ends_the_spare_alone(station: Station, *, ready: bool) -> None:
    # Kafka refuses for now, so the spare waits.
    lagging = replace(healthy_kafka(out=30), fenced=frozenset())
    station.cluster.kafka = lagging
    announced(station)
    spare(station)
    station.cluster.change_node(NEW, ready=ready)
    station.tick()
    station.announce(health_event(status="closed", said_at=START + 60))
    assert station.tick().incident().state is State.CANCELLED
    assert station.cluster.terminated == [(NEW, True)]
    assert station.cluster.groups[GROUP].desired == 1
    assert station.cluster.node_views[NEW].spare_for is None


def test_what_a_person_has_ignored_gives_its_room_back_once_every_pod_has_a_node(
    station: Station,
) -> None:
    station.cluster.kafka = replace(healthy_kafka(out=30), fenced=frozenset())
    announced(station)
    spare(station)
    station.tick()
    home = station.cluster.pods[20].node_name
    station.cluster.change_pod(20, node_name=None)
    station.now += LATE_REPLACEMENT_SECONDS
    station.ledger.put(ignore(station.incident(), "ada", "a test", station.now))
    # It may be about to start on the machine that came.
    assert station.tick().incident().open
    station.cluster.change_pod(20, node_name=home)
    assert station.tick().incident().state is State.CANCELLED
    assert station.cluster.terminated == [(NEW, True)]
    assert station.cluster.groups[GROUP].desired == 1


def test_an_older_word_of_healths_that_comes_late_calls_nothing_off(station: Station) -> None:
    announced(station, said_at=START + 60)
    station.announce(health_event(status="closed", said_at=START))
    assert station.tick().incident().state is State.REPLACING


def test_a_person_may_have_a_retirement_ignored(station: Station) -> None:
    station.announce(health_event())
    station.ledger.put(ignore(station.incident(), "ada", "a test", station.now))
    station.sweep(60)
    assert station.tick().incident().state is State.CANCELLED
    station.announce(health_event(due=START + 15 * DAY, said_at=START + DAY))
    assert station.ledger.get(f"{OLD}.2") is None
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))
    assert station.incident(f"{OLD}.2").open


def test_a_lost_announcement_of_the_termination_does_not_stop_the_drain(station: Station) -> None:
    announced(station)
    spare(station)
    station.tick_until(State.DRAINING)
    (sent,) = station.forwarded
    assert (sent["EC2InstanceId"], sent["LifecycleHookName"]) == (OLD, "drain")
    # The announcement had its time to come.
    asked, forwarded = station.incident().terminate_asked_at, station.incident().forwarded
    assert asked is not None
    assert forwarded.first_at - asked >= 30


def test_a_node_without_kafka_goes_without_a_spare(station: Station) -> None:
    del station.cluster.pods[10]
    station.cluster.attached.clear()
    station.announce(health_event())
    while not station.cluster.terminated:
        station.tick()
    assert station.cluster.desired_calls == []
    assert station.cluster.terminated == [(OLD, False)]
    assert not station.ledger.leases()
    station.announce(hook_event("drain"))
    assert station.tick().incident().state is State.DRAINING


def test_a_retirement_in_a_frozen_zone_waits_while_there_is_time(station: Station) -> None:
    announced(freeze_zone(station), due=START + 10 * DAY)
    assert station.incident().state is State.OPENED
    assert "is frozen" in station.incident().reason


def test_a_retirement_in_a_frozen_zone_does_not_run_past_awss_date(station: Station) -> None:
    announced(freeze_zone(station), due=START + POLICY.planned_margin_seconds / 2)
    spare(station)
    station.tick_until(State.HOLDING)
    assert "frozen_zone" in station.incident().pages
    station.tick(2)
    assert station.cluster.terminated == [(OLD, True)]
    station.announce(hook_event("drain"))
    station.announce(hook_event("gate"))
    station.tick_until(State.DRAINING)


def test_a_retirement_that_kafka_keeps_waiting_calls_a_person_once(station: Station) -> None:
    announced(station)
    spare(station)
    station.cluster.kafka = healthy_kafka(out=20)
    station.tick_until(State.HOLDING)
    station.now += POLICY.hold_limit_seconds - 60
    assert station.tick().incident().pages == ()
    station.now += 120
    assert station.tick(2).incident().pages == ("waits_long",)
    (page,) = station.ticks.pages
    assert "broker 20 is fenced" in page["reason"]


def test_a_release_before_the_group_was_asked_for_room_leaves_it_its_size(station: Station) -> None:
    """What is written down is not done yet: the group would be left with no machine at all."""
    station.announce(health_event())
    while station.incident().surge_to is None:
        station.tick()
    assert station.cluster.groups[GROUP].desired == 1
    station.ledger.put(ask_release(station.incident(), "ann", station.now))
    station.sweep(60)
    station.tick_until_quiet()
    assert station.cluster.terminated == [(OLD, False)]
    assert station.cluster.groups[GROUP].desired == 1


MINIMUM = (
    "Currently, desiredSize equals minSize (2). Terminating instance without replacement will "
    "violate group's min size constraint."
)
PROTECTED = "The instance is protected from termination."
DUE = START + 15 * DAY


@pytest.fixture
def replaced() -> Station:
    """A retirement in two weeks, its replacement Ready."""
    made = Station()
    made.announce(health_event(due=DUE))
    made.tick_until_quiet()
    made.cluster.join(NEW)
    return made


def test_a_refusal_is_told_in_the_groups_words_and_the_lease_given_back(replaced: Station) -> None:
    replaced.cluster.group_refuses = PROTECTED
    replaced.tick_while_open(60)
    incident = replaced.incident()
    assert incident.pages == ("group_refuses",)
    assert "does not terminate instance i-0a: The instance is protected" in incident.reason
    assert replaced.ledger.leases() == ()
    asked = len(replaced.cluster.asked_to_terminate)
    before = replaced.now
    while len(replaced.cluster.asked_to_terminate) == asked:
        replaced.tick()
    assert replaced.now - before >= 500
    assert replaced.incident().pages == ("group_refuses",)


def test_a_group_at_its_minimum_is_asked_not_to_become_smaller(replaced: Station) -> None:
    replaced.cluster.group_refuses = MINIMUM
    replaced.cluster.refuses_decrement_only = True
    replaced.tick_while_open(6)
    assert replaced.cluster.asked_to_terminate == [(OLD, True), (OLD, False)]
    assert replaced.cluster.terminated == [(OLD, False)]


@pytest.mark.parametrize("lifecycle", ["Standby", "Detached", None])
def test_who_a_group_cannot_end_holds_up_none(replaced: Station, lifecycle: str | None) -> None:
    replaced.tick_while_open(1)
    if lifecycle is None:
        replaced.cluster.set_groups_without(OLD)
    else:
        replaced.cluster.set_lifecycle(OLD, lifecycle)
    replaced.tick_while_open(60)
    assert replaced.incident().pages == ("group_refuses",)
    assert replaced.ledger.leases() == ()
    assert replaced.cluster.terminated == []


def test_before_awss_date_the_node_is_drained_without_its_group(replaced: Station) -> None:
    replaced.cluster.group_refuses = PROTECTED
    replaced.tick_while_open(60)
    replaced.now = DUE - POLICY.planned_margin_seconds / 2
    replaced.tick_while_open(5)
    assert replaced.incident().state is State.DRAINING
    assert [m["detail"] for m in replaced.forwarded] == [{"instance-id": OLD}]
    assert [lease.node_id for lease in replaced.ledger.leases()] == [10]
    replaced.cluster.place_pod(10, NEW)
    replaced.tick_while_open(10)
    assert replaced.incident().state is State.RETAINED
    assert "empty until AWS takes it" in replaced.incident().reason
    assert replaced.ledger.leases() == ()


def test_what_fails_at_every_turn_is_told(replaced: Station) -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Terminate")
    fail(replaced.cluster, "terminate_in_group", denied)
    replaced.tick_while_open(200)
    assert replaced.incident().pages == ("action_fails",)
    assert replaced.incident().failing_since is not None


def test_a_planned_departure_that_nobody_can_see_is_told(replaced: Station) -> None:
    replaced.cluster.kubernetes_answers = False
    replaced.tick_while_open(200)
    assert replaced.incident().pages == ("blind",)
    replaced.cluster.kubernetes_answers = True
    replaced.tick_while_open(1)
    assert replaced.incident().blind_since is None
    assert replace(replaced.incident()).open


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
    station = announce(Station())
    station.announce(health_event(due=START + 7 * DAY))
    station.cluster.set_lifecycle(OLD, "Terminating:Retained")
    station.cluster.waiting_hooks.clear()
    station.tick_while_open(60)
    (page,) = station.ticks.pages
    assert page["page"] == "retained"
    assert "AWS takes it at 2026-11-27" in page["reason"]
