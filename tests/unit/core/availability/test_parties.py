"""Parties of a zone break no partition together, and nobody more would fit."""

import random
import re
from collections.abc import Callable, Iterator
from itertools import chain, combinations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.availability.consent import may_leave, may_leave_together, parties
from core.rotation.preconditions import objections
from core.rotation.run_record import Options
from core.views import ClusterView, PartitionView
from tests.unit.core.availability import roller
from tests.unit.core.availability.clusters import around, clusters, turn_of
from tests.unit.policies import policy_with


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


# Each cluster is asked about every node of it under three margins: 10,000 questions and more.
MANY = settings(
    max_examples=3 * settings.default.max_examples,
    database=None,
    suppress_health_check=list(HealthCheck),
)
MARGINS = (0, 1, 2)


@MANY
@given(clusters())
def test_what_the_roller_refuses_a_rotation_refuses(view: ClusterView) -> None:
    for node_id in view.brokers | {voter.node_id for voter in view.voters}:
        for margin in MARGINS:
            check(view, node_id, margin)


def check(view: ClusterView, node_id: int, margin: int) -> None:
    votes = any(voter.node_id == node_id for voter in view.voters)
    turn, accepted = turn_of(node_id, votes=votes), Options(accepted_topics=("t",))
    said = list(objections(turn, around(view), accepted, policy_with(isr_margin=margin)))
    verdict = may_leave(node_id, view, isr_margin=margin)
    if not roller.may_restart(node_id, view):
        assert said
        # Of a broker that is fenced nothing more is lost. The roller restarts such a one without
        # any check when it does not answer, and a machine that AWS takes is no choice of ours.
        assert not verdict.allowed or node_id in view.fenced
        return
    for sentence in said:
        assert any(true(sentence) for true in reasons(view, node_id, margin)), sentence
    if not verdict.allowed:
        assert verdict.reason in said


def reasons(view: ClusterView, node_id: int, margin: int) -> Iterator[Callable[[str], bool]]:
    """Yield, for each way of ours to be stricter, a test that a sentence states a fact."""
    yield lambda said: "no quorum" in said and view.quorum_leader is None
    yield lambda said: any(f"broker {other} is fenced" in said for other in view.fenced - {node_id})
    yield lambda said: any(
        f"{p.name} is offline" in said for p in view.partitions if p.leader is None
    )
    yield lambda said: any(
        f"Broker {node_id} is fenced. Partition {p.name} " in said
        and len(set(p.isr) - {node_id}) < p.min_isr
        for p in view.partitions
    )
    yield lambda said: any(
        re.search(rf"partition {p.name} would keep \d+ .*margin {margin}", said)
        and len(set(p.isr) - {node_id}) < min(p.min_isr + margin, len(p.replicas) - 1)
        for p in view.partitions
    )
    yield lambda said: any(
        f"last in-sync replica of partition {p.name}" in said and set(p.isr) == {node_id}
        for p in view.partitions
    )
    yield lambda said: any(
        f"Partition {p.name} has {len(p.isr)} in-sync replicas" in said
        and len(p.isr) < min(p.min_isr, len(p.replicas))
        for p in view.partitions
    )
