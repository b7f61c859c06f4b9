"""What is observed within its deadline, and by whom who only watches."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from core.ground.errors import StillwaterError
from core.ground.fields import Unknown
from core.incidents.actions import WATCHED, WITHHELD, TerminateInGroup
from core.incidents.joining import Pause
from core.incidents.record import State
from handlers.adapters.calls import ask_within, first_of
from handlers.incidents.act import perform
from handlers.incidents.observe import observe
from handlers.store.documents import Pauses
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.failing import meanwhile
from tests.unit.handlers.fakes import NEW, OLD, group_of, node_named
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce, drain_node, replace_machine, written_changes


@pytest.fixture
def station() -> Station:
    return announce(Station())


def seen(station: Station, **changes: Any) -> Any:
    incident = replace(station.incident(), **changes)
    return observe(incident, station.loop.sources, station.now)


def test_everything_is_read_at_one_moment(station: Station) -> None:
    station.ledger.take_lease("i-0z", station.now, 60)
    station.announce(hook_event("drain", instance_id="i-0b", zone="us-east-1b"))
    found = seen(station, state=State.HOLDING)
    assert found.now == station.now
    assert found.instance.instance_id == OLD
    assert found.lifecycle_state == "Terminating:Wait"
    assert found.group.name == group_of("us-east-1a")
    assert len(found.nodes) == len(found.pods) == 3
    assert found.attachments[node_named(OLD)] == ("pvc-10",)
    assert found.kafka is not None
    assert found.lease_holder == "i-0z"
    assert found.leaving == {"i-0b"}
    assert found.blind == ""


@pytest.mark.parametrize("state", [State.OPENED, State.REPLACING])
def test_kafka_is_left_alone_where_it_decides_nothing(station: Station, state: State) -> None:
    station.cluster.kafka = None
    found = seen(station, state=state)
    assert found.kafka is None
    assert found.kafka_silence == "Kafka was not asked."


def test_a_silent_kafka_leaves_only_its_part_out(station: Station) -> None:
    station.cluster.kafka = None
    found = seen(station, state=State.GATING)
    assert found.kafka_silence == "No Kafka broker could be reached: refused."
    assert found.blind == ""
    assert found.pods


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "DescribeInstances"),
        ResponseParserError("Throttling, says a proxy's page."),
    ],
)
def test_without_aws_a_reading_is_blind(station: Station, error: Exception) -> None:
    station.cluster.instance = Mock(side_effect=error)  # type: ignore[method-assign]
    assert "Throttling" in seen(station).blind


def test_who_pauses_during_a_reading_is_heard(station: Station) -> None:
    pause = Pause("ada", "a drill", station.now)
    write = Pauses(station.records, "orders").write
    meanwhile(station.cluster, "attachments", lambda: write(pause))
    assert "a drill" in seen(station).paused


def test_a_lease_that_has_expired_has_no_holder(station: Station) -> None:
    station.ledger.take_lease("i-0z", station.now - 60, 60)
    assert seen(station).lease_holder is None


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


def test_every_answer_is_returned_as_soon_as_all_are_there() -> None:
    started = time.monotonic()
    assert ask_within(30, {1: lambda: "one", 2: lambda: "two"}) == {1: "one", 2: "two"}
    assert time.monotonic() - started < 10


def test_one_that_hangs_costs_no_other_its_answer(hanging: Callable[[], str]) -> None:
    answers = ask_within(0.2, {"hangs": hanging, "answers": lambda: "here"})
    assert answers["answers"] == "here"
    assert answers["hangs"] == Unknown("It did not answer within 0 s.")


def test_one_that_fails_says_why() -> None:
    def broken() -> str:
        raise KeyError

    answers = ask_within(30, {"fails": raising, "breaks": broken})
    assert answers == {"fails": Unknown("Nobody is at home."), "breaks": Unknown("KeyError")}


def test_questions_run_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=30)
    assert len(ask_within(30, dict.fromkeys(range(3), together.wait))) == 3


def test_the_next_is_asked_while_the_first_hangs(hanging: Callable[[], str]) -> None:
    assert first_of([hanging, lambda: "second"], stagger_seconds=0.05, seconds=30) == "second"


def test_the_next_is_asked_at_once_where_the_first_refuses() -> None:
    started = time.monotonic()
    assert first_of([raising, lambda: "second"], stagger_seconds=30, seconds=60) == "second"
    assert time.monotonic() - started < 20


def test_nobody_else_is_asked_where_the_first_answers() -> None:
    asked: list[int] = []
    first_of([lambda: "first", lambda: asked.append(2)], stagger_seconds=30, seconds=60)
    assert asked == []


def test_an_early_one_that_answers_late_is_still_heard() -> None:
    slow = threading.Event()

    def first() -> str:
        slow.wait(30)
        return "first"

    def second() -> str:
        slow.set()
        return raising()

    assert first_of([first, second], stagger_seconds=0.05, seconds=60) == "first"


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


def test_the_end_of_a_broker_that_nobody_of_ours_drained_is_told() -> None:
    station = drain_node(Station(level="watch"))
    said = [t.reason for t in station.incident().transitions]
    assert station.incident().state is State.GATING
    assert said[-2].startswith(f"{WATCHED}Node 10 may leave"), said
    assert said[-1] == "Pod orders-broker-a-10 has left ip-i-0a.ec2.internal."


def drained_between_two_looks(station: Station) -> None:
    """Their own drainer empties the machine and ends it before the next tick."""
    announce(station)
    station.cluster.join(NEW)
    station.cluster.place_pod(10, NEW)
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    del station.cluster.node_views[OLD]


def test_a_drain_that_is_quicker_than_a_look_is_no_loss() -> None:
    station = Station(level="watch")
    drained_between_two_looks(station)
    station.tick_while_open(20)
    assert station.incident().state is State.RELEASED, station.incident().reason
    assert station.incident().lost_at is None
    assert station.ticks.pages == []
    assert not any(written_changes(station))


def test_a_machine_of_ours_that_ends_in_its_hooks_was_drained_by_nobody() -> None:
    station = Station()
    drained_between_two_looks(station)
    assert station.tick_until_quiet().incident().lost_at is not None


def test_a_group_that_is_not_asked_to_terminate_has_refused() -> None:
    station = announce(Station(level="watch"))
    station.cluster.add_instance(NEW, "us-east-1a")
    refused = perform(
        station.incident(), (TerminateInGroup(decrement=False),), station.loop.effects, station.now
    )
    assert refused == WITHHELD
    assert not any(written_changes(station))


def test_a_lost_machine_is_not_tainted_by_one_who_watches() -> None:
    station = Station(level="watch")
    station.cluster.terminate(OLD)
    station.announce(hook_event("drain"))
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    station.tick_until_quiet()
    assert not any(written_changes(station))
    assert station.incident().lost_at is not None
