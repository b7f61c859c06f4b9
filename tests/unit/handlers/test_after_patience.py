"""The hold limit does not run while somebody wants the instance kept; afterwards it begins anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.incidents.joining import Pause, hold
from core.incidents.record import State
from handlers.store.documents import Pauses
from tests.unit.handlers.fakes import OLD
from tests.unit.handlers.healthy import healthy_kafka
from tests.unit.handlers.station import POLICY, Station
from tests.unit.handlers.walks import replace_machine

LONG = POLICY.hold_limit_seconds + 600


@pytest.fixture
def station() -> Station:
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
    station: Station, wanted: Callable[[Station, float], None]
) -> None:
    wanted(station, LONG)
    turns(station, LONG)
    assert station.incident().state is State.HOLDING
    turns(station, 300)
    assert station.incident().state is State.HOLDING
    station.cluster.kafka = healthy_kafka()
    turns(station, 20, step=5)
    assert station.incident().state is State.DRAINING


def test_afterwards_the_whole_limit_counts_and_then_a_person_is_called(station: Station) -> None:
    pause(station, LONG)
    turns(station, LONG + POLICY.hold_limit_seconds + 900)
    assert station.incident().state is State.RETAINED
    assert "hold_limit" in station.incident().pages


def test_aws_does_not_insist_because_of_our_own_pause(station: Station) -> None:
    """The last in-sync replica of a partition goes only once AWS has waited for the limit."""
    view = healthy_kafka()
    alone = tuple(replace(p, replicas=(10, 20), isr=(10,), leader=10) for p in view.partitions[:1])
    station.cluster.kafka = replace(view, partitions=(*alone, *view.partitions[1:]))
    pause(station, LONG)
    turns(station, LONG + 60)
    assert station.incident().state is State.HOLDING
    assert station.forwarded == []


def test_pauses_one_after_the_other_end_at_the_hooks_own_limit(station: Station) -> None:
    for _ in range(60):
        if not station.incident().open:
            break
        pause(station, 3600)
        turns(station, 3700)
    assert station.incident().state is State.RETAINED
    assert station.now - station.incident().opened_at <= POLICY.hook_limit_seconds
    assert OLD in station.incident().reason
