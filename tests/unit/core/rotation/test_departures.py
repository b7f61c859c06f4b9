"""Which rotation a set of volumes is prepared for, and how long its brokers will be away."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.events import Kind as Announced
from core.incidents.record import Forwarding, Incident, State
from core.rotation.departures import (
    ASSUMED_AWAY_SECONDS,
    MOST_REMEMBERED,
    Absences,
    Departures,
    remembered_absences,
    rotation_of,
)
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
from core.rotation.run_record import NodeTurn, Options, Phase, Run, RunState, open_run
from core.volumes.deciding import DecisionKind
from core.volumes.sizing import MIB, Gp3
from core.volumes.views import Load, VolumeSet
from tests.unit.core.volumes.views import (
    FAST,
    HOUR,
    NOW,
    ended_modification,
    history,
    view,
    volume_set,
)
from tests.unit.policies import policy_with

PODS = ("orders-broker-a-10", "orders-broker-a-11")
RATE = 50.0 * MIB


def turn(node_id: int, **changed: object) -> NodeTurn:
    of = NodeTurn(
        node_id=node_id,
        pod=f"orders-broker-a-{node_id}",
        role="broker",
        pool="broker",
        zone="us-east-1a",
        instance_id=f"i-{node_id}",
        why="old",
    )
    return replace(of, **changed)


def run(*turns: NodeTurn, state: RunState = RunState.RUNNING) -> Run:
    return replace(open_run(turns, Options(), "ada", NOW), state=state)


def a_set(*, raised: bool = False) -> VolumeSet:
    modified = history(
        ended_modification(HOUR, FAST, kind=DecisionKind.ROTATION.value, original=Gp3(100))
    )
    volumes = [
        replace(
            view(
                FAST if raised else Gp3(100),
                load=Load(bytes_per_s_p999=RATE),
                **({"history": modified} if raised else {}),
            ),
            pod=pod,
        )
        for pod in PODS
    ]
    return volume_set(*volumes, asked=FAST if raised else Gp3(100))


def incident(pod: str, state: State, **changed: object) -> Incident:
    of = Incident(
        id=f"i-{pod}",
        instance_id=f"i-{pod}",
        kind=Announced.ROTATION,
        state=state,
        opened_at=NOW,
        announced_at=NOW,
        announcements=(),
        pod_name=pod,
    )
    return replace(of, **changed)


def test_the_runs_next_node_is_prepared_before_it_has_an_incident() -> None:
    found = rotation_of(a_set(), Departures(run=run(turn(10), turn(11), turn(20))))
    assert (found.pod, found.append_bytes_per_s, found.nodes) == (PODS[0], RATE, 2)


def test_a_set_whose_nodes_come_later_is_left_as_it_is() -> None:
    first = turn(5, zone="us-east-1a")
    assert rotation_of(a_set(), Departures(run=run(first, turn(10)))) is None


def test_controllers_go_first_and_have_nothing_to_catch_up_with() -> None:
    voter = turn(10, role="controller")
    assert rotation_of(a_set(), Departures(run=run(voter, turn(11)))) is None


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.STOPPED, RunState.DONE])
def test_a_run_that_does_not_go_on_prepares_nothing(state: RunState) -> None:
    assert rotation_of(a_set(), Departures(run=run(turn(10), state=state))) is None


def test_a_run_that_was_asked_to_pause_takes_no_next_node() -> None:
    asked = replace(run(turn(10)), pause_asked_by="ada")
    assert rotation_of(a_set(), Departures(run=asked)) is None


def test_an_incident_before_its_drain_is_prepared_for_without_a_run() -> None:
    found = rotation_of(a_set(), Departures(incidents=(incident(PODS[1], State.HOLDING),)))
    assert (found.pod, found.nodes) == (PODS[1], 1)


def test_nothing_is_prepared_for_a_date_of_awss_that_is_days_ahead() -> None:
    dated = incident(PODS[1], State.OPENED, kind=Announced.SCHEDULED_CHANGE)
    assert rotation_of(a_set(), Departures(incidents=(dated,), now=NOW)) is None
    begun = replace(dated, state=State.REPLACING)
    assert rotation_of(a_set(), Departures(incidents=(begun,), now=NOW)) is not None


@pytest.mark.parametrize("phase", [Phase.LEAVING, Phase.WAITING])
def test_a_node_counts_once_whether_in_hand_or_waiting(phase: Phase) -> None:
    leaving = turn(10, phase=phase)
    seen = Departures(incidents=(incident(PODS[0], State.OPENED),), run=run(leaving, turn(11)))
    assert rotation_of(a_set(), seen).nodes == 2


def test_a_broker_that_is_away_is_neither_raised_nor_lowered() -> None:
    seen = Departures(incidents=(incident(PODS[0], State.GATING),))
    found = rotation_of(a_set(raised=True), seen)
    assert (found.append_bytes_per_s, found.over) == (0.0, False)


def test_what_was_raised_stays_while_the_run_still_takes_a_node_of_the_set() -> None:
    between = run(turn(10, phase=Phase.DONE), turn(20, zone="us-east-1"), turn(11))
    found = rotation_of(a_set(raised=True), Departures(run=between))
    assert found.over is False


def test_what_was_raised_is_lowered_after_the_sets_last_node() -> None:
    for last, over in ((Phase.DONE, True), (Phase.RETURNING, False)):
        after = run(turn(10, phase=Phase.DONE), turn(11, phase=last), turn(20))
        found = rotation_of(a_set(raised=True), Departures(run=after))
        assert found.over is over


def remembered(*seconds: float) -> Departures:
    return Departures(run=run(turn(10)), absences=Absences(seconds=seconds))


def test_how_long_it_is_away_is_the_median_of_those_before_without_their_catching_up() -> None:
    found = rotation_of(a_set(), remembered(500.0, 400.0, 9000.0))
    # 125 MiB/s, of which 50 come in anew: three fifths of what it took was being away.
    assert found.away_seconds == pytest.approx(500.0 * 0.6)
    assert found.measured == 3


def test_where_nothing_was_measured_it_is_assumed_and_said_so() -> None:
    found = rotation_of(a_set(), remembered())
    assert (found.away_seconds, found.measured) == (ASSUMED_AWAY_SECONDS, 0)


def closed(took: float | None, state: State = State.RELEASED) -> Incident:
    back = None if took is None else NOW + took
    sent = Forwarding(first_at=NOW, last_at=NOW)
    return incident(PODS[0], state, forwarded=sent, broker_back_at=back)


@pytest.mark.parametrize(
    ("gone", "seconds"),
    [
        ([closed(240.0)], (240.0,)),
        ([closed(None)], ()),
        ([closed(240.0, State.CANCELLED)], ()),
        ([closed(-5.0)], ()),
        ([closed(float(n)) for n in range(1, 40)], tuple(map(float, range(20, 40)))),
    ],
)
def test_a_closed_incident_teaches_how_long_its_broker_was_away(
    gone: Sequence[Incident], seconds: tuple[float, ...]
) -> None:
    after = remembered_absences(Absences(), (), gone)
    assert after.seconds == seconds
    assert len(after.seconds) <= MOST_REMEMBERED
    assert Absences.from_json(after.to_json()) == after


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


def test_a_ready_machine_takes_as_long_as_a_machine_or_a_return_at_most() -> None:
    unmeasured = MoveEstimate(POLICY, None, {})
    assert unmeasured.seconds(MOVED) == REPLACEMENT_SECONDS + AWAY_SECONDS + 10
    assert unmeasured.seconds(AHEAD) == max(REPLACEMENT_SECONDS, AWAY_SECONDS + 10)


@pytest.mark.parametrize(("machine", "inferred"), [(120.0, 180.0), (220.0, 220.0)])
def test_one_that_waited_says_what_the_next_one_will_take(machine: float, inferred: float) -> None:
    waited = replace(
        MOVED, phase=Phase.DONE, began_at=100.0, machine_at=100.0 + machine, done_at=400.0
    )
    estimate = MoveEstimate(POLICY, open_run([waited], Options(), "ada", 0.0), {})
    assert (estimate.seconds(MOVED), estimate.seconds(AHEAD)) == (300.0, inferred)


def test_what_was_measured_with_a_machine_ready_counts_before_what_is_inferred() -> None:
    waited = replace(MOVED, phase=Phase.DONE, began_at=0.0, machine_at=20.0, done_at=100.0)
    ready = replace(AHEAD, phase=Phase.DONE, began_at=200.0, machine_at=150.0, done_at=250.0)
    run = open_run([waited, ready], Options(), "ada", 0.0)
    expected = {"broker": 100.0, "broker with its machine ready": 50.0}
    assert seconds_by_kind(run, stop_together=True) == expected


def test_a_broker_is_away_for_longer_while_its_machine_boots() -> None:
    estimate = MoveEstimate(POLICY, None, {10: 1e6, 20: 1e6})
    moved, stays = estimate.resync_bytes(MOVED), estimate.resync_bytes(STAYS)
    assert moved is not None
    assert stays is not None
    assert stays > moved
