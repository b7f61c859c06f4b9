"""Leaders go away from brokers to avoid, and everything comes back as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.availability.consent import LeaderPlan, Order, Partition, plan
from core.views import PartitionView


def partition(
    number: int = 0,
    replicas: Order = (10, 20, 30),
    *,
    isr: Order | None = None,
    leader: int | None = None,
) -> PartitionView:
    in_sync = replicas if isr is None else isr
    return PartitionView("t", number, leader or replicas[0], replicas, in_sync, 2)


def carried_out(view: tuple[PartitionView, ...], done: LeaderPlan) -> tuple[PartitionView, ...]:
    """Return what Kafka shows after a plan: new orders, then elections."""
    after = []
    for p in view:
        key = (p.topic, p.partition)
        moved = replace(p, replicas=done.orders.get(key, p.replicas))
        leads = moved.replicas[0] if key in done.elect else moved.leader
        after.append(replace(moved, leader=leads))
    return tuple(after)


def test_a_broker_to_avoid_goes_last_and_the_next_leads() -> None:
    done = plan([partition()], {}, frozenset({10}))
    assert done.orders == {("t", 0): (20, 30, 10)}
    assert done.elect == {("t", 0)}
    assert done.original == {("t", 0): (10, 20, 30)}


def test_a_partition_that_another_leads_already_is_left_alone() -> None:
    assert plan([partition(replicas=(20, 10, 30))], {}, frozenset({10})).idle


def test_a_broker_that_leads_out_of_turn_is_asked_to_hand_over() -> None:
    done = plan([partition(replicas=(20, 10, 30), leader=10)], {}, frozenset({10}))
    assert (done.orders, done.elect) == ({}, {("t", 0)})


def test_one_in_sync_is_preferred_to_one_that_is_not() -> None:
    done = plan([partition(isr=(10, 30))], {}, frozenset({10}))
    assert done.orders[("t", 0)] == (30, 20, 10)


def test_a_partition_with_nobody_else_in_sync_keeps_its_leader() -> None:
    assert plan([partition(isr=(10,))], {}, frozenset({10})).idle


def test_a_partition_moved_to_other_brokers_meanwhile_is_not_moved_back() -> None:
    done = plan([partition(replicas=(20, 40, 10))], {("t", 0): (10, 20, 30)}, frozenset())
    assert done.orders == {}
    assert done.original == {}


def test_what_nobody_avoids_any_more_gets_its_order_and_its_leader_back() -> None:
    before = (partition(), partition(1, (20, 30, 10)))
    away = plan(before, {}, frozenset({10}))
    back = plan(carried_out(before, away), away.original, frozenset())
    assert back.original == {}
    assert carried_out(carried_out(before, away), back) == before


views = st.lists(st.permutations((10, 20, 30)), min_size=1, max_size=6).map(
    lambda orders: tuple(partition(n, tuple(order)) for n, order in enumerate(orders))
)
avoids = st.frozensets(st.sampled_from((10, 20, 30)))


@given(views, st.lists(avoids, max_size=5))
def test_whatever_is_avoided_in_between_everything_comes_back(
    before: tuple[PartitionView, ...], turns: list[frozenset[int]]
) -> None:
    view, original = before, dict[Partition, Order]()
    for avoid in [*turns, frozenset[int]()]:
        done = plan(view, original, avoid)
        view, original = carried_out(view, done), dict(done.original)
        assert plan(view, original, avoid).idle
        assert all(p.leader not in avoid or avoid >= set(p.isr) for p in view)
        assert _sets(view) == _sets(before)
    assert view == before
    assert original == {}


def _sets(view: tuple[PartitionView, ...]) -> Mapping[int, frozenset[int]]:
    """No data may move: only the order of a partition's replicas changes."""
    return {p.partition: frozenset(p.replicas) for p in view}
