"""At level gate nobody is sent to drain; where no handler drains, the tick empties nodes itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.events import Kind
from core.incidents.actions import WATCHED, Reach
from core.incidents.joining import ask_release
from core.incidents.observation import BudgetView, PodOnNode
from core.incidents.record import Release, State
from core.incidents.terminating import LATE_EVICTION_SECONDS, OTHERS_SECONDS
from tests.every_case import every_case
from tests.unit.handlers.announced import RETIREMENT, ec2_event, health_event, hook_event
from tests.unit.handlers.asking import PERSON, Door, lag
from tests.unit.handlers.failing import Killed, kill, meanwhile
from tests.unit.handlers.fakes import NEW, OLD, group_of, node_named
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.test_act import paused
from tests.unit.handlers.walks import announce, replace_machine, written_changes

NAMED = frozenset({group_of("us-east-1a")})
WATCH, GATE = Reach("watch", NAMED), Reach("gate", NAMED, gated=True)
# Acting on the group of the machine, and on others than that.
ACT = Reach("act", NAMED, gated=True)
BESIDE, UNGATED = Reach("act", frozenset({"others"}), gated=True), Reach("act", frozenset())
WARNING = ec2_event("EC2 Spot Instance Interruption Warning", OLD, **{"instance-action": "stop"})


def terminated(station: Station) -> None:
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))


def warned(station: Station) -> None:
    station.cluster.instances[OLD] = replace(station.cluster.instances[OLD], market="spot")
    station.announce(WARNING)


def retired(station: Station) -> None:
    station.announce(health_event(RETIREMENT))


def leaving_door(reach: Reach, event: Callable[[Station], None]) -> Door:
    """Return the gate of a cluster in which a machine is announced to leave, and has a spare."""
    made = Door(Station(reach=reach))
    event(made.station)
    made.spare()
    made.station.tick(6)
    return made


# Whether a drain is sent, whether somebody holds the lease before anybody asks, and whether an
# eviction is let through. EC2's two minutes wait for nobody, so a broker that is warned counts as
# out at every level.
TABLE = {
    ("watch", terminated): (WATCH, False, True, False),
    ("gate", terminated): (GATE, False, False, True),
    ("act", terminated): (ACT, True, True, True),
    ("act beside", terminated): (BESIDE, False, False, True),
    ("act ungated", terminated): (UNGATED, False, True, False),
    ("watch", warned): (WATCH, False, True, True),
    ("gate", warned): (GATE, False, True, True),
    ("act", warned): (ACT, True, True, True),
    ("act beside", warned): (BESIDE, False, True, True),
    ("gate", retired): (GATE, False, False, True),
    ("act beside", retired): (BESIDE, False, False, True),
}


@every_case(
    ("event", "row"),
    [(event, row) for (_, event), row in TABLE.items()],
    ids=[f"{level}-{event.__name__}" for level, event in TABLE],
)
def test_a_level_by_what_happens(
    event: Callable[[Station], None], row: tuple[Reach, bool, bool, bool]
) -> None:
    reach, sent, leased, allowed = row
    made = leaving_door(reach, event)
    assert bool(made.station.termination_handler.sent) is sent
    assert bool(made.station.ledger.leases()) is leased
    assert made.ask().allowed is allowed
    if reach is not ACT:
        assert not any(written_changes(made.station))


def test_an_eviction_takes_the_lease_and_is_followed_to_its_end() -> None:
    made = Door(Station(reach=GATE))
    made.spare()
    assert made.ask().allowed
    assert made.station.incident().kind is Kind.EVICTION
    made.spare("i-0e", "us-east-1b")
    assert "takes a Kafka node out first" in made.ask(20, dry_run=True).reason
    made.evicted(10, NEW)
    made.tick_until(State.RIDDEN_THROUGH)
    assert made.station.ledger.leases() == ()
    assert made.ask(20).allowed
    assert not any(written_changes(made.station))


def test_their_termination_is_answered_and_never_said_to_be_only_watched() -> None:
    made = leaving_door(GATE, terminated)
    station = made.station
    assert station.incident().state is State.HOLDING
    assert made.ask(user="system:serviceaccount:kube-system:nth").allowed
    drainer = station.incident().drainer
    assert drainer.name == "system:serviceaccount:kube-system:nth"
    station.cluster.kafka = healthy_kafka(out=10)
    made.evicted(10, NEW)
    station.tick()
    station.cluster.kafka = healthy_kafka()
    incident = station.tick(8).incident()
    assert incident.state is State.GATING
    assert "the owner of its hook completes it" in incident.reason
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    made.tick_until(State.RELEASED)
    assert not any(WATCHED in each.reason for each in station.incident().transitions)
    assert station.ledger.leases() == ()
    assert not any(written_changes(station))


def test_a_broker_that_waits_for_a_place_is_not_kept_until_their_hook_ends() -> None:
    made = Door(Station(reach=GATE))
    terminated(made.station)
    assert "its drainer brings one" in made.ask().reason
    made.station.now += 121
    answer = made.ask()
    assert answer.allowed, answer.reason


def test_kafka_is_asked_all_the_same_when_their_hook_ends() -> None:
    made = Door(Station(reach=GATE))
    terminated(made.station)
    made.station.now += 121
    made.station.cluster.kafka = healthy_kafka(out=20)
    assert not made.ask(user=PERSON).allowed


def test_a_hold_keeps_whoever_drains_and_a_release_lets_by() -> None:
    made = leaving_door(GATE, retired)
    station = made.station
    held = replace(station.incident(), held_until=station.now + 600)
    station.ledger.put(held)
    assert "is held until" in made.ask().reason
    station.cluster.kafka = None
    release = Release(by="ada", at=station.now)
    station.ledger.put(replace(station.incident(), held_until=None, release=release))
    assert made.ask().allowed


OTHER = "i-0b"


@pytest.mark.parametrize("call", ["take_lease", "begin_drain"])
def test_a_lease_that_another_has_by_then_lets_nobody_through(door: Door, call: str) -> None:
    ledger = door.station.ledger

    def taken_over() -> None:
        ledger.drop_lease("i-0a")
        ledger.take_lease(OTHER, door.station.now, 900, node_id=20)

    meanwhile(ledger, call, taken_over)
    answer = door.ask()
    assert not answer.allowed
    assert OTHER in answer.reason
    assert [lease.holder for lease in ledger.leases()] == [OTHER]
    assert door.station.incident().forwarded is None


def test_a_yes_takes_one_reading_of_kafka_and_that_with_the_lease_in_hand(door: Door) -> None:
    asked = counted(door)
    assert door.ask().allowed
    assert asked == [["i-0a"]]


def test_whom_kafka_refused_is_asked_about_first_and_leaves_the_lease_to_others(door: Door) -> None:
    """One that asks every five seconds would else take the lease from the others as often."""
    lag(door)
    asked = counted(door)
    answers = [door.ask() for _ in range(3)]
    assert not any(answer.allowed for answer in answers)
    assert asked == [["i-0a"], [], []]
    assert door.station.ledger.leases() == ()
    door.station.now += 61
    assert not door.ask().allowed
    assert asked[3:] == [["i-0a"]]


def counted(door: Door) -> list[list[str]]:
    """Note who holds the lease at each reading of Kafka."""
    cluster, holders = door.station.cluster, list[list[str]]()
    read = cluster.read

    def noting(about: Any = None) -> Any:
        holders.append([lease.holder for lease in door.station.ledger.leases()])
        return read(about)

    door.station.cluster.read = noting
    return holders


@pytest.fixture
def door() -> Door:
    made = Door()
    made.spare()
    return made


NODE = node_named(OLD)
POD = "orders-broker-a-10"
EVICTING = replace(POLICY, drain_route="evict", drain_life_seconds=400)
OPERATOR = PodOnNode(namespace="strimzi", name="operator", uid="1")
AGENT = PodOnNode(namespace="kube-system", name="agent", uid="2", stays=True)


BARE = PodOnNode(namespace="default", name="debug", uid="3", owned=False)


def evicting(*beside: PodOnNode, **changes: object) -> Station:
    made = Station(policy=replace(EVICTING, **changes))
    made.cluster.beside[NODE] = list(beside)
    return made


def idle(made: Station) -> Station:
    """A machine on which no pod of Kafka's runs stands in its hooks."""
    made.cluster.change_pod(10, node_name=node_named("i-0b"))
    made.cluster.attached.pop(NODE)
    return announce(made)


def leave(made: Station) -> None:
    """The evicted pod ends, and starts again on the replacement."""
    made.cluster.kafka = healthy_kafka(out=10)
    made.cluster.place_pod(10, NEW, ready=False)
    made.tick_until_quiet()


def come_back(made: Station) -> None:
    made.cluster.place_pod(10, NEW)
    made.cluster.kafka = healthy_kafka()
    made.tick(6)


def test_the_tick_cordons_evicts_and_completes_the_hooks_by_itself() -> None:
    made = replace_machine(evicting(AGENT))
    assert made.cluster.cordons == {NODE: OLD}
    assert made.cluster.evicted == [POD]
    assert made.termination_handler.sent == []
    leave(made)
    assert made.incident().state is State.GATING
    assert made.cluster.completed == []
    come_back(made)
    assert made.incident().state is State.RELEASED
    assert {hook for _, hook, result in made.cluster.completed if result == "CONTINUE"} == {
        *("drain", "gate")
    }
    assert made.ledger.leases() == ()


def test_nothing_is_evicted_before_a_replacement_is_there() -> None:
    made = announce(evicting(OPERATOR))
    assert (made.cluster.evicted, made.cluster.cordons) == ([], {})


def test_everything_else_leaves_before_kafka() -> None:
    made = replace_machine(evicting(OPERATOR, AGENT))
    assert made.cluster.evicted == ["operator"]
    assert "First to leave: strimzi/operator." in made.incident().reason
    made.tick()
    assert (made.cluster.evicted, made.cluster.cordons) == (["operator", POD], {NODE: OLD})


def test_a_pod_that_its_budget_keeps_holds_kafka_up_for_a_while_and_is_never_forced() -> None:
    made = evicting(OPERATOR)
    made.cluster.refusals["operator"] = "Cannot evict pod: it would violate its budget."
    replace_machine(made)
    made.tick()
    assert made.cluster.evicted == []
    made.now += OTHERS_SECONDS
    made.tick()
    assert made.cluster.evicted == [POD]
    leave(made)
    come_back(made)
    # The broker is back, and the machine waits for the pod that may not leave yet.
    assert (made.incident().state, made.cluster.completed) == (State.GATING, [])
    assert "strimzi/operator" in made.incident().reason
    made.now += LATE_EVICTION_SECONDS
    made.tick()
    assert "drain_stuck" in {page["page"] for page in made.ticks.pages}
    del made.cluster.refusals["operator"]
    made.tick(3)
    assert made.cluster.evicted == [POD, "operator"]
    assert made.incident().state is State.RELEASED


def test_a_refused_eviction_of_kafkas_pod_is_asked_again_at_the_next_tick() -> None:
    made = evicting()
    made.cluster.refusals[POD] = "Cannot evict pod: it would violate its budget."
    made.cluster.disruption_budgets = (
        BudgetView(name="orders-kafka", pods=frozenset({POD}), disruptions_allowed=0),
    )
    replace_machine(made)
    assert made.incident().state is State.DRAINING
    assert "PodDisruptionBudget orders-kafka allows no disruption" in made.incident().reason
    del made.cluster.refusals[POD]
    made.tick()
    assert made.cluster.evicted == [POD]


def test_kafkas_consent_counts_at_the_moment_of_the_eviction() -> None:
    made = evicting(OPERATOR)
    replace_machine(made)
    made.cluster.kafka = healthy_kafka(out=20)
    made.tick()
    assert made.cluster.evicted == ["operator"]
    assert f"{POD} is still on {NODE}." in made.incident().reason
    made.cluster.kafka = healthy_kafka()
    made.tick()
    assert made.cluster.evicted == ["operator", POD]


@every_case(
    "deed, said",
    [
        (paused, "Paused by ada"),
        (lambda made: made.cluster.place_pod(20, OLD), "orders-broker-b-20 of the same Kafka"),
    ],
)
def test_what_happens_meanwhile_keeps_kafkas_pod_where_it_is(deed: Any, said: str) -> None:
    made = replace_machine(evicting(OPERATOR))
    deed(made)
    made.tick()
    assert made.cluster.evicted == ["operator"]
    assert said in made.incident().reason


def test_a_drain_that_cannot_end_is_kept_and_its_node_takes_pods_again() -> None:
    made = evicting()
    made.cluster.refusals[POD] = "Cannot evict pod: it would violate its budget."
    replace_machine(made)
    made.now += EVICTING.hold_limit_seconds - EVICTING.drain_life_seconds / 2
    del made.cluster.refusals[POD]
    made.tick()
    assert made.cluster.evicted == []  # what is evicted so late could outlive the decision to keep
    made.now += EVICTING.drain_life_seconds
    assert made.tick().incident().state is State.RETAINED
    assert {result for _, _, result in made.cluster.completed} == {"ABANDON"}
    assert made.cluster.cordons == {}


def test_a_pod_without_owner_is_named_and_left_to_end_with_its_machine() -> None:
    made = replace_machine(evicting(BARE))
    (page,) = [p for p in made.ticks.pages if p["page"] == "pods_without_owner"]
    assert "default/debug" in page["reason"]
    leave(made)
    come_back(made)
    assert made.cluster.evicted == [POD]
    assert made.incident().state is State.RELEASED


def test_a_two_minute_warning_evicts_everything_at_once() -> None:
    made = evicting(OPERATOR, AGENT, BARE)
    made.announce(ec2_event("EC2 Spot Instance Interruption Warning", OLD))
    made.tick(2)
    assert set(made.cluster.evicted) == {"operator", POD}


def test_a_node_without_kafka_is_emptied_and_both_hooks_completed() -> None:
    made = idle(evicting(OPERATOR))
    made.tick_while_open(12)
    assert made.cluster.evicted == ["operator"]
    assert made.incident().state is State.RELEASED
    assert made.ledger.leases() == ()


def test_a_node_without_kafka_waits_for_a_pod_that_may_not_leave_or_for_a_person() -> None:
    made = evicting(OPERATOR)
    made.cluster.refusals["operator"] = "Cannot evict pod: it would violate its budget."
    idle(made)
    made.tick(12)
    assert (made.incident().state, made.cluster.completed) == (State.DRAINING, [])
    made.ledger.put(ask_release(made.incident(), "ada", made.now))
    made.sweep(60)
    made.tick(2)
    assert {hook for _, hook, _ in made.cluster.completed} == {"drain", "gate"}


def test_a_node_without_kafka_takes_no_new_pod_before_its_hooks_are_completed() -> None:
    made = idle(evicting(AGENT))
    while made.incident().state is not State.DRAINING or not made.cluster.cordons:
        assert made.cluster.completed == []
        made.tick()
    assert made.cluster.completed == []
    made.tick()
    assert {hook for _, hook, _ in made.cluster.completed} == {"drain", "gate"}


def test_a_tick_that_died_after_evicting_does_no_harm() -> None:
    made = evicting()
    announce(made)
    made.cluster.join(NEW)
    while made.incident().state is not State.DRAINING:
        made.tick()
    body, delay = made.ticks.sent[-1]
    kill(2, [(made.ledger, "put")], after=False)
    with pytest.raises(Killed):
        made.loop.turn(body, made.now + delay)
    assert made.cluster.evicted == [POD]
    made.now += 60
    made.loop.turn(body, made.now)
    assert made.cluster.evicted == [POD]
    assert made.incident().state is State.DRAINING


def changed(made: Station) -> None:
    """Another invocation takes the incident over."""
    made.ledger.put(made.ledger.get(OLD))


def let_go(made: Station) -> None:
    """The lease is lost: its table was restored to an older moment, and another has it."""
    made.ledger.drop_lease(OLD, ended=True)
    made.ledger.take_lease("i-0b", made.now, 900, node_id=20)


@pytest.mark.parametrize(
    "deed", [paused, changed, let_go], ids=["a pause", "another invocation", "no lease"]
)
def test_what_comes_before_the_eviction_keeps_kafka(deed: Callable[[Station], object]) -> None:
    made = replace_machine(evicting(OPERATOR))
    assert made.cluster.evicted == ["operator"]
    meanwhile(made.ledger, "take_lease", lambda: deed(made), after=True)
    made.tick()
    assert made.cluster.evicted == ["operator"]
