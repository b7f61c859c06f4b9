"""Functions that die: after each single effect, again and again, and while another overtakes them.

An effect is a call of an adapter that changes something. Between two effects a function only reads:
killed there, it leaves what it left when it was killed after the first of the two.
"""

from __future__ import annotations

from typing import Any

from core.incidents import State
from tests.integration.faults.messages import rotated
from tests.integration.faults.points import Places, Point, first_times
from tests.integration.faults.table import case
from tests.integration.faults.taps import Call, Killed
from tests.integration.faults.world import LATE_SECONDS, SWEEP_SECONDS, World


def points_of_a_rotation(world: World, functions: set[str], *, announced: bool) -> list[Point]:
    """Rotate a node undisturbed; return where its functions have effects, in their order."""
    places, found = Places(), dict[Point, None]()

    def note(call: Call, _: Any) -> None:
        if call.effect:
            point = places.of(call)
            if point[0] in functions:
                found.setdefault(point)

    world.taps.after.append(note)
    turn_over(world, 10, announced=announced)
    return list(found)


def turn_over(world: World, node_id: int, *, announced: bool) -> None:
    if not announced:
        world.events.post = lambda _: []
    (instance_id,) = world.terminate(node_id)
    world.run_until(lambda: world.state(instance_id) is State.RELEASED, 1800)
    if announced:
        world.finish()


def kill_once_at(world: World, wanted: Point) -> list[Point]:
    """Have a function killed right after one of its effects, the first time it gets there."""
    places, killed = Places(), list[Point]()

    def kill(call: Call, _: Any) -> None:
        if call.effect and places.of(call) == wanted and not killed:
            killed.append(wanted)
            raise Killed

    world.taps.after.append(kill)
    return killed


def killed_at_each(world: World, functions: set[str], *, announced: bool = True) -> None:
    """Rotate a node once for each point, a function killed there; nothing may show of it."""
    points = points_of_a_rotation(world, functions, announced=announced)
    assert len(points) > len(functions), points
    for number, point in enumerate(points):
        world.renew()
        killed = kill_once_at(world, point)
        turn_over(world, (10, 20, 30)[number % 3], announced=announced)
        assert killed, f"nothing was killed at {point}"
        assert world.shortcomings() == [], f"killed at {point}"


@case(
    "λ interruption is killed after each of its effects in turn",
    "SQS delivers the announcement again after its visibility timeout; an incident that is written "
    "already only gets its tick, and the sweep gives it one sooner",
    "Released, one drain, for each point",
)
def interruption_killed_after_each_effect(world: World) -> None:
    killed_at_each(world, {"interruption"})


@case(
    "λ tick is killed after each of its effects in turn, in every state",
    "The claim it wrote makes the tick stale; 45 s later the sweep, or the redelivered tick, "
    "decides again on what is true then",
    "Released, one drain, for each point",
)
def tick_killed_after_each_effect(world: World) -> None:
    killed_at_each(world, {"tick"})


@case(
    "The announcements are lost, and λ sweep is killed after each of its effects in turn",
    "The next run compares the same lists: what is written already is known, the rest is done",
    "Released, for each point",
)
def sweep_killed_after_each_effect(world: World) -> None:
    killed_at_each(world, {"sweep"}, announced=False)


@case(
    "Every function is killed after every effect, the first time it gets there, in one rotation",
    "Each time the incident is carried on from what the ledger says",
    "Released, one drain",
)
def killed_at_every_point_of_one_rotation(world: World) -> None:
    first = first_times()

    def kill(call: Call, _: Any) -> None:
        if first(call):
            raise Killed

    world.taps.after.append(kill)
    (instance_id,) = world.terminate(20)
    rotated(world, instance_id)


@case(
    "λ tick dies at its start, whatever the message, for half an hour",
    "The hooks outlast it; the messages that fail five times become dead letters, and the sweep "
    "sends others",
    "Released once λ tick runs again",
)
def tick_dead_for_long(world: World) -> None:
    def kill(call: Call) -> None:
        if call.function == "tick":
            raise Killed

    world.taps.before.append(kill)
    (instance_id,) = world.terminate(30)
    world.run(1800)
    assert world.state(instance_id) is State.OPENED
    assert world.machinery.out() == []
    world.taps.before.remove(kill)
    rotated(world, instance_id)
    # What is dead by now named an incident that is over.
    world.ticks.dead()


@case(
    "λ tick is slow: before each of its effects it stops until another invocation has taken over",
    "The other decides on its own; the slow one's write is refused, and what it still does is done "
    "already",
    "Released, one drain",
)
def tick_overtaken(world: World) -> None:
    first, busy = first_times(), list[bool]()

    def stand_still(call: Call) -> None:
        if busy or call.function != "tick" or not first(call):
            return
        busy.append(True)
        world.now += LATE_SECONDS + SWEEP_SECONDS
        world.step()
        world.step()
        busy.clear()

    world.taps.before.append(stand_still)
    (instance_id,) = world.terminate(10)
    rotated(world, instance_id)
