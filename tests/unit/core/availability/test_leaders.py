"""Leaders that go away and come back, and the rights on Kafka that every call needs."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.availability import wholeness
from core.availability.consent import LeaderPlan, Order, Partition, plan, successor, too_much
from core.availability.wholeness import (
    MOVING_LEADERS,
    READING,
    RIGHT_OF,
    THROTTLING,
    KafkaOperation,
    KafkaRequest,
    KafkaResource,
    grant,
    rights_for,
)
from core.views import ClusterView, PartitionView
from tests.every_case import every_case


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


@every_case("found", [partition(replicas=(20, 10, 30)), partition(isr=(10,))])
def test_who_has_handed_over_or_is_alone_in_sync_is_left_alone(found: PartitionView) -> None:
    done = plan([found], {}, frozenset({10}))
    assert (done.orders, done.elect) == ({}, frozenset())


def test_a_broker_that_leads_out_of_turn_is_asked_to_hand_over() -> None:
    done = plan([partition(replicas=(20, 10, 30), leader=10)], {}, frozenset({10}))
    assert (done.orders, done.elect) == ({}, {("t", 0)})


def test_one_in_sync_is_preferred_to_one_that_is_not() -> None:
    done = plan([partition(isr=(10, 30))], {}, frozenset({10}))
    assert done.orders[("t", 0)] == (30, 20, 10)


def test_a_partition_moved_to_other_brokers_meanwhile_is_not_moved_back() -> None:
    done = plan([partition(replicas=(20, 40, 10))], {("t", 0): (10, 20, 30)}, frozenset())
    assert done.orders == {}
    assert done.original == {}


def test_a_partition_that_is_moving_is_left_to_its_mover_and_its_order_kept() -> None:
    found, before = partition(replicas=(20, 10, 30, 40)), {("t", 0): (10, 20, 30)}
    assert plan([found], {}, frozenset({20}), {"t-0"}) == LeaderPlan({}, frozenset(), {})
    assert plan([found], before, frozenset(), {"t-0"}) == LeaderPlan({}, frozenset(), before)


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
        again = plan(view, original, avoid)
        assert (again.orders, again.elect) == ({}, frozenset())
        assert all(p.leader not in avoid or avoid >= set(p.isr) for p in view)
        assert _sets(view) == _sets(before)
    assert view == before
    assert original == {}


def _sets(view: tuple[PartitionView, ...]) -> Mapping[int, frozenset[int]]:
    """No data may move: only the order of a partition's replicas changes."""
    return {p.partition: frozenset(p.replicas) for p in view}


ZONES = {10: "a", 11: "a", 20: "b", 21: "b", 30: "c", 31: "c"}


def cluster(*rows: tuple[int, ...], brokers: dict[int, str] = ZONES) -> ClusterView:
    partitions = tuple(PartitionView("t", n, row[0], row, row, 1) for n, row in enumerate(rows))
    return ClusterView(frozenset(brokers), frozenset(), (), 0, partitions)


EVEN = (
    *[(10, 20, 30), (11, 31, 21)] * 6,
    *[(20, 30, 10), (21, 11, 31)] * 6,
    *[(30, 10, 20), (31, 21, 11)] * 6,
)


def test_an_even_cluster_of_three_zones_lets_any_zone_go() -> None:
    view = cluster(*EVEN)
    assert [too_much(zone, view, ZONES) for zone in ({10, 11}, {20, 21}, {30, 31})] == [None] * 3


def test_two_even_zones_stand_in_for_each_other() -> None:
    view = cluster(*[(10, 20), (20, 10)] * 9, brokers={10: "a", 20: "b"})
    assert too_much({10}, view, ZONES) is None


def test_a_placement_that_leans_on_one_zone_is_refused_with_its_figures() -> None:
    rows = [*[(10, 20, 30)] * 50, *[(20, 30, 10)] * 10, *[(30, 20, 10)] * 10]
    said = too_much({10}, cluster(*rows), ZONES)
    assert said.startswith(
        "Without them the brokers that stay in b would lead 60 partitions instead of 10, more than "
        "2.5 times as many."
    )


def test_what_stays_of_the_own_zone_is_asked_too() -> None:
    only = {10: "a", 11: "a", 12: "a", 13: "a"}
    rows = [(10, 13), (11, 13), (12, 13), (13, 10)] * 5
    assert too_much({10}, cluster(*rows, brokers=only), only) is None
    said = str(too_much({10, 11, 12}, cluster(*rows, brokers=only), only))
    assert said.startswith(
        "Without them the brokers that stay in a would lead 20 partitions instead of 5,"
    )


def test_one_zone_may_stand_in_for_another_alone_though_they_are_not_quite_even() -> None:
    rows = [*[(10, 20, 30)] * 12, *[(20, 30, 10)] * 10, *[(30, 10, 20)] * 8]
    assert too_much({10}, cluster(*rows), ZONES) is None


def test_who_leads_less_than_its_share_after_another_rotation_may_take_it() -> None:
    rows = [*[(10, 20, 30)] * 12, *[(30, 10, 20)] * 12]
    assert too_much({10}, cluster(*rows), ZONES) is None


def test_one_that_is_fenced_stands_in_for_nobody_and_one_out_of_sync_neither() -> None:
    behind = PartitionView("t", 0, 10, (10, 20, 30), (10, 30), 1)
    assert successor(behind, {10}) == 30
    assert successor(behind, {10, 30}) is None
    assert successor(behind, {20}) == 10


@pytest.mark.parametrize("leaving", [frozenset[int](), frozenset({20, 21})])
def test_nobody_is_asked_for_what_nobody_leads(leaving: frozenset[int]) -> None:
    rows = [(10, 20, 30), (30, 20, 10)] * 4
    assert too_much(leaving, cluster(*rows), ZONES) is None


def test_every_call_has_its_line_and_belongs_to_who_reads_moves_leaders_or_throttles() -> None:
    assert set(RIGHT_OF) == set(KafkaRequest) == READING | MOVING_LEADERS | THROTTLING


def test_a_function_that_only_reads_may_change_nothing() -> None:
    expected = {KafkaOperation.DESCRIBE, KafkaOperation.DESCRIBE_CONFIGS}
    assert {right.operation for right in rights_for(READING)} == expected


def test_no_right_reaches_a_record_or_an_acl() -> None:
    assert {(r.resource, r.operation) for r in rights_for(KafkaRequest)} == {
        (KafkaResource.CLUSTER, KafkaOperation.ALTER),
        (KafkaResource.CLUSTER, KafkaOperation.ALTER_CONFIGS),
        (KafkaResource.CLUSTER, KafkaOperation.DESCRIBE),
        (KafkaResource.CLUSTER, KafkaOperation.DESCRIBE_CONFIGS),
        (KafkaResource.TOPIC, KafkaOperation.ALTER_CONFIGS),
        (KafkaResource.TOPIC, KafkaOperation.DESCRIBE),
        (KafkaResource.TOPIC, KafkaOperation.DESCRIBE_CONFIGS),
    }


@pytest.mark.parametrize(
    ("call", "topic", "said"),
    [
        (KafkaRequest.DESCRIBE_QUORUM, "*", "Describe on the cluster"),
        (KafkaRequest.ELECT_LEADERS, "*", "Alter on the cluster"),
        (KafkaRequest.METADATA, "*", "Describe on every topic"),
        (KafkaRequest.METADATA, "orders", "Describe on topic orders"),
        (KafkaRequest.LIST_CONFIG_RESOURCES, "orders", "DescribeConfigs on the cluster"),
    ],
)
def test_a_refusal_names_the_right_to_grant(call: KafkaRequest, topic: str, said: str) -> None:
    assert grant(call, name=topic) == f"grant the functions' user {said}"


def test_the_table_is_plain_data_that_nobody_changes() -> None:
    with pytest.raises(TypeError):
        wholeness.RIGHT_OF[KafkaRequest.METADATA] = None
