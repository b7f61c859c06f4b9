"""Looks for a walk that breaks a rule: every one within bounds, or at random from a seed.

`Exhaustion` follows the usual course of a scenario and, before each of its steps, every choice
(or every two), each to the end; a state it has met with as many choices left is not followed again.
`random_walk` chooses more often and without bounds. Both leave the world alone in the end and ask
whether everything is over, or somebody knows. `shrink` makes a violating walk shorter.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from core.incidents.sweep import LEFT_OUT_SECONDS
from tests.explorer import agenda, nature, rest_rules
from tests.explorer.canonical import state_of
from tests.explorer.choices import Choice, Walk, call_faults, drawn, take_step, world_choices
from tests.explorer.limits import HOLD_LIMIT, HOOK_LIMIT, SWEEP
from tests.explorer.scenarios import Scenario
from tests.explorer.stage import Stage
from tests.explorer.world import START, Key, World

# By then everything that waits has been ended by a limit of its own, or has paged.
REST_SECONDS = 3 * HOLD_LIMIT
MOST_STEPS = 4000
FOUND = LEFT_OUT_SECONDS + SWEEP
assert REST_SECONDS < HOOK_LIMIT


@dataclass(slots=True)
class Found:
    """A walk that broke a rule, and which."""

    scenario: Scenario
    walk: Walk
    broken: tuple[str, ...]
    steps: int
    seed: int | None = None

    @property
    def rule(self) -> str:
        return self.broken[0].partition(":")[0]


@dataclass(slots=True)
class Tally:
    """What a search has seen."""

    states: set[int] = field(default_factory=set)
    steps: int = 0
    worlds: int = 0
    simulated_seconds: float = 0.0
    two_hands: int = 0  # times that Strimzi's operator and we took a broker each
    coverage: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)

    def note(self, found: Found) -> None:
        """Keep the shortest violation of each rule."""
        known = self.found.get(found.rule)
        if known is None or len(found.walk) < len(known.walk):
            self.found[found.rule] = found

    def cover(self, world: World, choice: Choice, actor: str) -> None:
        """Count a choice met in the states that incidents were in."""
        fault = choice[2].partition(":")[0] if choice[0] == "call" else choice[0]
        open_states = {i.state.value for i in world.incidents.values() if i.open} or {"none"}
        for state in open_states:
            self.coverage[state, fault, actor] += 1


def quiet(world: World) -> bool:
    """Say whether nothing is left to happen but the sweep looking around."""
    away = any(world.is_down(service) for service in world.down)
    if away or any(incident.open for incident in world.incidents.values()):
        return False
    # Who is out for long is found by the sweep, though nothing else happens.
    found = (world.now - pod.out_since > FOUND for pod in world.pods.values() if pod.out_since)
    return all(found) and all(key[0] in {"sweep", "hook", "detached"} for key in world.agenda)


def rest(stage: Stage, world: World, tally: Tally | None = None) -> World:
    """Leave a world alone until everything is over, or for as long as anything may take."""
    until = world.now + REST_SECONDS
    settled = 0
    while world.now < until and not world.broken and settled < 3:
        world, key = take_step(stage, world, ())
        if tally is not None:
            tally.steps += 1
            tally.states.add(state_of(world))
        if key is None:
            break
        # The sweep looks twice more: it finds what everybody else has forgotten.
        settled = settled + 1 if quiet(world) and key[0] == "sweep" else settled
        if not quiet(world):
            settled = 0
    if not world.broken:
        rest_rules.at_rest(world)
    return world


def play(stage: Stage, scenario: Scenario, walk: Walk) -> tuple[World, int]:
    """Return the world at the end of a walk, and how many steps were chosen for."""
    world, last = scenario.world(), max(walk, default=-1)
    for number in range(min(last + 1, MOST_STEPS)):
        world, _ = take_step(stage, world, walk.get(number, ()))
        if world.broken:
            return world, number
    return rest(stage, world), last


def random_walk(
    stage: Stage,
    scenario: Scenario,
    seed: int,
    tally: Tally,
    *,
    odds: float = 0.05,
    wanted: Callable[[Choice], bool] = lambda _: True,
    judge: Callable[[World], None] | None = None,
) -> Found | None:
    """Take one walk of many choices; return it if it breaks a rule, or one of the judge's own."""
    dice = random.Random(f"{scenario.name} {seed}")  # noqa: S311 - to be repeated
    world, walk = scenario.world(), dict[int, tuple[Choice, ...]]()
    steps = dice.choice((40, 80, 160))
    for number in range(steps):
        following = agenda.due(world)
        if following is None:
            break
        chosen: tuple[Choice, ...] = ()
        if dice.random() < odds:
            choice = drawn(dice, world, following[1], wanted)
            if choice is not None:
                chosen = (choice,)
                walk[number] = chosen
                tally.cover(world, choice, following[1][0])
        world, _ = take_step(stage, world, chosen)
        tally.steps += 1
        tally.states.add(state_of(world))
        if world.broken:
            break
    if not world.broken:
        world = rest(stage, world, tally)
    if judge is not None and not world.broken:
        judge(world)
    tally.worlds += 1
    tally.simulated_seconds += world.now - START
    tally.two_hands += world.two_hands
    if not world.broken:
        return None
    found = Found(scenario, walk, world.broken, steps, seed)
    tally.note(found)
    return found


def shrink(stage: Stage, found: Found, most_plays: int = 400) -> Found:
    """Return the shortest walk found that breaks the same rule: one choice less at a time."""
    walk, plays = dict(found.walk), 0
    changed = True
    while changed and plays < most_plays:
        changed = False
        for number in sorted(walk, reverse=True):
            fewer = {n: choices for n, choices in walk.items() if n != number}
            plays += 1
            if _breaks(stage, found, fewer):
                walk, changed = fewer, True
    world, steps = play(stage, found.scenario, walk)
    return Found(found.scenario, walk, world.broken or found.broken, steps, found.seed)


def _breaks(stage: Stage, found: Found, walk: Walk) -> bool:
    world, _ = play(stage, found.scenario, walk)
    return any(broken.partition(":")[0] == found.rule for broken in world.broken)


@dataclass(slots=True)
class Exhaustion:
    """Every walk of at most `budget` choices, depth first; `share` deals the first ones out.

    `share` is (which, of how many searches); `wanted` leaves choices out.
    """

    stage: Stage
    scenario: Scenario
    tally: Tally
    budget: int = 1
    wanted: Callable[[Choice], bool] = lambda _: True
    share: tuple[int, int] = (0, 1)
    _met: dict[int, int] = field(default_factory=dict)  # state -> most choices left in it
    _dealt: int = 0
    _stack: list[_Branch] = field(default_factory=list)

    def run(self, deadline: float = float("inf")) -> bool:
        """Follow them all; False when time (of time.monotonic) ran out before the end."""
        if not self._dealt:
            self._stack.append(_Branch(self.scenario.world(), 0, {}))
        while self._stack:
            if time.monotonic() > deadline:
                return False
            self._follow(self._stack.pop())
        return True

    def _follow(self, branch: _Branch) -> None:
        """Take a branch to its end, or to a state that is known; put its branches on the stack."""
        world, number, walk = branch.world, branch.number, branch.walk
        self.tally.worlds += 1
        began, last = world.now, max(walk, default=-1)
        left = self.budget - len(walk)
        while (key := _following(world)) is not None and not world.broken:
            if left > 0 and number not in walk:
                self._branch(_Branch(world, number, walk), key)
            world, _ = take_step(self.stage, world, walk.get(number, ()))
            self.tally.steps += 1
            state = state_of(world)
            self.tally.states.add(state)
            known = self._met.get(state, -1) >= left and number >= last
            self._met[state] = max(left, self._met.get(state, -1))
            number += 1
            if known:
                break
        else:
            world = world if world.broken else rest(self.stage, world)
        self.tally.simulated_seconds += world.now - began
        self.tally.two_hands += world.two_hands
        if world.broken:
            self.tally.note(Found(self.scenario, walk, world.broken, number))

    def _branch(self, here: _Branch, key: Key) -> None:
        for choice in _choices_before(self.stage, here.world, key):
            if not self.wanted(choice):
                continue
            self._dealt += 1
            if here.walk or self._dealt % self.share[1] == self.share[0]:
                self.tally.cover(here.world, choice, key[0])
                walk = {**here.walk, here.number: (choice,)}
                self._stack.append(_Branch(here.world, here.number, walk))


@dataclass(frozen=True, slots=True)
class _Branch:
    world: World
    number: int  # of its next step
    walk: dict[int, tuple[Choice, ...]]


def _following(world: World) -> Key | None:
    """Return what happens next while anything is left to follow."""
    following = agenda.due(world)
    over = world.now - START > 2 * REST_SECONDS or (world.incidents and quiet(world))
    return None if following is None or over else following[1]


def _choices_before(stage: Stage, world: World, key: Key) -> Iterator[Choice]:
    """Yield every choice there is before a step; which calls it makes, a first try shows."""
    yield from world_choices(world, key)
    if key[0] in nature.OURS:
        with stage.traced() as trace:
            take_step(stage, world, ())
        yield from call_faults(trace)
