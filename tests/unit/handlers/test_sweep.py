"""The sweep, and instances that are kept or taken all the same."""

from dataclasses import replace

import pytest

from core.availability.lease import Lease
from core.events import Kind
from core.incidents.observation import ScheduledEvent, StatusView
from core.incidents.record import State
from handlers import sweep
from tests.every_case import every_case
from tests.unit.handlers.announced import ec2_event, health_event, hook_event
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce


def swept(station: Station, later: float = 0.0) -> dict[str, int]:
    """Return what one run of the sweep did."""
    done = station.broom.sweep(station.now + later)
    return {key: done[key] for key in ("revived", "opened")}


def test_an_incident_without_a_tick_gets_one(station: Station) -> None:
    announce(station)
    sent = len(station.ticks.sent)
    assert swept(station, 40) == {"revived": 0, "opened": 0}
    assert swept(station, 60) == {"revived": 1, "opened": 0}
    assert len(station.ticks.sent) == sent + 1
    station.tick()
    assert len(station.ticks.sent) == sent + 2


def test_a_revived_tick_and_the_one_believed_lost_make_one_chain(station: Station) -> None:
    announce(station)
    believed_lost, _ = station.ticks.sent[-1]
    station.sweep(60)
    station.tick()
    sent = len(station.ticks.sent)
    station.loop.turn(believed_lost, station.now)
    assert len(station.ticks.sent) == sent


def test_an_instance_nobody_announced_gets_an_incident_that_late_words_join(
    station: Station,
) -> None:
    station.cluster.terminate(OLD)
    assert swept(station) == {"revived": 0, "opened": 1}
    assert swept(station) == {"revived": 0, "opened": 0}
    assert station.incident().transitions[0].actor == "sweep"
    # Since when its hooks run nobody has said: they are beaten at once, and once.
    station.tick()
    assert {hook for _, hook, _ in station.cluster.beats} == {"drain", "gate"}
    assert station.tick_until_quiet().incident().state is State.REPLACING
    assert len(station.cluster.beats) == 2
    station.announce(hook_event("drain"))
    assert station.incident().drain_event == hook_event("drain")
    assert station.incident().hooks == {"gate": None, "drain": "token-drain"}


def test_an_idle_instance_nobody_announced_is_let_go_without_a_drain(station: Station) -> None:
    station.cluster.join(NEW)
    station.cluster.terminate(NEW)
    station.sweep()
    station.tick(10)
    assert station.cluster.completed == [(NEW, "drain", "CONTINUE"), (NEW, "gate", "CONTINUE")]
    assert station.forwarded == []


@pytest.mark.parametrize(("state", "opened"), [(State.RELEASED, 0), (State.CANCELLED, 1)])
def test_only_who_stays_gets_another_incident(station: Station, state: State, opened: int) -> None:
    announce(station)
    station.ledger.put(replace(station.incident(), state=state))
    assert station.sweep()["opened"] == opened


def test_the_function_says_what_it_swept(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_broom", lambda: station.broom)
    expected = {"revived": 0, "opened": 0, "looked_at": 3, "filed": 0, "freed": 0}
    assert sweep.handler({}, None) == expected


def test_a_node_whose_instance_ec2_has_forgotten_gets_an_incident(station: Station) -> None:
    del station.cluster.instances[OLD]
    station.cluster.set_groups_without(OLD)
    assert station.sweep()["opened"] == 1
    assert station.incident().kind is Kind.STATE_CHANGE


def test_a_node_of_anothers_instance_is_left_alone(station: Station) -> None:
    theirs = station.cluster.instances[OLD]
    station.cluster.instances[OLD] = replace(theirs, tags={}, state="terminated")
    station.cluster.set_groups_without(OLD)
    station.cluster.place_pod(10, None)
    assert station.sweep()["opened"] == 0


def test_a_node_that_is_not_kafkas_is_left_to_eks(station: Station) -> None:
    station.cluster.change_node(OLD, pool="system")
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    assert station.sweep()["opened"] == 0


def test_without_an_answer_from_kubernetes_the_rest_is_swept(station: Station) -> None:
    station.cluster.kubernetes_answers = False
    station.cluster.terminate(OLD)
    assert station.sweep()["opened"] == 1


def test_stalled_volumes_and_planned_events_are_found_where_no_event_came(station: Station) -> None:
    station.cluster.checks = {
        OLD: StatusView(instance_id=OLD, impaired={"attached EBS": station.now - 700}),
        "i-0b": StatusView(
            instance_id="i-0b",
            events=(ScheduledEvent(event_id="e", code="x", description="", not_before=None),),
        ),
    }
    assert station.sweep()["opened"] == 2
    assert station.sweep()["opened"] == 0
    assert station.incident().kind is Kind.SICK_NODE
    assert station.incident("i-0b").kind is Kind.SCHEDULED_CHANGE


def test_a_lease_that_was_taken_for_an_incident_which_is_over_is_freed(station: Station) -> None:
    announce(station)
    station.ledger.put(replace(station.incident(), state=State.RELEASED))
    # What a slow invocation does that dies before it learns that its incident has ended.
    station.ledger.take_lease(OLD, station.now, 900)
    assert station.sweep()["freed"] == 1
    assert station.ledger.take_lease("i-0b", station.now, 900).granted


def test_a_lease_of_an_open_incident_or_of_nobody_known_is_left_alone(station: Station) -> None:
    announce(station)
    for holder in (OLD, "i-0unknown"):
        station.ledger.take_lease(holder, station.now, 900)
        assert station.sweep()["freed"] == 0
        assert station.ledger.leases() == (Lease(holder, station.now + 900),)
        station.ledger.drop_lease(holder)


@pytest.mark.parametrize("most", [1, 2, 5, 7])
def test_every_lost_instance_is_found_in_as_many_runs(station: Station, most: int) -> None:
    lost = [f"i-0lost{number}" for number in range(10)]
    for instance_id in lost:
        station.cluster.add_instance(instance_id, "us-east-1b")
        station.cluster.terminate(instance_id)
    broom = replace(station.broom, most_instances=most)
    for _ in range(-(-len(station.cluster.instances) // most)):
        assert broom.sweep(station.now)["looked_at"] <= most
    assert {i.instance_id for i in station.ledger.open_incidents()} == set(lost)
    before = dict(station.ledger._incidents)
    for _ in range(20):
        broom.sweep(station.now)
    assert station.ledger._incidents == before


@pytest.mark.parametrize("drained", [True, False])
def test_a_restored_ledger_is_told_of_what_it_forgot(station: Station, drained: bool) -> None:
    """Incident i-0a waited for a node of its own, or was drained, when the table was exchanged."""
    station.cluster.terminate(OLD)
    station.cluster.join(NEW)
    station.cluster.mark_spare(node_named(NEW), OLD)
    station.cluster.change_node(OLD, schedulable=not drained)
    for _ in range(3):
        station.sweep()
    assert [sent["page"] for sent in station.ticks.pages] == ["forgotten"]
    assert station.incident().open
    assert [lease.out_at is not None for lease in station.ledger.leases()] == [True] * drained


def test_a_broker_out_without_an_incident_calls_once_a_day(station: Station) -> None:
    station.cluster.place_pod(20, None, ready=False)
    station.cluster.change_pod(20, out_since=station.now, trouble="Unschedulable")
    swept(station, 1799)
    assert station.ticks.pages == []
    for later in (1800, 1860, 5000):
        swept(station, later)
    assert [sent["page"] for sent in station.ticks.pages] == ["left_out"]
    swept(station, 90_000)
    assert [sent["page"] for sent in station.ticks.pages] == 2 * ["left_out"]


def test_a_node_that_is_kept_for_an_incident_that_is_over_is_freed(station: Station) -> None:
    """An invocation that slept marks it after another has ended the incident."""
    station.cluster.join(NEW)
    station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    over = replace(station.incident(), state=State.CANCELLED)
    station.ledger.put(over)
    station.cluster.mark_spare(node_named(NEW), over.id)
    station.sweep()
    station.loop.turn(station.ticks.sent[-1][0], station.now)
    assert station.cluster.node_views[NEW].spare_for is None


WARNING = "EC2 Spot Instance Interruption Warning"


@pytest.fixture
def kept() -> Station:
    """A group keeps an instance, whose hook somebody abandoned before its broker could leave."""
    station = announce(Station())
    station.cluster.set_lifecycle(OLD, "Terminating:Retained")
    station.cluster.waiting_hooks.clear()
    assert station.tick_until_quiet().incident().state is State.RETAINED
    assert station.forwarded == []
    station.now += 600
    return station


def test_a_kept_instance_that_ec2_takes_within_two_minutes_is_drained(kept: Station) -> None:
    kept.announce(ec2_event(WARNING, OLD).replace("10:00:00Z", "10:10:00Z"))
    kept.tick()
    second = kept.incident(f"{OLD}.2")
    assert (second.kind, second.state) == (Kind.SPOT_INTERRUPTION, State.DRAINING)
    assert len(kept.forwarded) == 1
    kept.sweep()
    kept.tick()
    assert kept.incident(f"{OLD}.2").open


def test_a_kept_instance_that_aws_retires_is_replaced_before_that(kept: Station) -> None:
    kept.announce(health_event(due=kept.now + 3600, said_at=kept.now))
    kept.tick(3)
    kept.sweep()
    kept.tick()
    second = kept.incident(f"{OLD}.2")
    assert (second.kind, second.state) == (Kind.SCHEDULED_CHANGE, State.REPLACING)
    kept.cluster.join(NEW)
    kept.tick(4)
    assert kept.cluster.asked_to_terminate[-1][0] == OLD


@every_case("due_in, waits, called", [(600, 120, True), (3600, 1000, True), (3600, 60, False)])
def test_a_date_that_kafka_lets_pass_is_paged(due_in: float, waits: float, called: bool) -> None:
    station = Station()
    station.announce(health_event(due=station.now + due_in, said_at=station.now))
    station.cluster.join(NEW)
    station.cluster.kafka = healthy_kafka(out=20)
    station.tick_until_quiet()
    station.tick()
    station.now += waits
    assert station.tick().incident().state is State.HOLDING
    assert ("waits_long" in station.incident().pages) is called


def test_a_replacement_that_somebody_has_cordoned_is_called_so() -> None:
    station = announce(Station())
    station.cluster.join(NEW)
    station.cluster._change(f"ip-{NEW}.ec2.internal", schedulable=False)
    assert station.tick().incident().reason.endswith("is cordoned, and takes no pods.")


def test_one_machine_after_another_of_one_broker_is_no_lost_zone() -> None:
    station = announce(Station())
    station.cluster.join(NEW)
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    assert station.tick_until_quiet().incident().lost_at is not None
    del station.cluster.node_views[OLD]
    station.cluster.place_pod(10, NEW, ready=False)
    station.cluster.set_state(NEW, "terminated")
    station.cluster.set_groups_without(NEW)
    state = "EC2 Instance State-change Notification"
    station.announce(ec2_event(state, NEW, state="terminated"))
    station.tick_until_quiet()
    assert station.incident(NEW).node_id == 10
    assert station.freezes.current(station.now) == ()
