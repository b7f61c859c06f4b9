"""How long a node takes in place: by phases that are stated, then by nodes in place alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.rotation.estimate import (
    AWAY_SECONDS,
    BEFORE_STOP_SECONDS,
    BOOT_SECONDS,
    REPLACEMENT_SECONDS,
    RESTART_SECONDS,
    SWAP_SECONDS,
    MoveEstimate,
    medians,
    seconds_by_kind,
)
from core.rotation.run_record import NodeTurn, Options, Phase, Run, open_run
from tests.unit.policies import policy_with

POLICY = policy_with(post_condition_hold_seconds=10)
MOVED = NodeTurn(
    node_id=10, pod="p", role="broker", pool="broker", zone="a", instance_id="i-0a", why="image"
)
STAYS = replace(MOVED, node_id=20, image_id="ami-1")


def run_of(**took: float) -> Run:
    turns = {"moved": MOVED, "stays": STAYS}
    done = (
        replace(turns[name], phase=Phase.DONE, began_at=100.0, done_at=100.0 + seconds)
        for name, seconds in took.items()
    )
    return open_run(done, Options(), "ada", 0.0)


def test_before_any_run_a_node_in_place_takes_its_stated_phases() -> None:
    phases = BEFORE_STOP_SECONDS + SWAP_SECONDS + BOOT_SECONDS + RESTART_SECONDS
    assert MoveEstimate(POLICY, None, {}).seconds(STAYS) == phases + 10


def test_a_run_measures_nodes_in_place_apart_from_those_that_moved() -> None:
    earlier = run_of(moved=300.0, stays=120.0)
    assert medians(earlier, stop_together=False) == {"broker": 300.0, "broker in place": 120.0}
    estimate = MoveEstimate(POLICY, earlier, {})
    assert (estimate.seconds(MOVED), estimate.seconds(STAYS)) == (300.0, 120.0)


def test_a_run_of_moved_nodes_alone_says_nothing_of_a_boot() -> None:
    unmeasured = MoveEstimate(POLICY, None, {}).seconds(STAYS)
    assert MoveEstimate(POLICY, run_of(moved=300.0), {}).seconds(STAYS) == unmeasured


AHEAD = replace(MOVED, node_id=30, ahead=True)


def test_whose_machine_is_ready_takes_as_long_as_a_machine_or_a_return_whichever_is_longer() -> (
    None
):
    unmeasured = MoveEstimate(POLICY, None, {})
    assert unmeasured.seconds(MOVED) == REPLACEMENT_SECONDS + AWAY_SECONDS + 10
    assert unmeasured.seconds(AHEAD) == max(REPLACEMENT_SECONDS, AWAY_SECONDS + 10)


@pytest.mark.parametrize(("machine", "inferred"), [(120.0, 180.0), (220.0, 220.0)])
def test_one_node_that_waited_for_its_machine_says_what_the_next_will_take(
    machine: float, inferred: float
) -> None:
    waited = replace(
        MOVED, phase=Phase.DONE, began_at=100.0, machine_at=100.0 + machine, done_at=400.0
    )
    estimate = MoveEstimate(POLICY, open_run([waited], Options(), "ada", 0.0), {})
    assert (estimate.seconds(MOVED), estimate.seconds(AHEAD)) == (300.0, inferred)


def test_what_was_measured_with_a_machine_ready_counts_before_what_is_inferred() -> None:
    waited = replace(MOVED, phase=Phase.DONE, began_at=0.0, machine_at=20.0, done_at=100.0)
    ready = replace(AHEAD, phase=Phase.DONE, began_at=200.0, machine_at=150.0, done_at=250.0)
    run = open_run([waited, ready], Options(), "ada", 0.0)
    assert seconds_by_kind(run, stop_together=True) == {
        "broker": 100.0,
        "broker with its machine ready": 50.0,
    }


def test_a_broker_is_away_for_longer_while_its_machine_boots() -> None:
    estimate = MoveEstimate(POLICY, None, {10: 1e6, 20: 1e6})
    moved, stays = estimate.resync_bytes(MOVED), estimate.resync_bytes(STAYS)
    assert moved is not None
    assert stays is not None
    assert stays > moved
