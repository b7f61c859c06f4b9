"""The shipped functions, explored within bounds: every single fault, and walks from fixed seeds."""

import random
from collections.abc import Iterator

import pytest

from cli.incidents import breaks
from core import timing
from core.cluster.operation import Timings
from tests.effort import EFFORT
from tests.explorer import agenda, operator
from tests.explorer.canonical import state_of
from tests.explorer.choices import Choice, drawn, is_seldom, passes, take_step
from tests.explorer.limits import HEARTBEAT, LATE, SWEEP, TIMINGS
from tests.explorer.rest_rules import nobody_called
from tests.explorer.scenarios import (
    BEHIND_THE_GATE,
    DIRECT,
    ELSEWHERE,
    IN_PLACE,
    ONE,
    PARTIES,
    REFILLED,
    RETIRED,
    SCENARIOS,
    TWO,
    WITHOUT_A_HANDLER,
    Scenario,
)
from tests.explorer.search import Exhaustion, Found, Tally, play, random_walk, shrink
from tests.explorer.stage import Stage, explored
from tests.explorer.story import told
from tests.explorer.world import START, ZONES

# A quick run tries a few of each; a long one has the time.
WALKS = EFFORT if EFFORT == 1 else 5 * EFFORT


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with explored() as wired:
        yield wired


def stories(stage: Stage, tally: Tally) -> str:
    found = (f for _, f in sorted(tally.found.items()))
    return "\n\n".join(told(stage, shrink(stage, each)) for each in found)


class _Described:
    timings = Timings(**TIMINGS)


def test_the_clocks_of_explored_worlds_are_a_valid_description() -> None:
    assert [v.sentence for v in timing.check(_Described())] == []
    # And the sweep, which comes less often here than in an account, finds a lost tick in time.
    assert 4 * (LATE + SWEEP) < HEARTBEAT


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_the_usual_course_ends_and_breaks_nothing(stage: Stage, scenario: Scenario) -> None:
    world, _ = play(stage, scenario, {})
    assert world.broken == ()
    assert not any(incident.open for incident in world.incidents.values())
    # What was recorded of it keeps the rules that `incident verify` holds histories to.
    assert breaks(world.incidents.values()) == []


def test_a_walk_is_repeated_by_its_seed(stage: Stage) -> None:
    tallies = (Tally(), Tally())
    for tally in tallies:
        random_walk(stage, ONE, 7, tally, odds=0.2)
    assert tallies[0].states == tallies[1].states
    assert tallies[0].steps == tallies[1].steps


def test_a_copy_of_a_world_is_the_same_state_and_its_own(stage: Stage) -> None:
    world, _ = play(stage, ONE, {})
    twin = world.copy()
    assert state_of(twin) == state_of(world)
    stage.step(twin)
    twin.incidents.clear()
    assert world.incidents


def test_no_step_changes_the_world_before_it_whose_moments_are_shared(stage: Stage) -> None:
    world, dice = PARTIES[0].world(), random.Random(3)  # noqa: S311 - to be repeated
    for _ in range(120):
        following = agenda.due(world)
        if following is None:
            break
        choice = drawn(dice, world, following[1])
        worlds = (world, *world.past)
        before = [each.copy() for each in worlds]
        changed, _ = take_step(stage, world, (choice,) if choice is not None else ())
        assert [*worlds] == before
        world = changed
    assert world.past


def usual(choice: Choice) -> bool:
    """Leave to longer runs what walks meet often enough."""
    return EFFORT > 1 or not is_seldom(choice)


def test_one_leaver_with_any_single_fault_breaks_no_rule(stage: Stage) -> None:
    tally = Tally()
    assert Exhaustion(stage, ONE, tally, wanted=usual).run()
    assert stories(stage, tally) == ""
    assert len(tally.states) > 5_000


def test_walks_of_many_faults_break_no_rule(stage: Stage) -> None:
    tally = Tally()
    for seed in range(3 * WALKS):
        random_walk(stage, SCENARIOS[seed % len(SCENARIOS)], seed, tally)
    assert stories(stage, tally) == ""


@pytest.mark.parametrize("scenario", ELSEWHERE, ids=lambda s: s.name)
def test_outages_and_the_automation_of_others_break_no_rule(
    stage: Stage, scenario: Scenario
) -> None:
    tally = Tally()
    for seed in range(WALKS):
        random_walk(stage, scenario, seed, tally, odds=0.1, wanted=is_seldom)
    assert stories(stage, tally) == ""


def test_faults_that_pass_within_minutes_are_nobodys_matter(stage: Stage) -> None:
    tally = Tally()
    for seed in range(3 * WALKS):
        scenario = (ONE, TWO, PARTIES[0], *REFILLED, DIRECT[0])[seed % 6]
        random_walk(stage, scenario, seed, tally, wanted=passes, judge=nobody_called)
    assert stories(stage, tally) == ""


@pytest.mark.parametrize(
    "scenario", [*BEHIND_THE_GATE, *WITHOUT_A_HANDLER, *IN_PLACE, *PARTIES], ids=lambda s: s.name
)
def test_whoever_else_drains_or_leaves_together_breaks_no_rule(
    stage: Stage, scenario: Scenario
) -> None:
    tally = Tally()
    for seed in range(WALKS):
        random_walk(stage, scenario, seed, tally)
    assert stories(stage, tally) == ""


@pytest.mark.parametrize(
    ("scenario", "out", "stopped"),
    [(ONE, 1, 1), *zip(PARTIES, (1, 2, 2, 2, 2, 2), (1, 1, 2, 2, 2, 2), strict=True)],
    ids=lambda each: getattr(each, "name", ""),
)
def test_a_party_is_out_together_and_stops_together_where_the_budgets_know_it(
    stage: Stage, scenario: Scenario, out: int, stopped: int
) -> None:
    """Its brokers are of one zone, for as long as any of them is out."""
    world, most_out, most_stopped = scenario.world(), 0, 0
    while world.now < START + 10_000:
        world, _ = take_step(stage, world, ())
        gone = [*world.out()]
        assert len({ZONES[b] for b in gone}) <= 1
        most_out = max(most_out, len(gone))
        unready = sum(not pod.ready for pod in world.pods.values())
        most_stopped = max(most_stopped, unready)
    assert (most_out, most_stopped) == (out, stopped)


def test_one_change_by_hand_or_by_aws_of_what_is_scheduled_breaks_no_rule(stage: Stage) -> None:
    """Kinds that broke a rule once: two brokers out, and a retirement that was forgotten."""
    kinds = {"lease deleted", "scheduled", "called off"}
    tally = Tally()
    assert Exhaustion(stage, RETIRED, tally, wanted=lambda choice: choice[0] in kinds).run()
    assert stories(stage, tally) == ""
    assert tally.worlds > 50


@pytest.mark.parametrize("scenario", [ONE, TWO], ids=lambda s: s.name)
def test_strimzis_operator_may_choose_any_pod_in_any_second(
    stage: Stage, scenario: Scenario
) -> None:
    """Two are out by two hands only where it chooses after our last look, and Kafka keeps both."""
    tally = Tally()
    assert Exhaustion(stage, scenario, tally, wanted=lambda c: c[0] in operator.KINDS).run()
    assert stories(stage, tally) == ""
    assert tally.two_hands > 0


def test_a_story_names_who_did_what_and_the_line_that_decided(stage: Stage) -> None:
    """A rule that nothing keeps: the broker of one leaver is never stopped."""
    walk = {0: (("restart", "20"),), 3: (("skew", "120"),)}
    found = Found(ONE, walk, ("two_out: made up",), 4)
    story = told(stage, found)
    assert "*** restart 20 ***" in story
    assert "λ tick: i-0a replacing" in story
    assert "[core/incidents/" in story
