"""Refills brokers of an explored world that lost their disks, and judges the throttle beside them.

A broker that starts on another node than the one it held its logs on copies all of them. Our run
throttles that; somebody else may throttle replication, too, and that one is none of ours to touch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from core.rotation.run_record import Throttle
from tests.explorer.adapters import ExploredKafka
from tests.explorer.rules import break_rule, run_of
from tests.explorer.world import CLUSTER, CONTROLLERS, Key, World

GIB = 1024**3
WHOLE, LEFT = 100 * GIB, GIB
# Everything takes longer than what was missed, and a throttle makes it longer still.
REFILL, HELD_BACK = 700.0, 500.0
_DOCUMENT = f"throttle#{CLUSTER}"


class RefilledKafka(ExploredKafka):
    """Kafka's brokers with their logs, and what throttles replication."""

    def log_bytes(self, brokers: Iterable[int] | None = None) -> dict[int, int]:
        world = self._stage.world
        if not world.local_disks:
            return {}
        asked = world.brokers.keys() - CONTROLLERS.keys() if brokers is None else brokers
        up = (b for b in asked if world.brokers[b].status != "down")
        return {b: LEFT if b in world.emptied else WHOLE for b in up}

    def throttled_by_others(self, throttle: Throttle, ours: Collection[str]) -> str | None:
        del throttle
        others = self._stage.world.other_throttle is not None and not ours
        return "topic t is throttled already, which is not ours." if others else None

    def throttle(self, throttle: Throttle) -> None:
        world, began = self._stage.world, self._stage.invocation.began
        if not set(throttle.topics) <= set(_recorded(world)):
            break_rule(world, "throttle_unknown", "A topic is marked that no document names.")
        others = world.other_throttle
        if others is not None and world.throttle is None and others < began - 60:
            break_rule(world, "throttle_taken", "Our throttle is set over somebody else's.")
        for broker in throttle.brokers:
            if ("sync", broker) in world.agenda and world.throttle is None:
                world.agenda["sync", broker] += HELD_BACK
        world.throttle = throttle

    def unthrottle(self, topics: Collection[str]) -> None:
        world = self._stage.world
        if world.throttle is not None and not set(world.throttle.topics) <= set(topics):
            break_rule(world, "throttle_part", f"Only {sorted(topics)} are taken off.")
        if not _recorded(world) and world.other_throttle is not None:
            break_rule(world, "throttle_foreign", "Somebody else's throttle is taken off.")
        world.throttle = None


def _recorded(world: World) -> list[str]:
    """Return the topics that the ledger knows to be marked."""
    _, document = world.records.get(_DOCUMENT, (0, None))
    found: list[str] = document["topics"] if document else []
    return found


def left_on(world: World) -> str | None:
    """Return what is throttled for no run any more; None: nothing is."""
    run = run_of(world)
    wanted = run is not None and run["state"] == "running" and run["throttled"]
    if world.throttle is None or wanted:
        return None
    return f"Replication into {list(world.throttle.brokers)} stays throttled, and no run wants it."


def follow(world: World, key: Key) -> None:
    """Take or give back a broker's logs after something has happened to it."""
    if not world.local_disks or key[0] not in {"ready", "sync"}:
        return
    broker = key[1]
    if key[0] == "sync":
        world.emptied -= {broker} if world.in_sync(broker) else set()
        return
    node = world.pods[broker].node_name or ""
    if world.homes.get(broker, node) != node:
        world.emptied |= {broker}
        world.agenda["sync", broker] = world.now + REFILL
    world.homes = {**world.homes, broker: node}


def on_local_disks(world: World) -> None:
    """Have every broker's logs on the disk of its node."""
    world.local_disks = True
    world.homes = {b: pod.node_name or "" for b, pod in world.pods.items()}
