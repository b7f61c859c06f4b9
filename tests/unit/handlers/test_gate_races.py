"""Two ask the eviction gate at the same moment, and what the ledger says last is what counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.incidents.record import State
from tests.unit.handlers.asking import Door
from tests.unit.handlers.healthy import healthy_kafka

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
