"""Finds the brokers of a zone that may be away together, on the cluster as it is.

Racks are not trusted: brokers whose joint absence breaks a partition (core.availability.consent) go
in different parties, whatever was meant when the partition was placed. What is safe for a party is
safe for every part of it, so a party grows broker by broker, and each look costs the partitions of
one broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from core.availability.consent import breaks
from core.views import ClusterView, PartitionView


def parting(
    node_id: int, party: AbstractSet[int], cluster: ClusterView, *, isr_margin: int
) -> PartitionView | None:
    """Return a partition that breaks if a broker goes with a party; None: it may join."""
    together = {node_id, *party}
    held = cluster.held_by(node_id)
    return next((p for p in held if breaks(together, p, isr_margin)), None)


def party(
    first: int, others: Iterable[int], cluster: ClusterView, *, isr_margin: int, most: int | None
) -> tuple[int, ...]:
    """Return a broker and all who may be away with it, at most so many; None: no bound.

    None of `others`, which are of the same zone, could be added to one that is not full. A broker
    that may not even leave by itself has no company.
    """
    members = [first]
    if parting(first, frozenset(), cluster, isr_margin=isr_margin) is not None:
        return (first,)
    for node_id in others:
        if most is not None and len(members) >= most:
            break
        if parting(node_id, {*members}, cluster, isr_margin=isr_margin) is None:
            members.append(node_id)
    return tuple(members)


def parties(
    node_ids: Sequence[int], cluster: ClusterView, *, isr_margin: int, most: int | None = None
) -> tuple[tuple[int, ...], ...]:
    """Return the brokers of one zone in parties; each in its turn takes all it can."""
    left, found = list(node_ids), []
    while left:
        members = party(left[0], left[1:], cluster, isr_margin=isr_margin, most=most)
        found.append(members)
        left = [node_id for node_id in left if node_id not in members]
    return tuple(found)
