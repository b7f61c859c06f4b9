"""How long a node takes in place: by phases that are stated, then by nodes in place alone."""

from __future__ import annotations

from dataclasses import replace

from core.rotation.estimate import (
    BEFORE_STOP_SECONDS,
    BOOT_SECONDS,
    RESTART_SECONDS,
    SWAP_SECONDS,
    Estimate,
    medians,
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
    assert Estimate(POLICY, None, {}).seconds(STAYS) == phases + 10


def test_a_run_measures_nodes_in_place_apart_from_those_that_moved() -> None:
    earlier = run_of(moved=300.0, stays=120.0)
    assert medians(earlier, stop_together=False) == {"broker": 300.0, "broker in place": 120.0}
    estimate = Estimate(POLICY, earlier, {})
    assert (estimate.seconds(MOVED), estimate.seconds(STAYS)) == (300.0, 120.0)


def test_a_run_of_moved_nodes_alone_says_nothing_of_a_boot() -> None:
    unmeasured = Estimate(POLICY, None, {}).seconds(STAYS)
    assert Estimate(POLICY, run_of(moved=300.0), {}).seconds(STAYS) == unmeasured


def test_a_broker_is_away_for_longer_while_its_machine_boots() -> None:
    estimate = Estimate(POLICY, None, {10: 1e6, 20: 1e6})
    moved, stays = estimate.resync_bytes(MOVED), estimate.resync_bytes(STAYS)
    assert moved is not None
    assert stays is not None
    assert stays > moved
