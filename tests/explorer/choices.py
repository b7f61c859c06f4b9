"""What may go otherwise than usual before a step: faults of calls, of services, and other actors.

A walk is a scenario and its deviations: the number of a step, and the choices made before it.
Everything else takes its usual course, so a walk can be told, repeated and made shorter.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from core.incidents.joining import ask_release, hold, ignore
from core.incidents.record import State
from tests.explorer import agenda, drainers, hands, karpenter, mishaps, nature, operator, outages
from tests.explorer.limits import HOLD_LIMIT, LEASE, RETENTION
from tests.explorer.rules import paused
from tests.explorer.stage import EVERY_WRITE, LATE_READS, RACED, Faults, Stage, remember
from tests.explorer.world import FIRST, Key, World

# Longer than a tick may be late and than a lease, than the hold limit, than a queue's retention.
PAST_LEASE, PAST_HOLD, PAST_RETENTION = LEASE + 150, HOLD_LIMIT + 700, RETENTION + 600
PAUSES = (PAST_LEASE, PAST_HOLD)
MOMENT = 60.0
SERVICES = (
    "api",
    "kafka",
    "aws",
    "ledger",
    "sqs",
    "nth",
    "functions",
    "eventbridge",
    "capacity",
    "sns",
    "gate",
)

# What the bench alone follows one by one to the end; walks choose of it as of everything.
SELDOM = outages.KINDS | mishaps.KINDS | operator.KINDS | {"twin", "late_race"}

_PASSING = frozenset(
    {
        *("lose", "double", "clock", "away shortly", "nth restarts", "leaders balanced"),
        *("batch again", "every write", "said to end", "foreign", "armed"),
        *("rolled back", "rolled forward"),
    }
)

Choice = tuple[str, ...]
Walk = Mapping[int, tuple[Choice, ...]]


def is_seldom(choice: Choice) -> bool:
    """Say whether a choice is one of those that only the bench follows one by one."""
    return (choice[2] if choice[0] == "call" else choice[0]) in SELDOM


def passes(choice: Choice) -> bool:
    """Say whether a fault is over within minutes, so that it is nobody's matter."""
    kind, *rest = choice
    if kind == "call":
        return not rest[1].startswith("pause")
    return kind in _PASSING or choice == ("late", f"{MOMENT:.0f}")


def call_faults(trace: Sequence[tuple[str, bool]]) -> Iterator[Choice]:
    """Yield what may go wrong at every call of a step."""
    for number, (name, effect) in enumerate(trace):
        yield ("call", str(number), "error", name)
        if effect:
            yield ("call", str(number), "late_error", name)
            yield ("call", str(number), "death", name)
        yield ("call", str(number), "twin", name)
        if name in RACED:
            yield ("call", str(number), "race", name)
            yield ("call", str(number), "late_race", name)
        if name in LATE_READS:
            yield ("call", str(number), "stale", name)
        # Between a check and the one call it guards lies no more than a function may run.
        for seconds in (MOMENT,) if name == "nth.send" else PAUSES if effect else PAUSES[:1]:
            yield ("call", str(number), f"pause:{seconds:.0f}", name)


def world_choices(world: World, key: Key) -> Iterator[Choice]:
    """Yield what may happen to a world before something of its agenda does."""
    if key[0] == "sweep":
        return
    if key[0] in {"events", "ticks"}:
        if not _page(world, key):
            yield ("lose",)
        yield ("double",)
        yield ("skew", "120")
        yield ("skew", "-120")
    for seconds in (60.0, PAST_LEASE, PAST_HOLD):
        yield ("late", f"{seconds:.0f}")
    for service in SERVICES:
        if not world.is_down(service) and (world.gated or service != "gate"):
            yield ("away", service, f"{PAST_LEASE:.0f}")
            yield ("away", service, f"{PAST_HOLD:.0f}")
    yield ("away", "nth", f"{PAST_RETENTION:.0f}")
    yield from _actors(world)
    yield from hands.choices(world)
    yield from outages.choices(world)
    yield from mishaps.choices(world)
    yield from operator.choices(world)
    if world.karpenter:
        yield from karpenter.choices(world)


def _actors(world: World) -> Iterator[Choice]:
    yield from (("restart", str(n)) for n, pod in world.pods.items() if pod.ready)
    for instance_id, instance in world.instances.items():
        if instance.state == "running":
            yield from _to_instance(world, instance_id)
    yield from (("refuse", group) for group in world.groups)
    if world.in_place:
        yield from (("root fails", instance_id) for instance_id in FIRST.values())
    if world.drains:
        yield ("nth restarts",)
    yield ("resume",) if paused(world) else ("pause",)
    for incident in world.incidents.values():
        if incident.open:
            yield ("hold", incident.id)
            yield ("ignore", incident.id)
        if incident.open or incident.state is State.RETAINED:
            yield ("release", incident.id)


def _to_instance(world: World, instance_id: str) -> Iterator[Choice]:
    yield ("die", instance_id)
    if world.lifecycle(instance_id) == "InService":
        yield ("leave", instance_id)
        if world.gated and instance_id in world.nodes:
            yield from (("drain", instance_id, who) for who in drainers.DRAINERS)
        if world.pod_on(instance_id) is None:
            yield ("autoscaler", instance_id)


def apply(world: World, choice: Choice) -> Faults:
    """Make a choice true of a world; return the faults it plans for the calls of the next step."""
    kind, arguments = choice[0], choice[1:]
    if kind == "call":
        return {int(arguments[0]): arguments[1]}
    if kind == "every write":
        return {EVERY_WRITE: arguments[0]}
    # A walk that was made shorter may have no such machine.
    with contextlib.suppress(KeyError):
        CHOICES[kind](world, *arguments)
    return {}


def _next(world: World) -> Key:
    following = agenda.due(world)
    return ("nothing",) if following is None else following[1]


def _lose(world: World) -> None:
    key = _next(world)
    if key[0] in {"events", "ticks"} and not _page(world, key):
        agenda.delete(world, key[1])


def _page(world: World, key: Key) -> bool:
    """Say whether a message is a page: nothing makes up for one, and SQS keeps what it took."""
    return world.messages[key[1]].body.startswith('{"page":')


def _double(world: World) -> None:
    key = _next(world)
    if key[0] in {"events", "ticks"}:
        agenda.send(world, key[0], world.messages[key[1]].body, 1.0)


def _late(world: World, seconds: str) -> None:
    key = _next(world)
    if key in world.agenda:
        world.agenda[key] = max(world.now, world.agenda[key]) + float(seconds)


def _skew(world: World, seconds: str) -> None:
    world.skew = float(seconds)


def _away(world: World, service: str, seconds: str) -> None:
    world.down[service] = world.now + float(seconds)
    if service in {"api", "nth"}:
        world.drains.clear()  # Its message comes again.
    if service == "nth":
        world.handled = frozenset()


def _nth_restarts(world: World) -> None:
    world.drains.clear()
    world.handled = frozenset()


def _restart(world: World, node: str) -> None:
    """An operator deletes a pod; for a moment it is scheduled nowhere."""
    node_id = int(node)
    if world.pods[node_id].ready:
        nature.evict(world, node_id, "operator")


def _die(world: World, instance_id: str) -> None:
    if world.instances[instance_id].state == "running":
        world.agenda["die", instance_id] = world.now


def _leave(world: World, instance_id: str) -> None:
    nature.terminate(world, instance_id)


def _autoscaler(world: World, instance_id: str) -> None:
    """Cluster Autoscaler takes an idle node, unless it is kept from it."""
    node = world.nodes.get(instance_id)
    if node is not None and node.spare_for is None and world.pod_on(instance_id) is None:
        nature.terminate(world, instance_id, decrement=True)


def _refuse(world: World, group: str) -> None:
    world.refusing |= {group}


def _root_fails(world: World, instance_id: str) -> None:
    world.unreplaced |= {instance_id}


def _wish(world: World, id_: str, wish: str) -> None:
    """A person says something about an incident; the next sweep or tick finds it."""
    incident = world.incidents.get(id_)
    if incident is None or not (incident.open or wish == "release"):
        return
    if wish == "hold":
        said = hold(incident, world.now + PAST_LEASE, "ann", world.now)
    elif wish == "ignore":
        said = ignore(incident, "ann", "known", world.now)
    elif incident.open or incident.state is State.RETAINED:
        said = ask_release(incident, "ann", world.now)
    else:
        return
    if said.version == 0 and said.id in world.incidents:
        return
    world.incidents[said.id] = replace(said, version=said.version + 1)
    body = f'{{"incident_id": "{said.id}", "version": {said.version + 1}}}'
    agenda.send(world, "ticks", body)


def _paused(world: World) -> None:
    """A person pauses the cluster, for longer than a lease and a hold."""
    hands.paused_until(world, world.now + PAST_HOLD)


CHOICES: Mapping[str, Callable[..., None]] = {
    "lose": _lose,
    "double": _double,
    "late": _late,
    "skew": _skew,
    "away": _away,
    "nth restarts": _nth_restarts,
    "restart": _restart,
    "die": _die,
    "leave": _leave,
    "autoscaler": _autoscaler,
    "drain": drainers.begin,
    "refuse": _refuse,
    "root fails": _root_fails,
    "pause": _paused,
    "resume": lambda world: hands.paused_until(world, world.now),
    "hold": lambda world, id_: _wish(world, id_, "hold"),
    "ignore": lambda world, id_: _wish(world, id_, "ignore"),
    "release": lambda world, id_: _wish(world, id_, "release"),
    **hands.DONE,
    **outages.DONE,
    **karpenter.DONE,
    **mishaps.DONE,
    **operator.DONE,
}


def take_step(stage: Stage, world: World, chosen: Sequence[Choice]) -> tuple[World, Key | None]:
    """Return the world after its next step, with these choices made before it."""
    following = remember(world)
    faults: dict[int, str] = {}
    for choice in chosen:
        faults |= apply(following, choice)
    return following, stage.step(following, faults)


def drawn(
    dice: random.Random, world: World, key: Key, wanted: Callable[[Choice], bool] = lambda _: True
) -> Choice | None:
    """Draw one choice for a step, of whatever kind there is among those that are wanted."""
    if key[0] in nature.OURS and dice.random() < 0.5:
        kind = dice.choice(
            ("error", "late_error", "death", "stale", "pause", "race", "late_race", "twin")
        )
        if kind == "pause":
            kind = f"pause:{dice.choice(PAUSES):.0f}"
        call = ("call", str(dice.randrange(18)), kind, "")
        return call if wanted(call) else None
    found = [choice for choice in world_choices(world, key) if wanted(choice)]
    if not found:
        return None
    # Each kind as often as another, however many of it there are.
    kinds = sorted({choice[0] for choice in found})
    kind = dice.choice(kinds)
    return dice.choice([choice for choice in found if choice[0] == kind])
