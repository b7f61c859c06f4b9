"""Who begins next in a run: the first of the order that may; whoever may not is tried again."""

from __future__ import annotations

from dataclasses import replace

from core.incidents.actions import Page
from core.rotation.estimate import RunObservation
from core.rotation.progress import OVERTAKEN_AFTER_SECONDS, next_step
from core.rotation.run_record import Begin, Options, Phase, Run, RunState, RunStep, open_run
from core.views import ClusterView, PartitionView, VoterView
from tests.every_case import every_case
from tests.unit.core.availability.clusters import around, turn_of
from tests.unit.policies import policy_with

THREE = (10, 20, 30)
DEADLINE = 120.0
LATER = 1.0 + OVERTAKEN_AFTER_SECONDS


def whole() -> ClusterView:
    return ClusterView(
        brokers=frozenset(THREE),
        fenced=frozenset(),
        voters=(VoterView(1, 0.0),),
        quorum_leader=1,
        partitions=(PartitionView("t", 0, 10, THREE, THREE, 1),),
    )


def a_run(**changes: object) -> Run:
    turns = [turn_of(node_id) for node_id in THREE]
    return open_run(turns, Options(deadline_seconds=DEADLINE, **changes), "ada", 0.0)  # type: ignore[arg-type]


def seen_at(now: float, *, busy: tuple[int, ...] = ()) -> RunObservation:
    """Return a reading in which the groups have some nodes' instances on their way already."""
    seen = around(whole(), now=now)
    (group,) = seen.groups
    taken = {f"i-{n}": "Terminating:Wait" for n in busy}
    return replace(seen, groups=(replace(group, instances={**group.instances, **taken}),))


def begun(step: RunStep) -> list[int]:
    return [action.node_id for action in step.actions if isinstance(action, Begin)]


def refused(*node_ids: int) -> Run:
    """Return a run at which these were refused at its first turn."""
    return next_step(a_run(), seen_at(1.0, busy=node_ids), policy_with()).run


def test_one_that_may_not_go_for_a_moment_keeps_its_place() -> None:
    step = next_step(refused(10), seen_at(LATER - 1.0, busy=(10,)), policy_with())
    assert begun(step) == []
    assert step.run.reason.startswith("Node 10 waits.")
    assert begun(next_step(step.run, seen_at(LATER), policy_with())) == [10]


def test_one_that_may_not_go_does_not_stop_those_behind_it() -> None:
    step = next_step(refused(10), seen_at(LATER, busy=(10,)), policy_with())
    assert begun(step) == [20]
    waits = step.run.turn_of(10)
    assert waits.phase is Phase.WAITING
    assert "i-10 of node 10 in Terminating:Wait" in waits.reason
    assert any("Node 10 waits" in note.text for note in step.run.notes)


def test_the_one_that_was_passed_over_is_tried_again_first() -> None:
    run = next_step(refused(10), seen_at(LATER, busy=(10,)), policy_with()).run
    back = run.replace_turn(replace(run.turn_of(20), phase=Phase.DONE))
    assert begun(next_step(back, seen_at(500.0), policy_with())) == [10]
    # Refused all the while, it holds nobody up for another minute.
    assert begun(next_step(back, seen_at(500.0, busy=(10,)), policy_with())) == [30]


def _all_refused(until: float) -> RunStep:
    run = refused(*THREE)
    for now in (LATER, until):
        step = next_step(run, seen_at(now, busy=THREE), policy_with())
        run = step.run
    return step


def test_where_nobody_may_go_the_run_says_who_waits_for_what() -> None:
    step = _all_refused(LATER + OVERTAKEN_AFTER_SECONDS)
    assert begun(step) == []
    for node_id in THREE:
        assert f"Node {node_id} waits." in step.run.reason
        assert f"of node {node_id} in Terminating:Wait" in step.run.turn_of(node_id).reason


def test_what_all_wait_for_is_said_once() -> None:
    run = a_run()
    for now in (1.0, LATER, LATER + OVERTAKEN_AFTER_SECONDS):
        seen = replace(seen_at(now), kafka=replace(whole(), reassigning=("t-0",)))
        run = next_step(run, seen, policy_with()).run
    assert run.reason.startswith("Nodes 10, 20, 30 wait. 1 partitions are being reassigned")


def test_a_deadline_counts_while_nobody_goes_and_the_first_is_who_it_stopped_at() -> None:
    run = refused(*THREE)
    assert [turn.since for turn in run.turns] == [1.0, None, None]
    step = _all_refused(2.0 + DEADLINE)
    assert step.run.state is RunState.STOPPED
    assert [a.key for a in step.actions if isinstance(a, Page)] == ["blocked:10"]
    assert "Node 20 waits." in step.run.reason


def test_while_somebody_goes_nobodys_deadline_counts() -> None:
    policy = policy_with()
    run = refused(*THREE)
    for now in (LATER, LATER + OVERTAKEN_AFTER_SECONDS):
        run = next_step(run, seen_at(now, busy=(10, 20)), policy).run
    assert run.turn_of(30).phase is Phase.LEAVING
    back = run.replace_turn(replace(run.turn_of(30), phase=Phase.DONE))
    step = next_step(back, seen_at(5_000.0, busy=(10, 20)), policy)
    assert step.run.state is RunState.RUNNING


def test_a_node_behind_whose_pod_is_missing_for_now_is_not_taken_off_the_run() -> None:
    run = a_run()
    for now in (1.0, LATER, LATER + OVERTAKEN_AFTER_SECONDS):
        seen = seen_at(now)
        seen = replace(seen, pods=tuple(pod for pod in seen.pods if pod.node_id != 30))
        step = next_step(run, seen, policy_with())
        run = step.run
        assert begun(step) == []
    assert step.run.turn_of(30).phase is Phase.WAITING
    assert "Node 30 is part of the cluster and has no pod" in step.run.reason


@every_case(
    ("behind", "begins"),
    [
        ((0,), True),
        ((0, 2, 0), False),
        ((0, 2, 0, 0, 0), True),
        ((2,), False),  # Whether it grows or shrinks, one reading does not tell.
        ((5, 3, 2), False),
        ((5, 2, 2, 2), True),
    ],
)
def test_a_run_begins_once_the_number_of_partitions_out_of_sync_has_settled(
    behind: tuple[int, ...], begins: bool
) -> None:
    run = a_run()
    for now, count in enumerate(behind):
        # Replicas of somebody else's brokers, so that nothing but their number speaks against it.
        lag = tuple(PartitionView("u", n, 40, (40, 50), (40,), 1) for n in range(count))
        view = whole()
        view = replace(view, brokers=view.brokers | {40, 50}, partitions=view.partitions + lag)
        step = next_step(run, around(view, now=float(now)), policy_with())
        run = replace(run, out_of_sync=step.run.out_of_sync)
    assert bool(begun(step)) is begins, step.run.reason
    assert begins or "partitions out of sync is not the same" in step.run.reason
