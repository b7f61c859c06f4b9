"""Functions that die: after each single effect, again and again, and while another overtakes them.

An effect is a call of an adapter that changes something. Between two effects a function only reads:
killed there, it leaves what it left when it was killed after the first of the two.
"""

import json
from typing import Any

from core.incidents.record import State
from tests.integration.faults.feed import delivery_times
from tests.integration.faults.messages import check_rotated
from tests.integration.faults.points import Places, Point, first_times
from tests.integration.faults.table import case
from tests.integration.faults.taps import Call, Killed
from tests.integration.faults.wiring import LATE_SECONDS, LEASE_SECONDS
from tests.integration.faults.world import SWEEP_SECONDS, World


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
    "SQS delivers the announcement again after its visibility timeout. An incident that is written"
    " already only gets its tick, and the sweep gives it one sooner",
    "Released, one drain, for each point",
)
def interruption_killed_after_each_effect(world: World) -> None:
    killed_at_each(world, {"interruption"})


@case(
    "λ tick is killed after each of its effects in turn, in every state",
    "The claim it wrote makes the tick stale. 45 s later the sweep, or the redelivered tick, "
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
    "Each time the incident continues from the ledger. A tick that killed five functions ends "
    "among the dead letters, and nothing needs it",
    "Released, one drain",
)
def killed_at_every_point_of_one_rotation(world: World) -> None:
    first = first_times()

    def kill(call: Call, _: Any) -> None:
        if first(call):
            raise Killed

    world.taps.after.append(kill)
    (instance_id,) = world.terminate(20)
    check_rotated(world, instance_id)
    assert {json.loads(body)["incident_id"] for body in world.ticks.dead()} <= {instance_id}


@case(
    "λ tick dies at its start, whatever the message, for ten minutes",
    "The hooks outlast it; the messages come back, and the sweep sends others",
    "Released once λ tick runs again",
)
def tick_dead_for_long(world: World) -> None:
    def kill(call: Call) -> None:
        if call.function == "tick":
            raise Killed

    world.taps.before.append(kill)
    (instance_id,) = world.terminate(30)
    world.run(600)
    assert world.state(instance_id) is State.OPENED
    assert world.machinery.out() == []
    world.taps.before.remove(kill)
    check_rotated(world, instance_id)


@case(
    "λ tick is slow. It stops for two minutes just before it takes or renews the lease, at the "
    "first, second, third and fourth time of a rotation",
    "Another invocation takes the incident over. The slow one finds that it was overtaken, and "
    "sends and records nothing. It gives back a lease it took for an incident that is over",
    "Released, one drain, for each",
)
def tick_overtaken(world: World) -> None:
    for number in range(4):
        world.renew()
        stopped = stop_before_lease(world, number)
        (instance_id,) = world.terminate((10, 20, 30)[number % 3])
        check_rotated(world, instance_id)
        assert stopped[number]
        assert world.witness.forwarded == [instance_id]
        assert world.shortcomings() == [], f"stopped before take {number + 1} of the lease"


def stop_before_lease(world: World, number: int) -> list[bool]:
    """Have a tick stop before it takes the lease for the n-th time; until then note each time."""
    times, stopping = list[bool](), list[bool]()

    def stand_still(call: Call) -> None:
        if call.name != "ledger.take_lease" or stopping:
            return
        times.append(True)
        if len(times) == number + 1:
            stopping.append(True)
            world.now += LATE_SECONDS + SWEEP_SECONDS
            for _ in range(4):
                world.step()

    world.taps.before.append(stand_still)
    return times


@case(
    "λ tick stops for a quarter of an hour with the lease in its hand, about to send the drain. "
    "Another broker's node is to leave as well",
    "The lease expires and the other takes it. The slow one asks for it again before it sends, is "
    "refused, and waits for its turn",
    "Both released, one broker out at a time",
)
def tick_outlives_its_lease(world: World) -> None:
    slow = world.instance(10)
    stopped = list[bool]()

    def stand_still(call: Call) -> None:
        taking = call.name == "ledger.take_lease" and call.arguments[0] == slow
        mine = taking and any(lease.holder == slow for lease in world.ledger.leases())
        if stopped or not mine or world.state(slow) is not State.HOLDING:
            return
        stopped.append(True)
        # Nothing of it gets through meanwhile; else another invocation would just carry it on.
        world.ticks.post = lambda body: [] if slow in body else [0.0]
        world.terminate(20)
        world.run_until(lambda: 20 in world.machinery.out(), 2 * LEASE_SECONDS)
        world.ticks.post = delivery_times

    world.taps.before.append(stand_still)
    world.terminate(10)
    check_rotated(world, slow)
    assert stopped
    assert len(world.witness.forwarded) == len(set(world.witness.forwarded)) == 2  # one each
