"""The stand-in for Cruise Control: where replicas go when brokers come or go."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition

from core.ground.errors import StillwaterError
from local.kubernetes.strimzi_rebalance import moves

OLD = {10: "a", 20: "b", 30: "c"}
ALL = {**OLD, 11: "a", 21: "b", 31: "c"}
REPLICAS = {TopicPartition("t", number): [10, 20, 30] for number in range(6)}


def test_added_brokers_get_half_of_their_zone_and_each_partition_stays_in_three_zones() -> None:
    after = {**REPLICAS, **moves(REPLICAS, ALL, "add-brokers", [11, 21, 31])}
    held = Counter(broker for each in after.values() for broker in each)
    assert held == dict.fromkeys(ALL, 3)
    assert all({ALL[broker] for broker in each} == {"a", "b", "c"} for each in after.values())


@given(st.lists(st.sampled_from(sorted(ALL)), min_size=1, max_size=3, unique=True), st.data())
def test_a_broker_that_goes_holds_nothing_and_no_partition_loses_a_replica(
    going: list[int], data: st.DataObject
) -> None:
    chosen = st.lists(st.sampled_from(sorted(ALL)), min_size=2, max_size=3, unique=True)
    replicas = {TopicPartition("t", number): data.draw(chosen) for number in range(4)}
    after = {**replicas, **moves(replicas, ALL, "remove-brokers", going)}
    for partition, brokers in after.items():
        assert not set(brokers) & set(going)
        assert len(set(brokers)) == len(replicas[partition])


def test_a_broker_that_nobody_can_replace_is_a_sentence() -> None:
    with pytest.raises(StillwaterError, match=r"No broker can take the replica of partition t-0"):
        moves(REPLICAS, OLD, "remove-brokers", [30])
    with pytest.raises(StillwaterError, match=r"Kafka has no broker 31 yet\."):
        moves(REPLICAS, OLD, "add-brokers", [10, 31])
