"""Watching only: everything is recorded and said, and nothing of theirs is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.incidents.actions import WATCHED, WITHHELD, TerminateInGroup
from core.incidents.record import State
from handlers.incidents.act import perform
from tests.unit.handlers.announced import hook_event
from tests.unit.handlers.fakes import NEW, OLD
from tests.unit.handlers.station import Station
from tests.unit.handlers.walks import announce, drain_node, replace_machine, written_changes


@pytest.mark.parametrize("walk", [announce, replace_machine, drain_node])
def test_a_termination_is_followed_and_nothing_of_theirs_is_written(
    walk: Callable[[Station], Station],
) -> None:
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


def test_a_machine_of_ours_that_ends_in_its_hooks_was_drained_by_nobody() -> None:
    station = Station()
    drained_between_two_looks(station)
    station.tick_until_quiet()
    assert station.incident().lost_at is not None


def test_a_watched_machine_that_dies_with_its_broker_is_lost() -> None:
    station = announce(Station(level="watch"))
    station.cluster.set_state(OLD, "terminated")
    station.cluster.set_groups_without(OLD)
    station.tick_until_quiet()
    assert station.incident().lost_at is not None


def test_a_group_that_is_not_asked_to_terminate_has_refused() -> None:
    station = announce(Station(level="watch"))
    station.cluster.add_instance(NEW, "us-east-1a")
    refused = perform(
        station.incident(),
        (TerminateInGroup(decrement=False),),
        station.loop.effects,
        station.now,
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
