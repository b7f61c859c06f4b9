"""What is observed within its deadline, and by whom who only watches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.ground.errors import StillwaterError
from core.incidents.actions import WITHHELD, TerminateInGroup
from core.incidents.record import State
from handlers.adapters.calls import first_of
from handlers.incidents.act import perform
from handlers.incidents.observe import observe
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce, drain_node, replace_machine, written_changes


@pytest.fixture
def station() -> Station:
    return announce(Station())


def seen(station: Station, **changes: Any) -> Any:
    incident = replace(station.incident(), **changes)
    return observe(incident, station.loop.sources, station.now)


@pytest.mark.parametrize("state", [State.OPENED, State.REPLACING])
def test_kafka_is_left_alone_where_it_decides_nothing(station: Station, state: State) -> None:
    station.cluster.kafka = None
    found = seen(station, state=state)
    assert found.kafka is None
    assert found.kafka_silence == "Kafka was not asked."


def test_without_aws_a_reading_is_blind(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    def throttled(instance_id: str) -> None:
        raise ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "DescribeInstances")

    monkeypatch.setattr(station.cluster, "instance", throttled)
    assert "Throttling" in seen(station).blind


@pytest.fixture
def hanging() -> Iterator[Callable[[], str]]:
    """A question that is answered only when the test is over."""
    over = threading.Event()

    def question() -> str:
        over.wait(60)
        return "late"

    yield question
    over.set()


def raising() -> str:
    raise StillwaterError("Nobody is at home.")


def test_the_next_is_asked_while_the_first_hangs(hanging: Callable[[], str]) -> None:
    assert first_of([hanging, lambda: "second"], stagger_seconds=0.05, seconds=30) == "second"


def test_without_any_answer_all_refusals_are_told(hanging: Callable[[], str]) -> None:
    with pytest.raises(StillwaterError, match=r"Nobody is at home\. No other source answered"):
        first_of([raising, hanging], stagger_seconds=0.05, seconds=0.2)
    with pytest.raises(StillwaterError, match=r"at home\. Nobody is at home\.$"):
        first_of([raising, raising], stagger_seconds=0.05, seconds=30)


@pytest.mark.parametrize("walk", [announce, replace_machine, drain_node])
def test_a_termination_is_followed_and_nothing_written(walk: Callable[[Station], Station]) -> None:
    station = walk(Station(level="watch"))
    assert not any(written_changes(station))
    assert station.incident().transitions[-1].state is station.incident().state


def drained_between_two_looks(station: Station) -> None:
    """Their own drainer empties the machine and ends it before the next tick."""
    announce(station)
    station.cluster.add_instance(NEW, "us-east-1a")
    station.cluster.add_node(NEW)
    station.cluster.place_pod(10, NEW)
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    del station.cluster.node_views[OLD]


def test_a_drain_that_is_quicker_than_a_look_is_no_loss() -> None:
    station = Station(level="watch")
    drained_between_two_looks(station)
    for _ in range(20):
        if not station.incident().open:
            break
        station.tick()
    assert station.incident().state is State.RELEASED, station.incident().reason
    assert station.incident().lost_at is None
    assert station.ticks.pages == []
    assert not any(written_changes(station))


def test_a_group_that_is_not_asked_to_terminate_has_refused() -> None:
    station = announce(Station(level="watch"))
    station.cluster.add_instance(NEW, "us-east-1a")
    refused = perform(
        station.incident(), (TerminateInGroup(decrement=False),), station.loop.effects, station.now
    )
    assert refused == WITHHELD
    assert not any(written_changes(station))
