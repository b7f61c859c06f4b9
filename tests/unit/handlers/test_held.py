"""Hold and forward where something goes wrong, and what follows when patience ends."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.incidents.joining import Pause, ask_release, hold, ignore
from core.incidents.observation import BudgetView
from core.incidents.record import LaunchFailure, State
from core.incidents.terminating import MOST_FORWARDS
from core.zones.incident import LostZone
from handlers.store.documents import Pauses
from tests.unit.handlers.announced import health_event, hook_event
from tests.unit.handlers.failing import meanwhile
from tests.unit.handlers.fakes import NEW, OLD, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, START, Station
from tests.unit.handlers.walks import announce, replace_machine

POD = "orders-broker-a-10"


def asked(station: Station, change: object) -> None:
    """A person changes the incident; the loop looks at it."""
    station.ledger.put(change)
    station.sweep(60)


def test_a_drain_without_answer_is_sent_again_and_then_told(station: Station) -> None:
    replace_machine(station)
    for number in range(MOST_FORWARDS + 2):
        station.now += POLICY.forward_again_seconds
        station.tick()
        assert bool(station.incident().pages) is (number > 1)
    assert station.forwarded == [station.forwarded[0]] * MOST_FORWARDS
    assert station.incident().pages == ("drain_stuck",)
    assert station.incident().state is State.DRAINING


def test_a_broker_that_is_stopping_is_not_hurried(station: Station) -> None:
    replace_machine(station)
    station.cluster.change_pod(10, stopping=True)
    station.now += 3 * POLICY.forward_again_seconds
    station.tick()
    assert len(station.forwarded) == 1
    assert station.incident().pages == ()


def test_a_budget_that_refuses_the_eviction_is_named(station: Station) -> None:
    replace_machine(station)
    refusing = BudgetView(name="orders-kafka", pods=frozenset({POD}), disruptions_allowed=0)
    other = BudgetView(name="connect", pods=frozenset({"x"}), disruptions_allowed=0)
    station.cluster.disruption_budgets = (other, refusing)
    station.tick()
    assert "PodDisruptionBudget orders-kafka allows no disruption" in station.incident().reason
    assert station.incident().pages == ()
    station.now += POLICY.forward_again_seconds / 2
    assert station.tick().incident().pages == ("budget:orders-kafka",)
    station.cluster.disruption_budgets = ()
    station.tick()
    assert "drains" in station.incident().reason


def test_the_gate_waits_for_ec2_to_detach_the_volumes(station: Station) -> None:
    replace_machine(station)
    station.cluster.place_pod(10, NEW)
    station.cluster.on_instance[OLD] = ("vol-1",)
    assert station.tick(6).incident().reason == "EC2 has not yet detached vol-1 from i-0a."
    assert (OLD, "gate", "CONTINUE") not in station.cluster.completed
    station.cluster.on_instance.clear()
    assert station.tick(4).incident().state is State.RELEASED


def test_the_gate_waits_for_the_node_the_broker_runs_on(station: Station) -> None:
    replace_machine(station)
    station.cluster.place_pod(10, NEW)
    station.cluster.add_node(NEW, csi_ready=False)
    station.tick(5)
    assert "is not Ready with its EBS driver" in station.incident().reason


def test_a_policy_may_be_content_with_a_ready_pod() -> None:
    station = Station(policy=replace(POLICY, gate="ready"))
    replace_machine(station)
    station.cluster.place_pod(10, NEW)
    station.cluster.kafka = healthy_kafka(out=10)
    assert station.tick(3).incident().state is State.RELEASED


def test_an_instance_that_never_joined_goes_without_a_wait(station: Station) -> None:
    station.cluster.add_instance("i-0x", "us-east-1a")
    station.cluster.terminate("i-0x")
    station.announce(hook_event("drain", instance_id="i-0x"))
    station.tick_until_quiet()
    assert station.incident("i-0x").state is State.GATING
    # Noted all the same: a Kafka pod may start there before the drain is over.
    assert [lease.node_id for lease in station.ledger.leases()] == [None]


def test_a_person_who_holds_what_was_released_is_heard_until_then(station: Station) -> None:
    station.announce(health_event())
    station.ledger.put(ask_release(station.incident(), "ann", station.now))
    asked(station, hold(station.incident(), station.now + 7200, "bob", station.now))
    station.tick()
    assert "is held until" in station.incident().reason
    assert station.cluster.asked_to_terminate == []
    station.now += 7200
    station.tick(2)
    assert station.cluster.asked_to_terminate != []


def test_a_persons_word_during_a_turn_is_looked_at_at_once(station: Station) -> None:
    def release() -> None:
        station.ledger.put(ask_release(station.incident(), "ann", station.now))

    station.announce(health_event())
    station.tick(3)
    meanwhile(station.cluster, "attachments", release)
    station.tick()
    assert station.ticks.sent[-1][1] == 0.0


def test_a_long_wait_never_outlasts_a_heartbeat(station: Station) -> None:
    announce(station)
    failure = LaunchFailure(since=START - 3600, cause="none")
    incident = replace(station.incident(), launch_failure=failure)
    asked(station, incident)
    assert station.tick().incident().pages == ("no_capacity",)
    assert station.ticks.sent[-1][1] <= POLICY.heartbeat_timeout_seconds / 4


def test_a_frozen_zone_keeps_a_broker_and_says_why(station: Station) -> None:
    shift = LostZone("use1-az4", "us-east-1a", source="autoshift")
    station.freezes.note(shift, station.now)
    announce(station)
    station.cluster.join(NEW)
    incident = station.tick(4).incident()
    assert incident.state is State.HOLDING
    assert incident.reason.startswith("Zone us-east-1a is frozen since 2026-11-20 10:00 UTC (auto")
    over = replace(shift, over=True, occurred_at=station.now)
    station.freezes.note(over, station.now)
    assert station.tick_until_quiet().incident().state is State.DRAINING


def test_an_ignored_termination_is_kept_not_killed(station: Station) -> None:
    announce(station)
    asked(station, ignore(station.incident(), "ada", "ours", station.now))
    assert station.tick().incident().state is State.RETAINED
    assert {r for _, _, r in station.cluster.completed} == {"ABANDON"}


def test_a_release_waits_for_another_broker_that_is_out(station: Station) -> None:
    station.ledger.take_lease("i-other", station.now, 9_999)
    announce(station)
    asked(station, ask_release(station.incident(), "ada", station.now))
    assert station.tick(2).incident().state is State.HOLDING
    assert station.forwarded == []


def test_a_release_ends_a_drain_that_is_stuck(station: Station) -> None:
    replace_machine(station)
    asked(station, ask_release(station.incident(), "ada", station.now))
    assert station.tick().incident().state is State.RELEASED
    assert (OLD, "gate", "CONTINUE") in station.cluster.completed


def test_a_retained_instance_is_released_through_new_hooks(station: Station) -> None:
    announce(station)
    station.now += POLICY.hold_limit_seconds + 1
    retained = station.tick().incident()
    assert retained.state is State.RETAINED
    station.cluster.set_lifecycle(OLD, "Terminating:Retained")
    asked(station, ask_release(retained, "ada", station.now))
    station.tick()
    assert station.cluster.terminated == [(OLD, False)]
    station.announce(hook_event("drain", token="of the new round"))
    station.tick(6)
    assert station.incident(f"{OLD}.2").state is State.DRAINING
    assert len(station.forwarded) == 1


def test_a_spare_that_waits_for_one_is_no_replacement_for_another(station: Station) -> None:
    replace_machine(station)
    assert station.cluster.node_views[NEW].spare_for == OLD
    second = "i-0e"
    station.cluster.join(second)
    station.cluster.pods[11] = replace(
        station.cluster.pods[10],
        name="orders-broker-a-11",
        node_id=11,
        node_name=node_named(second),
    )
    station.cluster.terminate(second)
    station.announce(hook_event("drain", instance_id=second))
    station.tick_until_quiet()
    assert station.incident(second).state is State.REPLACING


LONG = POLICY.hold_limit_seconds + 600


@pytest.fixture
def waiting() -> Station:
    """Return a broker that waits for its turn: Kafka lets nobody go."""
    found = Station()
    found.cluster.kafka = healthy_kafka(out=20)
    return replace_machine(found)


def turns(station: Station, seconds: float, step: float = 300.0) -> None:
    until = station.now + seconds
    while station.now < until:
        station.now += min(step, until - station.now)
        incident = station.incident()
        if not incident.open:
            return
        station.reception.wake(incident)
        station.loop.turn(station.ticks.sent[-1][0], station.now)


def pause(station: Station, seconds: float) -> None:
    until = Pause("ann", "maintenance", station.now, station.now + seconds)
    Pauses(station.records, "orders").write(until)


def held(station: Station, seconds: float) -> None:
    wanted = hold(station.incident(), station.now + seconds, "ann", station.now)
    station.ledger.put(wanted)


def frozen(station: Station, seconds: float) -> None:
    until = station.now + seconds
    station.freezes.freeze("use1-az4", "us-east-1a", station.now, until, "ann", "")


@pytest.mark.parametrize(
    "wanted", [pause, held, frozen], ids=["a pause", "a person's hold", "a frozen zone"]
)
def test_what_was_kept_for_longer_than_the_limit_goes_on_afterwards(
    waiting: Station, wanted: Callable[[Station, float], None]
) -> None:
    wanted(waiting, LONG)
    turns(waiting, LONG)
    assert waiting.incident().state is State.HOLDING
    turns(waiting, 300)
    assert waiting.incident().state is State.HOLDING
    waiting.cluster.kafka = healthy_kafka()
    turns(waiting, 20, step=5)
    assert waiting.incident().state is State.DRAINING


def test_afterwards_the_whole_limit_counts_and_then_a_person_is_called(waiting: Station) -> None:
    pause(waiting, LONG)
    turns(waiting, LONG + POLICY.hold_limit_seconds + 900)
    assert waiting.incident().state is State.RETAINED
    assert "hold_limit" in waiting.incident().pages


def test_aws_does_not_insist_because_of_our_own_pause(waiting: Station) -> None:
    """The last in-sync replica of a partition goes only once AWS has waited for the limit."""
    view = healthy_kafka()
    alone = tuple(replace(p, replicas=(10, 20), isr=(10,), leader=10) for p in view.partitions[:1])
    waiting.cluster.kafka = replace(view, partitions=(*alone, *view.partitions[1:]))
    pause(waiting, LONG)
    turns(waiting, LONG + 60)
    assert waiting.incident().state is State.HOLDING
    assert waiting.forwarded == []


def test_pauses_one_after_the_other_end_at_the_hooks_own_limit(waiting: Station) -> None:
    for _ in range(60):
        if not waiting.incident().open:
            break
        pause(waiting, 3600)
        turns(waiting, 3700)
    assert waiting.incident().state is State.RETAINED
    assert waiting.now - waiting.incident().opened_at <= POLICY.hook_limit_seconds
    assert OLD in waiting.incident().reason
