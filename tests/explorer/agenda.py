"""What is about to happen in an explored world, and when; whose service is away waits for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import ceil

from core.ground.naming import DRAIN_HOOK
from tests.explorer.limits import VISIBILITY
from tests.explorer.world import Key, Message, World

# On whom each kind of thing waits while they are away.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "ticks": ("functions",),
    "events": ("functions", "eventbridge"),
    "sweep": ("functions",),
    "nth": ("nth", "api"),
    "drain": ("nth", "api"),
    "schedule": ("api",),
    "launch": ("capacity",),
    "join": ("api",),
    "asks": ("api",),
    "claim launched": ("capacity", "api"),
    "claim counts": ("api",),
    "claim ends": ("api",),
}


MOST_HEARD = 12
_HEARD = frozenset(
    {"EC2 Spot Instance Interruption Warning", "EC2 Instance State-change Notification"}
)


def due(world: World) -> tuple[float, Key] | None:
    """Return what happens next, and when."""
    found: tuple[float, Key] | None = None
    for key, planned in world.agenda.items():
        at = planned if not world.down else _waited(world, key, planned)
        if found is None or at < found[0] or (at == found[0] and key < found[1]):
            found = (at, key)
    return found


def _waited(world: World, key: Key, planned: float) -> float:
    """Return when something happens that may have to wait for a service."""
    back = max((world.down.get(service, 0.0) for service in NEEDS.get(key[0], ())), default=0.0)
    if back <= planned:
        return planned
    # The handler sees a message again only when its visibility has run out once more.
    rounds = ceil((back - planned) / VISIBILITY)
    return planned + rounds * VISIBILITY if key[0] == "nth" else back


def plan(world: World, key: Key, seconds: float) -> None:
    """Put something on the agenda, unless it stands there for an earlier time."""
    at = world.now + seconds
    world.agenda[key] = min(at, world.agenda.get(key, at))


def take_step(world: World, key: Key, steps: Mapping[str, Callable[..., None]]) -> bool:
    """Let one thing of the agenda happen that is among these steps; False: it is not."""
    step = steps.get(key[0])
    if step is None:
        return False
    world.agenda.pop(key, None)
    step(world, *key[1:])
    return True


def send(world: World, queue: str, body: str, seconds: float = 0.0) -> int:
    if queue == "events" and world.direct and _heard_by_the_handler(body):
        send(world, "nth", body, seconds)
    if queue == "events" and body not in world.heard:
        world.heard = (*world.heard, body)[-MOST_HEARD:]
    number = world.number()
    world.messages[number] = Message(queue, body, world.now)
    world.agenda[queue, number] = world.now + seconds
    return number


def _heard_by_the_handler(body: str) -> bool:
    """Say whether the termination handler hears an event itself, on the direct route."""
    told = json.loads(body)
    detail = told.get("detail", {})
    drains = detail.get("LifecycleHookName") == DRAIN_HOOK
    retires = "RETIREMENT" in detail.get("eventTypeCode", "") and detail["statusCode"] == "open"
    return drains or retires or told["detail-type"] in _HEARD


def delete(world: World, number: int) -> None:
    message = world.messages.pop(number, None)
    if message is not None:
        world.agenda.pop((message.queue, number), None)
