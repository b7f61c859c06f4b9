"""What those who stay would lead without a party, against what they lead today."""

from __future__ import annotations

import pytest

from core.availability.consent import successor, too_much
from core.views import ClusterView, PartitionView

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
    assert said is not None
    assert said.startswith(
        "Without them the brokers that stay in b would lead 60 partitions instead of 10, more than "
        "2.5 times as many;"
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
