"""Hunts a mutant: the explorer's usual course, single faults and walks, until a rule breaks."""

from __future__ import annotations

from tests.explorer.scenarios import ONE, SCENARIOS, TWO
from tests.explorer.search import Exhaustion, Tally, play, random_walk
from tests.explorer.stage import Stage, explored

AWAY = frozenset({"away", "late", "restart", "die", "lose", "refuse", "call"})


def broken(walks: int) -> list[str]:
    """Return the rules that break; a function that raises what it never may breaks one, too."""
    try:
        with explored() as stage:
            return _broken(stage, walks)
    except Exception as error:  # noqa: BLE001 - whatever a break of the code makes of it
        return [f"raised: {error!r}"]


def _broken(stage: Stage, walks: int) -> list[str]:
    for scenario in SCENARIOS:
        world, _ = play(stage, scenario, {})
        if world.broken or any(i.open for i in world.incidents.values()):
            return list(world.broken) or ["usual course: it does not end"]
    tally = Tally()
    for scenario in (ONE, TWO):
        Exhaustion(stage, scenario, tally, wanted=lambda c: c[0] in AWAY and c[0] != "call").run()
        found = [f.broken[0] for f in tally.found.values()]
        if found:
            return found
    for seed in range(walks):
        walked = random_walk(stage, SCENARIOS[seed % len(SCENARIOS)], seed, tally)
        if walked is not None:
            return list(walked.broken)
    return []
