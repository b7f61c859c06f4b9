"""Plays a history that somebody wrote down: choices by the second at which they are made."""

from __future__ import annotations

from collections.abc import Iterable

from tests.explorer import agenda
from tests.explorer.choices import Choice, take_step
from tests.explorer.scenarios import Scenario
from tests.explorer.search import rest
from tests.explorer.stage import Stage
from tests.explorer.world import START, World


def played(stage: Stage, scenario: Scenario, told: Iterable[tuple[float, Choice]]) -> World:
    """Return the world at the end of a scenario in which these things happen as well."""
    world = scenario.world()
    for seconds, choice in told:
        while (due := agenda.due(world)) is not None and due[0] < START + seconds:
            world, _ = take_step(stage, world, ())
        world.now = max(world.now, START + seconds)
        world, _ = take_step(stage, world, (choice,))
        if world.broken:
            return world
    return rest(stage, world)
