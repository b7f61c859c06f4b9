"""One event walks through every room; several wait and go in turn, tick by tick."""

import json
from dataclasses import replace

import pytest
from botocore.exceptions import EndpointConnectionError

from core.availability.lease import valid_leases
from core.incidents.actions import HookResult
from core.incidents.record import State
from handlers import tick
from tests.every_case import every_case
from tests.unit.handlers.announced import ec2_event, health_event, hook_event
from tests.unit.handlers.failing import Killed, fail, kill, meanwhile
from tests.unit.handlers.fakes import NEW, OLD, group_of, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, START, Station
from tests.unit.handlers.test_never_two_out import SECOND, second_waits, turns
from tests.unit.handlers.walks import announce, drain_node, replace_machine
from tests.unit.policies import policy_with

pytestmark = pytest.mark.usefixtures("quiet")


def test_a_tick_delivered_twice_is_taken_once(station: Station) -> None:
    announce(station)
    body, _ = station.ticks.sent[-1]
    station.tick()
    count, version = len(station.ticks.sent), station.incident().version
    station.loop.turn(body, station.now)
    assert len(station.ticks.sent) == count
    assert station.incident().version == version


def released(station: Station) -> None:
    station.ledger.put(replace(station.incident(), state=State.RELEASED))


def test_who_is_over_sends_no_tick_and_gives_its_lease_back(station: Station) -> None:
    announce(station)
    released(station)
    station.ledger.take_lease(OLD, station.now, 900)
    count = len(station.ticks.sent)
    station.tick()
    assert len(station.ticks.sent) == count
    assert not valid_leases(station.ledger.leases(), station.now)


def test_a_tick_of_an_unknown_incident_ends_there(station: Station) -> None:
    station.loop.turn(json.dumps({"incident_id": "i-0x", "version": 1}), station.now)
    assert station.ticks.sent == []


def test_a_stale_tick_carries_on_once_nobody_else_does(station: Station) -> None:
    announce(station)
    body, _ = station.ticks.sent[-1]
    station.ledger.put(replace(station.incident(), ticked_at=station.now))  # claimed, then died
    station.loop.turn(body, station.now + 10)
    assert station.incident().ticked_at == station.now
    station.loop.turn(body, station.now + 51)
    assert station.incident().ticked_at == station.now + 51


def test_a_failed_action_is_decided_anew(station: Station) -> None:
    announce(station)
    station.cluster.join(NEW)
    failing = EndpointConnectionError(endpoint_url="http://sqs")
    fail(station.termination_handler, "send", failing, times=1)
    assert station.tick_until_quiet().incident().state is State.HOLDING
    assert station.incident().forwarded is None
    assert station.tick_until_quiet().incident().state is State.DRAINING
    assert len(station.forwarded) == 1


def test_a_drain_is_not_forwarded_when_its_lease_is_refused_after_all(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(station)
    station.cluster.join(NEW)
    while not station.ledger.leases():
        station.tick()
    read = station.cluster.read

    def stolen(about: object) -> object:
        station.ledger.drop_lease(OLD)
        station.ledger.take_lease("i-0other", station.now, 900)
        return read()

    lease = station.ledger.leases()
    monkeypatch.setattr(station.cluster, "read", stolen)
    monkeypatch.setattr(station.ledger, "leases", lambda: lease)  # read before it was stolen
    station.tick()
    assert station.forwarded == []
    assert station.incident().state is State.HOLDING


def test_a_lease_taken_for_an_incident_that_has_ended_meanwhile_is_given_back(
    station: Station,
) -> None:
    announce(station)
    station.cluster.join(NEW)
    meanwhile(station.ledger, "take_lease", lambda: released(station))
    while station.incident().open:
        station.tick()
    assert not valid_leases(station.ledger.leases(), station.now)


def test_a_warning_during_a_tick_counts(station: Station) -> None:
    announce(station)
    warning = ec2_event("EC2 Spot Instance Interruption Warning", OLD)
    meanwhile(station.cluster, "nodes", lambda: station.announce(warning))
    station.tick()
    assert station.ticks.sent[-1][1] == 0
    assert station.incident().urgent
    station.tick()
    assert len(station.forwarded) == 1


def test_an_invocation_believed_dead_does_not_undo_what_its_successor_did(
    station: Station,
) -> None:
    drain_node(station)
    station.cluster.place_pod(10, NEW)

    def overtake() -> None:
        station.ledger.put(replace(station.incident(), state=State.RETAINED))

    meanwhile(station.cluster, "nodes", overtake)
    count = len(station.ticks.sent)
    assert station.tick().incident().state is State.RETAINED
    assert len(station.ticks.sent) == count


def test_a_lost_drain_announcement_is_replaced_by_one_like_it(station: Station) -> None:
    station.cluster.terminate(OLD)
    station.announce(hook_event("gate"))
    station.cluster.join(NEW)
    station.tick_until_quiet()
    (forwarded,) = station.forwarded
    assert forwarded["EC2InstanceId"] == OLD
    assert forwarded["LifecycleHookName"] == "drain"
    assert forwarded["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"


def surviving(station: Station, step) -> None:
    """Run a step; a death is followed, a minute later, by the sweep and what it sends."""
    try:
        step()
    except Killed:
        station.sweep(60)


@every_case("after", [False, True])
@every_case("at", range(1, 37))
def test_dying_at_any_effect_is_survived(at: int, *, after: bool) -> None:
    station = Station()
    ledger, cluster = station.ledger, station.cluster
    calls = [(ledger, name) for name in ("put", "take_lease", "drop_lease")]
    calls += [(queue, "send") for queue in (station.ticks, station.termination_handler)]
    calls += [(cluster, name) for name in ("heartbeat", "complete_hook")]
    kill(at, calls, after=after)
    station.cluster.terminate(OLD)
    for body in (hook_event("drain"), hook_event("gate")):
        surviving(station, lambda body=body: station.announce(body))
    station.cluster.join(NEW)
    for _ in range(30):
        if station.forwarded and NEW not in {p.node_name for p in station.cluster.pods.values()}:
            station.cluster.place_pod(10, NEW)
            station.cluster.waiting_hooks.discard((OLD, "drain"))
        if station.ledger.get(OLD) is not None and not station.incident().open:
            break
        surviving(station, station.tick)
    assert station.incident().state is State.RELEASED
    assert (OLD, "gate", HookResult.CONTINUE.value) in station.cluster.completed
    assert not station.ledger.leases()
    # A crash between sending and recording is the one case that may send the same event again.
    assert len({body for body, _ in station.termination_handler.sent}) == 1


def test_batches_report_the_failed_ticks(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_machine(station)
    monkeypatch.setattr(tick, "_loop", lambda: station.loop)
    monkeypatch.setattr(tick.time, "time", lambda: station.now + 6)
    records = [
        {"messageId": f"m{n}", "body": body, "eventSource": "aws:sqs", "attributes": {}}
        for n, body in enumerate((station.ticks.sent[-1][0], "not a tick"))
    ]
    answer = tick.handler({"Records": records}, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert station.incident().ticked_at == station.now + 6


def test_a_terminated_broker_walks_to_released(station: Station) -> None:
    drain_node(station)
    station.cluster.place_pod(10, NEW)
    station.cluster.kafka = healthy_kafka()
    while station.incident().open:
        station.tick()
    incident = station.incident()
    assert [t.state for t in incident.transitions] == [
        State.OPENED,
        State.REPLACING,
        State.HOLDING,
        State.DRAINING,
        State.GATING,
        State.RELEASED,
    ]
    assert station.cluster.completed == [(OLD, "gate", "CONTINUE")]
    assert len(station.forwarded) == 1
    assert incident.replacement.node == node_named(NEW)
    assert incident.replacement.ready_at <= incident.forwarded.first_at
    assert incident.broker_back_at is not None
    assert station.now - incident.broker_back_at >= POLICY.post_condition_hold_seconds
    assert not station.ledger.leases()


def test_nothing_is_drained_before_the_replacement_is_ready(station: Station) -> None:
    announce(station)
    station.cluster.add_instance(NEW, "us-east-1a", "Pending")
    station.cluster.add_node(NEW, ready=False)
    assert station.tick(5).incident().state is State.REPLACING
    assert "is not Ready yet" in station.incident().reason
    station.cluster.add_node(NEW, ready=True, csi_ready=False)
    assert station.tick().incident().state is State.REPLACING
    assert "is not registered with its EBS driver yet" in station.incident().reason
    assert station.forwarded == []


def test_a_second_incident_waits_for_the_first_to_release(station: Station) -> None:
    replace_machine(station)
    station.cluster.terminate("i-0b")
    station.announce(hook_event("drain", instance_id="i-0b", zone="us-east-1b"))
    station.cluster.join("i-0e", "us-east-1b")
    station.tick(4)
    second = station.incident("i-0b")
    assert second.state is State.HOLDING
    assert second.reason == "Incident i-0a takes a Kafka node out first."
    assert len(station.forwarded) == 1


def test_a_broker_waits_while_another_partition_copy_lags(station: Station) -> None:
    lagging = healthy_kafka(out=30)
    station.cluster.kafka = replace(lagging, fenced=frozenset())
    replace_machine(station)
    assert station.incident().state is State.HOLDING
    assert "partition t-0" in station.incident().reason
    assert not station.ledger.leases()
    station.cluster.kafka = healthy_kafka()
    assert station.tick_until_quiet().incident().state is State.DRAINING


def test_the_gate_stays_shut_until_volumes_are_free_and_the_broker_holds(station: Station) -> None:
    drain_node(station)
    station.cluster.place_pod(10, NEW)
    station.cluster.attached[node_named(OLD)] = ("pvc-10",)
    station.tick()
    assert "pvc-10 is still attached" in station.incident().reason
    del station.cluster.attached[node_named(OLD)]
    station.tick()
    assert "still fenced" in station.incident().reason
    station.cluster.kafka = healthy_kafka()
    station.tick()
    assert "must stay" in station.incident().reason
    station.cluster.kafka = healthy_kafka(out=10)  # strimzi#11736: fenced again after a moment
    assert station.tick().incident().broker_back_at is None
    assert station.cluster.completed == []


@every_case("answers", [True, False])
def test_both_hooks_are_kept_waiting_though_kubernetes_is_silent(*, answers: bool) -> None:
    station = announce(Station())
    assert station.cluster.beats == []
    station.cluster.kubernetes_answers = answers
    station.now = START + POLICY.heartbeat_timeout_seconds / 2
    station.tick()
    assert station.cluster.beats == [(OLD, "drain", "token-drain"), (OLD, "gate", "token-gate")]
    assert station.incident().state is State.REPLACING
    assert ("did not answer" in station.incident().reason) is not answers
    station.tick()
    assert len(station.cluster.beats) == 2


def test_an_instance_without_kafka_goes_straight_through(station: Station) -> None:
    station.cluster.join(NEW)
    station.cluster.terminate(NEW)
    station.announce(hook_event("drain", instance_id=NEW))
    station.tick()
    assert station.forwarded == [], "it is looked at once more"
    station.tick(8)
    assert len(station.forwarded) == 1
    assert station.incident(NEW).state is State.GATING
    assert station.cluster.completed == [(NEW, "gate", "CONTINUE")]
    station.cluster.set_lifecycle(NEW, "Terminating:Proceed")
    station.tick()
    assert station.incident(NEW).state is State.RELEASED


@pytest.mark.parametrize("dies", [False, True])
def test_a_spot_warning_overtakes_a_termination_that_waits(station: Station, *, dies: bool) -> None:
    station.cluster.kafka = healthy_kafka(out=20)
    replace_machine(station)
    assert station.incident().state is State.HOLDING
    station.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    if dies:
        # Its drain stands in the lease, and was not sent.
        kill(1, [(station.termination_handler, "send")], after=False)
        surviving(station, station.tick)
    station.tick()
    # The drain hook's own event goes out, so that the handler completes that hook.
    assert station.termination_handler.sent == [(hook_event("drain"), 0.0)]


def test_a_scale_in_restores_the_desired_capacity_once(station: Station) -> None:
    name = group_of("us-east-1a")
    station.cluster.change_group(name, desired=0)
    announce(station)
    assert station.cluster.desired_calls == [(name, 1)]
    station.tick(2)
    assert station.cluster.desired_calls == [(name, 1)]
    assert station.incident().pages == ("scale_in",)
    assert station.forwarded == []


def test_a_scale_in_of_a_group_that_may_not_grow_is_told(station: Station) -> None:
    station.cluster.change_group(group_of("us-east-1a"), desired=0, maximum=0)
    assert "its maximum size forbids one" in announce(station).incident().reason
    assert station.cluster.desired_calls == []


def test_a_scale_in_lets_the_broker_go_where_the_policy_says_so() -> None:
    station = Station(policy=replace(POLICY, scale_in="release"))
    name = group_of("us-east-1a")
    station.cluster.change_group(name, desired=0)
    announce(station)
    assert station.incident().state is State.DRAINING
    station.cluster.place_pod(10, None, ready=False)
    station.cluster.attached.pop(node_named(OLD))
    station.tick_until_quiet()
    assert station.tick().incident().state is State.RELEASED


def test_the_direct_route_forwards_nothing_and_follows() -> None:
    station = Station(policy=policy_with(drain_route="direct", post_condition_hold_seconds=0))
    announce(station)
    assert station.incident().state is State.DRAINING
    assert station.forwarded == []
    station.cluster.join(NEW)
    station.cluster.place_pod(10, NEW)
    station.tick_until_quiet()
    assert station.tick().incident().state is State.RELEASED


def test_a_termination_the_group_does_not_know_is_cancelled(station: Station) -> None:
    station.announce(hook_event("drain"))
    station.tick_until_quiet()
    station.now += 61
    assert station.tick().incident().state is State.CANCELLED


THIRD, THIRD_SPARE = "i-0c", "i-0f"


@pytest.fixture
def queueing() -> Station:
    """One is out, a second waits for its turn, and a third for longer than ten minutes less."""
    station = second_waits(drain_node(Station()))
    station.now += 600
    turns(station, SECOND, 1)
    station.cluster.join(THIRD_SPARE, "us-east-1c")
    return station


def third_leaves(station: Station) -> None:
    station.cluster.terminate(THIRD)
    station.announce(hook_event("drain", instance_id=THIRD, zone="us-east-1c"))
    turns(station, THIRD, 4)
    assert station.incident(THIRD).state is State.HOLDING
    turns(station, SECOND, 1)


def first_is_back(station: Station) -> None:
    station.cluster.kafka = healthy_kafka()
    station.cluster.place_pod(10, "i-0d")
    turns(station, OLD, 8, seconds=1.5)
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    turns(station, OLD, 4, seconds=0.1)
    assert not station.incident().open
    assert station.ledger.leases() == ()


def holders(station: Station) -> list[str]:
    return [lease.holder for lease in station.ledger.leases()]


def test_who_waits_for_longer_is_not_passed_by_an_earlier_tick(queueing: Station) -> None:
    third_leaves(queueing)
    first_is_back(queueing)
    turns(queueing, THIRD, 2, seconds=1.0)
    assert holders(queueing) == []
    assert f"Incident {SECOND} has less time to wait" in queueing.incident(THIRD).reason
    turns(queueing, SECOND, 1)
    assert holders(queueing) == [SECOND]


def test_one_that_nobody_looks_at_any_more_lets_the_others_pass(queueing: Station) -> None:
    third_leaves(queueing)
    first_is_back(queueing)
    queueing.now += 60
    turns(queueing, THIRD, 1)
    assert holders(queueing) == [THIRD]


def test_one_that_kafka_keeps_lets_the_others_pass(queueing: Station) -> None:
    third_leaves(queueing)
    first_is_back(queueing)
    queueing.cluster.kafka = healthy_kafka(out=10)
    turns(queueing, SECOND, 1)
    assert queueing.incident(SECOND).turn_due_at is None
    queueing.cluster.kafka = healthy_kafka()
    turns(queueing, THIRD, 1)
    assert holders(queueing) == [THIRD]


def test_a_machine_that_aws_takes_soon_passes_those_with_time(queueing: Station) -> None:
    due = queueing.now + 3000
    body = health_event(due=due, said_at=queueing.now).replace(OLD, THIRD)
    queueing.announce(body)
    turns(queueing, THIRD, 4)
    assert queueing.incident(THIRD).state is State.HOLDING, queueing.incident(THIRD).reason
    first_is_back(queueing)
    turns(queueing, SECOND, 1, seconds=1.0)
    assert f"Incident {THIRD} has less time to wait" in queueing.incident(SECOND).reason
    turns(queueing, THIRD, 1)
    assert holders(queueing) == [THIRD]
