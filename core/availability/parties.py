"""Finds the brokers of a zone that may be away together, on the cluster as it is.

Racks are not trusted: brokers whose joint absence breaks a partition (core.availability.consent) go
in different parties, whatever was meant when the partition was placed. What is safe for a party is
safe for every part of it, so a party grows broker by broker, and each look costs those partitions
of one broker that anybody's absence may break.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from core.availability.consent import breaks
from core.views import ClusterView, PartitionView

# Broker -> partitions.
_Held = Mapping[int, Sequence[PartitionView]]


def parting(
    node_id: int, party: AbstractSet[int], cluster: ClusterView, *, isr_margin: int
) -> PartitionView | None:
    """Return a partition that breaks if a broker goes with a party; None: it may join."""
    together = {node_id, *party}
    held = cluster.held_by(node_id)
    return next((p for p in held if breaks(together, p, isr_margin)), None)


def parties(
    node_ids: Sequence[int], cluster: ClusterView, *, isr_margin: int, most: int | None = None
) -> tuple[tuple[int, ...], ...]:
    """Return the brokers of one zone in parties; each in its turn takes all it can."""
    left, found = list(node_ids), []
    contested = _contested_partitions(node_ids, cluster)
    while left:
        members = _largest_party(left[0], left[1:], contested, isr_margin, most)
        found.append(members)
        left = [node_id for node_id in left if node_id not in members]
    return tuple(found)


def _largest_party(
    first: int, others: Iterable[int], contested: _Held, isr_margin: int, most: int | None
) -> tuple[int, ...]:
    """Return a broker and all who may be away with it; none more could be added below `most`.

    A broker that may not even leave by itself has no company.
    """

    def parted(node_id: int, members: Iterable[int]) -> bool:
        together = {node_id, *members}
        return any(breaks(together, p, isr_margin) for p in contested.get(node_id, ()))

    members = [first]
    if parted(first, ()):
        return (first,)
    for node_id in others:
        if most is not None and len(members) >= most:
            break
        if not parted(node_id, members):
            members.append(node_id)
    return tuple(members)


def _contested_partitions(node_ids: Iterable[int], cluster: ClusterView) -> _Held:
    """Return, by broker, the partitions that the absence of some of these may break.

    One with every replica in sync and only one of them among these brokers is none: it keeps all
    but that one, and no rule asks for more. So of a zone that is a rack of its own nothing is left
    to look at but what is out of sync.
    """
    ids = set(node_ids)
    once: set[int] = set()
    found: dict[int, PartitionView] = {}
    for node_id in ids:
        for partition in cluster.held_by(node_id):
            key = id(partition)
            if key in once or len(partition.isr) < len(partition.replicas):
                found[key] = partition
            once.add(key)
    held: dict[int, list[PartitionView]] = {}
    for partition in found.values():
        for node_id in ids.intersection(partition.replicas):
            held.setdefault(node_id, []).append(partition)
    return held
