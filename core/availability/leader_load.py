"""Says whether those who stay can lead what a party of brokers leads, before it leaves.

Counted in partitions led, which every reading tells; what a partition is produced and read is not
in it. A zone, or what stays of one, may lead two and a half times what it leads today. Where it
leads less than its brokers' fair share, as after another rotation, that share is what counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from core.views import ClusterView, PartitionView

# Three even zones come to 1.5, and to 2.0 where one zone stands in for another alone, as one of two
# does; a quarter more is for zones that are not quite even. Beyond that a placement leans on one.
MOST_TIMES = 2.5


def successor(partition: PartitionView, leaving: Collection[int]) -> int | None:
    """Return who leads once those that leave do not, as core.availability.leaders orders it."""
    if partition.leader not in leaving:
        return partition.leader
    return next((r for r in partition.replicas if r in partition.isr and r not in leaving), None)


def too_much(
    leaving: Collection[int], cluster: ClusterView, zone_of: Mapping[int, str]
) -> str | None:
    """Say which zone would lead more than it may without the brokers that leave; None: none."""
    today = Counter(p.leader for p in cluster.partitions if p.leader is not None)
    gained: Counter[int] = Counter()
    for partition in cluster.partitions:
        if partition.leader in leaving:
            heir = successor(partition, leaving)
            if heir is not None:
                gained[heir] += 1
    staying: dict[str, list[int]] = {}
    for broker_id in sorted(cluster.brokers - cluster.fenced - set(leaving)):
        staying.setdefault(zone_of.get(broker_id, ""), []).append(broker_id)
    fair = sum(today.values()) / max(len(cluster.brokers), 1)
    for zone, brokers in sorted(staying.items()):
        led, more = (sum(count[b] for b in brokers) for count in (today, gained))
        if more and led + more > MOST_TIMES * max(led, fair * len(brokers)):
            where = f"the brokers that stay in {zone}" if zone else "the brokers that stay"
            return (
                f"Without them {where} would lead {led + more} partitions instead of {led}, more "
                f"than {MOST_TIMES:g} times as many; spread preferred leaders over more zones, or "
                f"take fewer at once."
            )
    return None
