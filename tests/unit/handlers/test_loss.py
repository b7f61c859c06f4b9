"""A machine that is gone without a drain, and names that are no machines."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.incidents.record import State
from core.zones.incident import LostZone
from tests.unit.handlers.announced import ec2_event, health_event, hook_event
from tests.unit.handlers.fakes import NEW, OLD, FakeCluster, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.walks import critical


def end_instance(cluster: FakeCluster, instance_id: str, state: str = "stopped") -> None:
    """EC2 ends an instance; its kubelet falls silent, and its Node stays for now."""
    cluster.set_state(instance_id, state)
    cluster.change_node(instance_id, ready=False)


def move_pod(station: Station) -> None:
    """Kubernetes gives up the pod, the group replaces the instance, the pod starts there."""
    station.cluster.attached.pop(node_named(OLD), None)
    station.cluster.join(NEW)
    station.cluster.place_pod(10, NEW)
    station.cluster.kafka = healthy_kafka()


STATE_CHANGE = "EC2 Instance State-change Notification"


def lost(station: Station, state: str = "stopped") -> Station:
    end_instance(station.cluster, OLD, state)
    station.cluster.kafka = healthy_kafka(out=10)
    station.announce(ec2_event(STATE_CHANGE, OLD, state=state))
    station.tick(2)
    return station


def tainted(station: Station) -> bool:
    return station.cluster.node_views[OLD].out_of_service


@pytest.mark.parametrize("state", ["stopped", "terminated"])
def test_a_dead_machine_is_freed_and_its_broker_followed_home(station: Station, state: str) -> None:
    lost(station, state)
    assert station.incident().state is State.GATING
    assert tainted(station)
    move_pod(station)
    # The incident stays while our taint stands.
    assert station.tick(5).incident().state is State.GATING
    assert "out of service" in station.incident().reason
    del station.cluster.node_views[OLD]
    incident = station.tick().incident()
    assert incident.state is State.LOST
    assert "is back on" in incident.reason
    assert incident.pages == ()


def test_a_dead_machine_is_freed_of_what_its_pod_has_left_attached(station: Station) -> None:
    end_instance(station.cluster, OLD)
    station.announce(ec2_event(STATE_CHANGE, OLD, state="stopped"))
    assert station.tick().incident().state is State.GATING
    station.cluster.change_pod(10, node_name=None, ready=False)
    station.tick()
    assert tainted(station)


@pytest.mark.parametrize("state", ["running", "pending", "stopping", "shutting-down"])
def test_what_may_still_run_is_never_put_out_of_service(station: Station, state: str) -> None:
    station.cluster.set_state(OLD, state)
    station.announce(ec2_event(STATE_CHANGE, OLD, state="stopping"))
    for _ in range(5):
        station.tick()
        assert not tainted(station)
    assert station.incident().state in {State.OPENED, State.CANCELLED}
    assert station.incident().reason


def test_an_instance_ec2_does_not_know_is_not_put_out_of_service(station: Station) -> None:
    station.cluster.set_state(OLD, "stopping")
    station.announce(ec2_event(STATE_CHANGE, OLD, state="stopping"))
    del station.cluster.instances[OLD]
    incident = station.tick(3).incident()
    assert incident.state is State.OPENED
    assert "the instance may run" in incident.reason
    assert incident.pages == ("unknown_instance",)
    assert not tainted(station)


def restarts(station: Station) -> None:
    """Have EC2 show the machine stopped once more, and then running."""
    asked = station.cluster.instance
    answers = iter(["stopped", "running"])

    def restarted(instance_id: str) -> object:
        found = asked(instance_id)
        return found and replace(found, state=next(answers))

    station.cluster.instance = restarted


def test_a_machine_started_again_at_the_last_moment_is_spared(station: Station) -> None:
    end_instance(station.cluster, OLD)
    station.announce(ec2_event(STATE_CHANGE, OLD, state="stopped"))
    station.tick()
    restarts(station)
    station.tick()
    assert not tainted(station)
    assert station.incident().tainted_at is None


def test_a_machine_that_runs_again_gets_its_node_back(station: Station) -> None:
    lost(station)
    assert tainted(station)
    station.cluster.set_state(OLD, "running")
    station.cluster.add_node(OLD)
    station.cluster.change_node(OLD, out_of_service=True)
    station.cluster.place_pod(10, None, ready=False)
    station.tick()
    assert not tainted(station)
    station.cluster.place_pod(10, OLD, ready=False)
    # A person puts it out of service once more.
    station.cluster.change_node(OLD, out_of_service=True)
    assert station.tick().incident().state is State.GATING
    station.cluster.place_pod(10, OLD)
    station.cluster.kafka = healthy_kafka()
    assert station.tick().incident().state is State.RIDDEN_THROUGH
    assert tainted(station)


def test_what_a_deleted_node_left_attached_is_let_go(station: Station) -> None:
    end_instance(station.cluster, OLD, "shutting-down")
    station.cluster.attached[node_named(OLD)] = ("vol-10",)
    station.cluster.kafka = healthy_kafka(out=10)
    station.announce(ec2_event(STATE_CHANGE, OLD, state="shutting-down"))
    station.tick()
    # The cloud controller is quicker than the next look at EC2.
    del station.cluster.node_views[OLD]
    station.cluster.set_state(OLD, "terminated")
    assert station.tick(3).incident().state is State.GATING
    assert station.cluster.released == [node_named(OLD)]
    assert node_named(OLD) not in station.cluster.attached


def test_a_machine_started_again_at_the_last_moment_keeps_its_volumes(station: Station) -> None:
    lost(station)
    station.cluster.attached[node_named(OLD)] = ("vol-10",)
    del station.cluster.node_views[OLD]
    restarts(station)
    station.tick()
    assert station.cluster.released == []


def test_another_machine_under_the_old_name_keeps_its_volumes(station: Station) -> None:
    lost(station)
    station.cluster.attached[node_named(OLD)] = ("vol-10",)
    old = station.cluster.node_views.pop(OLD)
    namesake = replace(old, instance_id=NEW, ready=True, out_of_service=False)
    station.cluster.node_views[NEW] = namesake
    station.tick()
    assert station.cluster.released == []


def test_a_dead_instances_hooks_are_let_go_once_its_disks_are_free(station: Station) -> None:
    lost(station)
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))
    station.cluster.on_instance[OLD] = ("vol-1",)
    station.tick()
    assert station.cluster.completed == []
    station.cluster.on_instance.clear()
    station.cluster.place_pod(10, None, ready=False)
    assert station.tick().cluster.completed == []
    station.cluster.attached.pop(node_named(OLD))
    station.tick()
    assert {hook for _, hook, result in station.cluster.completed if result == "CONTINUE"} == {
        "drain",
        "gate",
    }
    assert station.forwarded == []


def test_an_instance_without_kafka_is_lost_without_a_call(station: Station) -> None:
    del station.cluster.pods[10]
    station.cluster.attached.clear()
    lost(station)
    assert station.tick(8).incident().state is State.LOST
    assert station.incident().pages == ()
    assert not tainted(station)


def test_a_drain_that_ec2_cuts_short_is_freed_as_well(station: Station) -> None:
    station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    assert station.tick().incident().state is State.DRAINING
    end_instance(station.cluster, OLD, "terminated")
    assert station.tick(2).incident().state is State.GATING
    assert tainted(station)


def zone_is_lost(station: Station, *instances: str) -> Station:
    """Every Kafka node of zone a is lost; the first two brokers' worth stand in one zone."""
    cluster = station.cluster
    for number, instance_id in enumerate(instances):
        if instance_id not in cluster.instances:
            cluster.join(instance_id)
            cluster.pods[100 + number] = replace(
                cluster.pods[10],
                name=f"orders-broker-a-{100 + number}",
                node_id=100 + number,
                node_name=node_named(instance_id),
            )
    for instance_id in instances:
        end_instance(cluster, instance_id, "stopped")
    for instance_id in instances:
        station.announce(ec2_event(STATE_CHANGE, instance_id, state="stopped"))
    return station


def all_tick(station: Station, rounds: int) -> None:
    """Give every open incident a tick, as the sweep would."""
    for _ in range(rounds):
        station.now += 120
        sent = len(station.ticks.sent)
        station.sweep()
        for body, _ in station.ticks.sent[sent:]:
            station.loop.turn(body, station.now)


def test_a_lost_zone_pages_and_stays(station: Station, caplog: pytest.LogCaptureFixture) -> None:
    instances = [OLD, *(f"i-{n:02x}" for n in range(0x10, 0x2D))]
    zone_is_lost(station, *instances)
    assert len(instances) == 30
    all_tick(station, 6)
    assert len(critical(caplog)) == 1
    assert "No Kafka node of us-east-1a is left" in critical(caplog)[0]
    assert not any(node.out_of_service for node in station.cluster.node_views.values())
    assert {i.state for i in station.ledger.open_incidents()} == {State.GATING}
    (freeze,) = station.freezes.current(station.now)
    assert (freeze.zone, freeze.source) == ("us-east-1a", "lost")


def test_a_zone_that_comes_back_is_thawed_and_its_brokers_go_on(station: Station) -> None:
    zone_is_lost(station, OLD, "i-10")
    all_tick(station, 3)
    station.cluster.join(NEW)
    station.shifts.turn(station.now)
    assert station.freezes.current(station.now) == ()
    all_tick(station, 1)
    assert tainted(station)


def test_where_health_reports_the_zone_a_broker_lost_alone_is_freed(station: Station) -> None:
    reported = LostZone("use1-az4", "us-east-1a", source="health_issue")
    station.freezes.note(reported, station.now)
    lost(station)
    assert tainted(station)


@pytest.mark.parametrize("lifecycle", ["Terminating:Wait", "Warmed:Terminating:Wait"])
@pytest.mark.parametrize("heard", [True, False])
def test_a_machine_without_kafka_that_is_stopped_in_its_hooks_is_let_go(
    station: Station, lifecycle: str, *, heard: bool
) -> None:
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.terminate(NEW)
    station.cluster.set_lifecycle(NEW, lifecycle)
    station.cluster.set_state(NEW, "stopped")
    if heard:
        station.announce(hook_event("drain", instance_id=NEW))
    station.sweep()
    station.tick()
    assert {hook for id_, hook, _ in station.cluster.completed if id_ == NEW} == {"drain", "gate"}
    assert not station.ledger.open_incidents()


def test_a_retained_warm_machine_pages(station: Station, caplog: pytest.LogCaptureFixture) -> None:
    station.cluster.add_instance(NEW, "us-east-1a", "Warmed:Terminating:Retained")
    station.sweep()
    station.tick()
    assert station.incident(NEW).state is State.RETAINED
    assert critical(caplog)


def started_again(station: Station) -> Station:
    """The broker has moved on; a person starts the machine again, and the broker returns to it."""
    lost(station)
    move_pod(station)
    del station.cluster.node_views[OLD]
    station.tick_while_open(8)
    assert station.incident().state is State.LOST
    station.now += 3600
    station.cluster.set_state(OLD, "running")
    station.cluster.add_node(OLD)
    station.cluster.place_pod(10, OLD)
    return station


def at(station: Station, body: str) -> str:
    return body.replace(
        "2026-11-20T10:00:00Z", datetime.fromtimestamp(station.now, UTC).isoformat()
    )


@pytest.mark.parametrize(
    "word",
    [
        hook_event("drain", token="token-of-a-fresh-cycle"),
        ec2_event("EC2 Spot Instance Interruption Warning", OLD),
        ec2_event("EC2 Capacity Reservation Instance Interruption Warning", OLD),
    ],
    ids=["terminated", "spot", "reservation"],
)
def test_a_lost_machine_that_was_started_again_is_heard_of(station: Station, word: str) -> None:
    started_again(station)
    station.announce(at(station, word))
    assert station.incident(f"{OLD}.2").open


def test_a_retirement_of_a_lost_machine_started_again_is_heard(station: Station) -> None:
    started_again(station)
    station.announce(health_event(said_at=station.now, due=station.now + 86_400))
    assert station.incident(f"{OLD}.2").open


def test_an_older_word_about_a_lost_machine_is_an_echo(station: Station) -> None:
    started_again(station)
    station.announce(hook_event("drain", token="token-of-a-fresh-cycle"))
    ended = at(station, ec2_event(STATE_CHANGE, OLD, state="terminated"))
    station.announce(ended.replace("event-EC2", "later-event-EC2"))
    assert station.ledger.get(f"{OLD}.2") is None


def test_a_machine_started_again_that_dies_frees_its_broker_again(station: Station) -> None:
    started_again(station)
    end_instance(station.cluster, OLD)
    station.sweep()
    assert station.incident(f"{OLD}.2").open
    body = next(b for b, _ in station.ticks.sent if f"{OLD}.2" in b)
    station.loop.turn(body, station.now)
    station.tick()
    assert tainted(station)


def test_a_machine_that_stays_dead_is_no_news_at_every_sweep(station: Station) -> None:
    lost(station)
    assert station.incident().pages == ()
    station.now += POLICY.post_condition_wait_seconds
    assert station.tick().incident().state is State.LOST
    assert set(station.incident().pages) == {"lost", "not_back"}
    for _ in range(3):
        station.sweep(60)
    assert station.ledger.get(f"{OLD}.2") is None


WARNING = "EC2 Spot Instance Interruption Warning"


def lose_machine(station: Station) -> None:
    end_instance(station.cluster, OLD, "terminated")
    station.announce(ec2_event(STATE_CHANGE, OLD, state="terminated"))
    station.tick()
    _ends(station)


def taken(station: Station) -> None:
    station.announce(ec2_event(WARNING, OLD))
    assert station.tick().incident().state is State.DRAINING
    _ends(station)
    station.tick()


def taken_before_anybody_looked(station: Station) -> None:
    station.announce(ec2_event(WARNING, OLD))
    station.tick()
    _ends(station)


def _ends(station: Station) -> None:
    end_instance(station.cluster, OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    del station.cluster.node_views[OLD]
    station.cluster.kafka = healthy_kafka(out=10)
    station.cluster.change_pod(10, node_name=None, ready=False)


def replaced(station: Station) -> None:
    """The group's next machine gets the address, the broker and its volume."""
    cluster = station.cluster
    cluster.attached.pop(node_named(OLD), None)
    cluster.add_instance(NEW, "us-east-1a")
    address = node_named(OLD)
    cluster.instances[NEW] = replace(cluster.instances[NEW], private_dns_name=address)
    cluster.add_node(NEW)
    cluster.place_pod(10, NEW)
    cluster.attached[address] = ("pvc-10",)
    cluster.kafka = healthy_kafka()


@pytest.mark.parametrize("leave", [lose_machine, taken, taken_before_anybody_looked])
def test_a_broker_on_a_namesake_is_back(station: Station, leave: Callable[[Station], None]) -> None:
    leave(station)
    replaced(station)
    incident = station.tick_while_open(8).incident()
    assert incident.state in {State.LOST, State.RELEASED}, incident.reason
    assert "is back on" in incident.reason
    assert "not_back" not in incident.pages


def test_a_late_word_of_a_dead_machine_is_not_about_its_namesake(station: Station) -> None:
    _ends(station)
    replaced(station)
    station.announce(ec2_event(STATE_CHANGE, OLD, state="terminated"))
    for _ in range(8):
        if station.ledger.open_incidents():
            station.tick()
            station.now += 10
    incident = station.incident()
    assert (incident.state, incident.node_id, incident.pages) == (State.LOST, None, ())
