"""The partitions of an explored Kafka: who holds them, in which order, and who leads them.

A partition keeps its leader until that one is out of sync; then the first of its order that is in
sync leads. Who is elected is the first of the order, as Kafka's own balancing does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

Partition = tuple[str, int]
Order = tuple[int, ...]

MIN_ISR = 2
# One partition that everybody holds; racks of two, with each broker preferred for something; and
# the same with a partition that two of one zone share.
ONE: Mapping[Partition, Order] = {("t", 0): (10, 20, 30)}
RACKS: Mapping[Partition, Order] = {
    ("t", 0): (10, 20, 30),
    ("t", 1): (20, 30, 10),
    ("u", 0): (11, 21, 31),
    ("u", 1): (21, 31, 11),
}
# And topics that cannot stay writable without one of their brokers.
THIN: Mapping[Partition, Order] = {**ONE, ("r", 0): (10,), ("s", 0): (20, 30)}
CROSSED: Mapping[Partition, Order] = {**RACKS, ("x", 0): (10, 11, 20)}


class Led(Protocol):
    """Whatever holds partitions: a world."""

    orders: dict[Partition, Order]
    leaders: dict[Partition, int | None]

    def in_sync(self, broker_id: int) -> bool:
        """Say whether a broker is in every ISR."""


def follow(world: Led) -> None:
    """Have somebody else lead what is led by a broker that is out of sync."""
    for partition, order in world.orders.items():
        leader = world.leaders.get(partition)
        if leader is None or not world.in_sync(leader):
            world.leaders[partition] = next((b for b in order if world.in_sync(b)), None)


def elect(world: Led, partitions: Iterable[Partition]) -> None:
    """Have the first of each order lead, where it can."""
    for partition in partitions:
        first = world.orders[partition][0]
        if world.in_sync(first):
            world.leaders[partition] = first
