"""Parties of a zone: nobody in one breaks a partition with another, and nobody more would fit."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from core.availability.consent import may_leave_together, parties
from core.views import ClusterView, PartitionView


def drawn(seed: int) -> tuple[dict[str, list[int]], ClusterView, int]:
    """Return a cluster of uneven racks, whose partitions keep to them or not, and a margin."""
    chance = random.Random(seed)  # noqa: S311 - a seed repeats it
    sizes = [chance.randint(1, 6) for _ in range(chance.randint(2, 4))]
    zones = {
        f"zone-{place}": [100 * place + number for number in range(size)]
        for place, size in enumerate(sizes)
    }
    brokers = list(chain(*zones.values()))
    faithful = chance.random()
    found = []
    for number in range(chance.randint(1, 60)):
        factor = min(chance.randint(2, 5), len(brokers))
        order = chance.sample(brokers, len(brokers))
        if chance.random() < faithful:
            # One of each zone first, as broker.rack places them.
            order = sorted(order, key=_round_of(order))
        replicas = tuple(order[:factor])
        missing = chance.random() < 0.05
        isr = replicas[:-1] if missing else replicas
        found.append(
            PartitionView("t", number, replicas[0], replicas, isr, chance.randint(1, factor))
        )
    view = ClusterView(frozenset(brokers), frozenset(), (), 0, tuple(found))
    return zones, view, chance.randint(0, 2)


def _round_of(order: list[int]) -> Callable[[int], int]:
    """Return how many of its zone stand before a broker."""
    seen: dict[int, int] = {}
    rounds = {}
    for broker in order:
        rounds[broker] = seen.get(broker // 100, 0)
        seen[broker // 100] = rounds[broker] + 1
    return rounds.__getitem__


def safe(members: tuple[int, ...], view: ClusterView, margin: int) -> bool:
    """Count, partition by partition, what is left; the rule stated once more, on its own."""
    for p in view.partitions:
        gone, factor = set(members) & set(p.replicas), len(p.replicas)
        left = len(set(p.isr) - gone)
        needed = min(p.min_isr + margin, factor - 1)
        if gone and left < needed:
            return False
    return True


def judge(seed: int) -> tuple[int, int]:
    """Assert what holds of every cluster; return how many brokers it has, in how many parties."""
    zones, view, margin = drawn(seed)
    total = 0
    for brokers in zones.values():
        found = parties(brokers, view, isr_margin=margin)
        total += len(found)
        assert sorted(chain(*found)) == sorted(brokers)
        for place, members in enumerate(found):
            together = may_leave_together(frozenset(members), view, isr_margin=margin)
            assert together.allowed == safe(members, view, margin), (seed, members)
            # One that may not leave by itself is alone in its party.
            assert len(members) == 1 or together.allowed, (seed, members, together.reason)
            for pair in combinations(members, 2):
                assert safe(pair, view, margin), (seed, pair)
            for later in chain(*found[place + 1 :]):
                assert not safe((*members, later), view, margin), (seed, members, later)
    return len(view.brokers), total


@given(st.integers(0, 2**32))
def test_a_party_breaks_no_partition_and_nobody_of_its_zone_could_be_added(seed: int) -> None:
    judge(seed)


def test_racks_that_are_kept_to_make_a_party_of_each_zone() -> None:
    replicas = [(10 + n % 3, 20 + n % 3, 30 + n % 3) for n in range(9)]
    partitions = tuple(PartitionView("t", n, r[0], r, r, 2) for n, r in enumerate(replicas))
    brokers = frozenset(range(10, 13)) | frozenset(range(20, 23)) | frozenset(range(30, 33))
    view = ClusterView(brokers, frozenset(), (), 0, partitions)
    assert parties((10, 11, 12), view, isr_margin=1) == ((10, 11, 12),)
    assert parties((10, 11, 12), view, isr_margin=1, most=2) == ((10, 11), (12,))
    # No trust in what a zone is called: these three are never safe together.
    assert parties((10, 20, 30), view, isr_margin=0) == ((10,), (20,), (30,))
