"""A confirmation that never comes: each open incident calls a person within its wait's limit."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from core.incidents.decide import WAITS
from core.incidents.observation import Policy
from core.incidents.record import Incident
from tests.explorer import nature, operator
from tests.explorer.limits import HOLD_LIMIT, LATE, SWEEP
from tests.explorer.scenarios import (
    BEHIND_THE_GATE,
    IN_PLACE,
    ONE,
    PARTIES,
    RETIRED,
    WITHOUT_A_HANDLER,
)
from tests.explorer.search import REST_SECONDS
from tests.explorer.stage import Stage, explored
from tests.explorer.wiring import Way
from tests.explorer.world import START, World, out

# A look of ours may be that late, and the one after it that of the sweep.
LOOKS = LATE + 2 * SWEEP + 120.0
# Kinds of the agenda: who would have confirmed what.
NEVER = (
    *("launch", "join", "schedule", "ready", "sync", "stopped", "detached", "end", "forget"),
    *("nth", "drain", "asks", "webhook"),
)


def _ends_for_ever(world: World) -> None:
    """EC2 has had the first machine in `stopping` since it died, and says nothing else."""
    world.agenda["leave", "i-0b"] = START + 600
    world.instances["i-0a"] = replace(world.instances["i-0a"], state="stopping")
    world.nodes["i-0a"] = replace(world.nodes["i-0a"], ready=False, unready_since=START)
    world.pods[10] = out(world, world.pods[10])
    nature.fall_behind(world, 10, 100 * HOLD_LIMIT)


def _silent_groups(world: World) -> None:
    world.silent = True


def _operator_fails(world: World) -> None:
    operator.DONE["operator stalls"](world, "fails")
    world.never |= {"operator recovers"}


def _behind(world: World) -> None:
    nature.fall_behind(world, 30, 100 * HOLD_LIMIT)


ODD: dict[str, Callable[[World], None]] = {
    "EC2 stops a machine for ever": _ends_for_ever,
    "groups are silent": _silent_groups,
    "the operator fails": _operator_fails,
    "a broker stays behind": _behind,
}
# One of each way of draining: a minute of processor time for all.
SCENARIOS = (ONE, RETIRED, PARTIES[0], BEHIND_THE_GATE[1], WITHOUT_A_HANDLER[0], IN_PLACE[0])


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with explored() as wired:
        yield wired


def unheard(world: World) -> list[Incident]:
    """Return who has been in a state past every limit of its waits, and has called nobody."""
    policy = Way.of(world).policy()
    return [i for i in world.incidents.values() if i.open and _is_unheard(i, world.now, policy)]


def _is_unheard(incident: Incident, now: float, policy: Policy) -> bool:
    # A date of AWS's may be days away.
    scheduled = incident.scheduled_said_at is not None and not incident.hooks
    waits = WAITS if scheduled else WAITS[1:]
    bound = max(wait.limit(policy) for wait in waits if incident.state in wait.states)
    since = max(incident.entered_at, incident.kept_at or 0.0)
    return not incident.pages and now - since > bound + LOOKS


@pytest.mark.parametrize("confirmation", [*NEVER, *ODD])
def test_a_confirmation_that_never_comes_calls_a_person_in_time(
    stage: Stage, confirmation: str
) -> None:
    waiting: list[str] = []
    for scenario in SCENARIOS:
        world = scenario.world()
        if confirmation in ODD:
            ODD[confirmation](world)
        else:
            world.never |= {confirmation}
        while world.now < START + REST_SECONDS and stage.step(world) is not None:
            found = unheard(world)
            if found:
                waiting += [f"{scenario.name}: {i.id} {i.state}: {i.reason}" for i in found]
                break
    assert waiting == []
