"""Seeds of the explorer, replayed where DynamoDB, SQS, Auto Scaling and the entry points are real.

The explorer (tests/explorer) runs the shipped code over a world of its own. A seed names one fault
there: a call of λ tick, and the state its incident is in. The same fault at the same call must lead
to the same transitions here, or one of the two worlds is not the one we ship into. Not every seed
serves: the explorer sweeps every four minutes, and a hook that runs out there is beaten for here.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.incidents.record import Incident, State
from tests.explorer.agenda import due
from tests.explorer.choices import take_step
from tests.explorer.scenarios import TWO
from tests.explorer.search import play, quiet
from tests.explorer.stage import Stage, explored
from tests.integration.faults.outages import refusal
from tests.integration.faults.table import case
from tests.integration.faults.taps import Call, Killed, timeout_error
from tests.integration.faults.world import World

SEEDS = range(3)
LEAVERS = ("i-0a", "i-0b")
APART_SECONDS = 30.0
KINDS = ("error", "late_error", "death")
# What a step does whenever it is taken; heartbeats and renewals come by each world's own clock.
PACED = frozenset({"cloud.heartbeat", "ledger.take_lease", "records.write"})


@dataclass(frozen=True, slots=True)
class Place:
    """One effect of λ tick: whose tick, in which state it began, and which call."""

    leaver: int
    state: State
    name: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A seed's fault, and where it took each leaver's incident."""

    kind: str
    place: Place
    transitions: Sequence[Sequence[State]]


def states(incident: Incident | None) -> list[State]:
    return [] if incident is None else [t.state for t in incident.transitions]


def effects(stage: Stage) -> Iterator[tuple[int, int, Place]]:
    """Yield the effects of λ tick in the usual course: step, number of the call, place."""
    world = TWO.world()
    for number in range(4000):
        following = due(world)
        if following is None or (world.incidents and quiet(world)):
            return
        open_ones = {id_: incident.state for id_, incident in world.incidents.items()}
        body = world.messages[following[1][1]].body if following[1][0] == "ticks" else ""
        with stage.traced() as calls:
            world, _ = take_step(stage, world, ())
        for id_, state in open_ones.items():
            if f'"{id_}"' in body and id_ in LEAVERS:
                yield from (
                    (number, call, Place(LEAVERS.index(id_), state, name))
                    for call, (name, effect) in enumerate(calls)
                    if effect and state.value in {"replacing", "holding", "draining", "gating"}
                )


def draw(stage: Stage, seed: int) -> Drawn:
    dice = random.Random(seed)  # noqa: S311 - to be repeated
    first: Mapping[Place, tuple[int, int]] = {
        place: (number, call)
        for number, call, place in reversed(list(effects(stage)))
        if place.name not in PACED
    }
    place = dice.choice(list(first))
    kind, (number, call) = dice.choice(KINDS), first[place]
    world, _ = play(stage, TWO, {number: (("call", str(call), kind, place.name),)})
    assert world.broken == ()
    return Drawn(kind, place, [states(world.incidents[id_]) for id_ in LEAVERS])


def strike(world: World, fault: Drawn, leaving: Sequence[str]) -> list[Call]:
    """Have a call fail as the explorer's did, once; return it in a list when it has."""
    struck: list[Call] = []
    began: dict[int, tuple[str, State]] = {}

    def meets(call: Call) -> bool:
        if call.name == "ledger.get" and call.invocation not in began:
            incident = world.ledger.get(call.arguments[0])
            if incident is not None:
                began[call.invocation] = incident.instance_id, incident.state
        mine = began.get(call.invocation)
        here = (leaving[fault.place.leaver], fault.place.state)
        wanted = call.function == "tick" and call.name == fault.place.name
        return wanted and mine == here and not struck

    def before(call: Call) -> None:
        if meets(call) and fault.kind == "error":
            struck.append(call)
            raise refusal(call)

    def after(call: Call, _: Any) -> None:
        if meets(call):
            struck.append(call)
            raise Killed if fault.kind == "death" else timeout_error(call)

    world.taps.before.append(before)
    world.taps.after.append(after)
    return struck


@case(
    "Faults that the explorer drew from seeds, each at one call of λ tick while two brokers' nodes"
    " leave. A call is refused, is done and not answered, or ends the function",
    "Decisions do not depend on which of the two worlds the shipped code runs over",
    "Both released, by the transitions that the explorer saw",
)
def explored_seeds_replayed(world: World) -> None:
    with explored() as stage:
        faults = [draw(stage, seed) for seed in SEEDS]
    for seed, fault in enumerate(faults):
        world.renew()
        leaving = world.terminate(10)
        struck = strike(world, fault, [*leaving, world.instance(20)])
        world.run(APART_SECONDS)
        leaving += world.terminate(20)
        world.finish()
        assert struck, f"seed {seed}: nothing failed at {fault.place}"
        found = [states(world.incident(instance_id)) for instance_id in leaving]
        assert found == fault.transitions, f"seed {seed}: {fault}"
        assert world.shortcomings() == [], f"seed {seed}: {fault}"
