"""Which broker is to lead which partition, and which zones are given up for a while.

Kafka prefers the first replica of a partition and returns to it by itself, so a leader moves for
good only when the order of the replicas changes. `plan` compares the order wanted with the order
read; what it was before is kept by whoever carries the plan out, and wanted again once nobody
avoids those brokers any more. Asked twice, it changes nothing the second time. A frozen zone is one
whose brokers are avoided and in which nothing is planned: core.zones remembers why, and
handlers.store.freezes keeps the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.ground.window import clock
from core.views import PartitionView

Order = tuple[int, ...]
Partition = tuple[str, int]  # topic, number


@dataclass(frozen=True, slots=True)
class LeaderPlan:
    """Replica orders to write, partitions whose first replica is then to lead, and what to keep."""

    orders: Mapping[Partition, Order]
    elect: frozenset[Partition]
    original: Mapping[Partition, Order]  # of every partition whose order is not its own

    @property
    def idle(self) -> bool:
        return not self.orders and not self.elect


def plan(
    partitions: Iterable[PartitionView],
    original: Mapping[Partition, Order],
    avoid: frozenset[int],
) -> LeaderPlan:
    """Return what makes others than `avoid` lead, and gives back what nobody avoids any more.

    A partition is left alone where no replica outside `avoid` is in sync; one whose replicas were
    moved to other brokers meanwhile is taken as it is now.
    """
    orders: dict[Partition, Order] = {}
    elect: set[Partition] = set()
    kept: dict[Partition, Order] = {}
    for partition in partitions:
        key = (partition.topic, partition.partition)
        own = original.get(key, partition.replicas)
        if set(own) != set(partition.replicas):
            own = partition.replicas
        wanted = _away_from(avoid, own, partition.isr)
        if wanted != partition.replicas:
            orders[key] = wanted
        if wanted != own:
            kept[key] = own
        touched = key in original or key in kept or partition.leader in avoid
        if touched and partition.leader != wanted[0] and wanted[0] in partition.isr:
            elect.add(key)
    return LeaderPlan(orders, frozenset(elect), kept)


def _away_from(avoid: frozenset[int], order: Order, isr: Sequence[int]) -> Order:
    """Return the replicas with those to avoid last; the others keep their order, in sync first."""
    if order[0] not in avoid or not set(isr) - avoid:
        return order
    return tuple(sorted(order, key=lambda b: (b in avoid, b not in isr)))


# Sources that say more than "leave it alone": the zone, or all of it that is ours, is in trouble.
HEALTH_ISSUE = "health_issue"
LOST_ZONE = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """One zone in which nothing is planned until further notice."""

    zone_id: str  # use1-az2: the same physical zone in every account
    zone: str | None  # us-east-1a: this account's name for it; None until EC2 was asked
    since: float  # epoch seconds
    until: float | None  # when it ends by itself; None: when it is called off
    source: str  # who says so, for instance "autoshift"

    def holds(self, now: float) -> bool:
        """Say whether the freeze is in force."""
        return self.until is None or now < self.until

    @property
    def sentence(self) -> str:
        named = self.zone or self.zone_id
        return f"Zone {named} is frozen since {clock(self.since)} ({self.source})."


def freeze_of(zone: str | None, freezes: Sequence[Freeze], now: float) -> Freeze | None:
    """Return the freeze in force in a zone, by its name."""
    return next((f for f in freezes if zone is not None and f.zone == zone and f.holds(now)), None)
