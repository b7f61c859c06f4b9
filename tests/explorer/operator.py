"""Plays Strimzi's operator: it may choose any pod in any second, for any of its causes.

What a cause shows, and where, is Strimzi 1.2.0's. Before each pod the operator asks Kafka whether
partitions keep their minimum, except where it forces the restart of one that it cannot reach. It
waits for no drain. It may also fail for hours, or be paused by a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from core.availability.operator import (
    Condition,
    KafkaConditions,
    OperatorView,
    PodSetView,
    Revisions,
)
from tests.explorer import agenda, nature, rules
from tests.explorer.limits import HOLD_LIMIT
from tests.explorer.world import CONTROLLERS, ON_PODS, Key, Roll, World
from tests.unit.core.availability import roller

Choice = tuple[str, ...]
# The operator looks at the next pod so often; a reconciliation that failed is tried again.
NEXT, PAST_HOLD = 15.0, HOLD_LIMIT + 700
CAUSES = (*ON_PODS, "configuration", "pod set")


def choices(world: World) -> Iterator[Choice]:
    """Yield what the operator, or whoever commands it, may do now."""
    if world.roll is None:
        for cause in CAUSES:
            yield from (("operator rolls", cause, str(n)) for n in world.pods)
        yield from (("operator forces", str(n)) for n in world.pods)
    if world.stalled_since is None:
        yield from (("operator stalls", how) for how in ("fails", "paused"))
    else:
        yield ("operator goes on",)


def view(world: World) -> OperatorView:
    """Return what Strimzi's resources show."""
    roll = world.roll
    waiting = {world.pods[n].name for n in roll.waiting} if roll else set()
    changed = {"description": Revisions("next"), "resources": Revisions(None, "next")}
    to_be = changed.get(roll.cause, Revisions()) if roll else Revisions()
    names = sorted(pod.name for pod in world.pods.values())
    fails = world.stalled_since is not None and not world.operator_paused
    return OperatorView(
        kafka=KafkaConditions(
            generation_observed=roll is None or roll.cause != "configuration",
            ready=True,
            not_ready=Condition("FatalProblem", "", world.stalled_since) if fails else None,
            paused=world.operator_paused,
            paused_since=world.stalled_since if world.operator_paused else None,
        ),
        pod_sets=(
            PodSetView(
                name="orders",
                pods={name: to_be if name in waiting else Revisions() for name in names},
                roll_asked=roll is not None and roll.cause == "pod set",
            ),
        ),
    )


def _begins(world: World, cause: str, node: str) -> None:
    """Begin a roll with one pod: the operator chooses it in this second."""
    first = int(node)
    whom = frozenset({first}) if cause == "pod" else frozenset(world.pods).difference(CONTROLLERS)
    world.roll = Roll(cause, whom | {first})
    if cause == "pod":
        world.pods[first] = replace(world.pods[first], roll_asked=True)
    _restart(world, first)
    agenda.plan(world, ("rolls",), NEXT)


def _rolls(world: World) -> None:
    """Restart the next pod once the last one is Ready; Kafka keeps its minimum without it."""
    roll = world.roll
    if roll is None:
        return
    last = None if roll.chosen is None else world.pods[roll.chosen]
    if world.stalled_since is None and (last is None or last.ready):
        if not roll.waiting:
            world.roll = None
            return
        _restart(world, min(roll.waiting))
    agenda.plan(world, ("rolls",), NEXT)


def _restart(world: World, node_id: int) -> None:
    roll = world.roll
    if roll is None or world.stalled_since is not None:
        return
    if world.pods[node_id].stopping or not roller.may_restart(node_id, world.kafka(by_us=False)):
        return
    world.roll = replace(roll, waiting=roll.waiting - {node_id}, chosen=node_id)
    _stop(world, node_id, "operator")


def _stop(world: World, node_id: int, hand: str) -> None:
    rules.by_two_hands(world, node_id, hand)
    world.pods[node_id] = replace(world.pods[node_id], roll_asked=False)
    nature.evict(world, node_id, hand)


def _forces(world: World, node: str) -> None:
    """Restart a pod without asking Kafka: nothing shows it before."""
    if not world.pods[int(node)].stopping:
        _stop(world, int(node), "forced")


def _stalls(world: World, how: str) -> None:
    world.stalled_since, world.operator_paused = world.now, how == "paused"
    agenda.plan(world, ("operator recovers",), PAST_HOLD)


def _goes_on(world: World) -> None:
    world.stalled_since, world.operator_paused = None, False
    world.agenda.pop(("operator recovers",), None)


def happen(world: World, key: Key) -> bool:
    """Let one thing of the agenda happen that is the operator's; False: it is about others."""
    return agenda.take_step(world, key, {"rolls": _rolls, "operator recovers": _goes_on})


DONE: Mapping[str, Callable[..., None]] = {
    "operator rolls": _begins,
    "operator forces": _forces,
    "operator stalls": _stalls,
    "operator goes on": _goes_on,
}
KINDS = frozenset(DONE)
