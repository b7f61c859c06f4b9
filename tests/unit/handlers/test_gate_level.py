"""At level gate nobody is sent to drain; two may ask at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.events import Kind
from core.incidents.actions import WATCHED, Reach
from core.incidents.record import Release, State
from tests.every_case import every_case
from tests.unit.handlers.announced import RETIREMENT, ec2_event, health_event, hook_event
from tests.unit.handlers.asking import PERSON, Door
from tests.unit.handlers.fakes import NEW, OLD, group_of
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import written_changes

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
    for _ in range(6):
        made.station.tick()
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
    assert drainer is not None
    assert drainer.name == "system:serviceaccount:kube-system:nth"
    station.cluster.kafka = healthy_kafka(out=10)
    made.evicted(10, NEW)
    station.tick()
    station.cluster.kafka = healthy_kafka()
    for _ in range(8):
        station.tick()
    incident = station.incident()
    assert incident.state is State.GATING
    assert "whoever made its hook completes it" in incident.reason
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    made.tick_until(State.RELEASED)
    assert not any(WATCHED in each.reason for each in station.incident().transitions)
    assert station.ledger.leases() == ()
    assert not any(written_changes(station))


def test_a_broker_that_waits_for_a_place_is_not_kept_until_their_hook_ends() -> None:
    made = Door(Station(reach=GATE))
    terminated(made.station)
    assert "whoever drains it brings one" in made.ask().reason
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


def first(door: Door, call: str, meanwhile: Callable[[], object]) -> None:
    """Let something happen directly before a call to the ledger."""
    real = getattr(door.station.ledger, call)

    def slow(*arguments: Any, **named: Any) -> Any:
        setattr(door.station.ledger, call, real)
        meanwhile()
        return real(*arguments, **named)

    setattr(door.station.ledger, call, slow)


@pytest.mark.parametrize("call", ["take_lease", "begin_drain"])
def test_a_lease_that_another_has_by_then_lets_nobody_through(door: Door, call: str) -> None:
    ledger = door.station.ledger

    def taken_over() -> None:
        ledger.drop_lease("i-0a")
        ledger.take_lease(OTHER, door.station.now, 900, node_id=20)

    first(door, call, taken_over)
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
    lagging(door)
    asked = counted(door)
    answers = [door.ask() for _ in range(3)]
    assert not any(answer.allowed for answer in answers)
    assert asked == [["i-0a"], [], []]
    assert door.station.ledger.leases() == ()
    door.station.now += 61
    assert not door.ask().allowed
    assert asked[3:] == [["i-0a"]]


def test_a_refusal_with_the_lease_in_hand_wakes_the_incident(door: Door) -> None:
    lagging(door)
    assert not door.ask().allowed
    door.station.cluster.kafka = healthy_kafka()
    door.tick_until(State.HOLDING)
    assert door.ask().allowed


def test_a_rehearsal_asks_kafka_and_takes_no_lease(door: Door) -> None:
    asked = counted(door)
    assert door.ask(dry_run=True).allowed
    assert asked == [[]]


def lagging(door: Door) -> None:
    view = healthy_kafka()
    behind = tuple(replace(p, isr=(10, 30)) for p in view.partitions)
    door.station.cluster.kafka = replace(view, partitions=behind)


def counted(door: Door) -> list[list[str]]:
    """Note who holds the lease at each reading of Kafka."""
    cluster, holders = door.station.cluster, list[list[str]]()
    read = cluster.read

    def noting(about: Any = None) -> Any:
        holders.append([lease.holder for lease in door.station.ledger.leases()])
        return read(about)

    door.station.cluster.read = noting  # type: ignore[method-assign]
    return holders


@pytest.fixture
def door() -> Door:
    made = Door()
    made.spare()
    return made
