"""Which samples are filed, when, and in how many questions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.volumes.series import (
    CATCH_UP_HOURS,
    HOUR_SECONDS,
    MOST_SAMPLES,
    WANTED,
    WantedMetric,
    Whose,
    expression,
    hours_due,
    name_before_due,
    sample_key,
    slices,
)

NOON = 1_800_000_000.0 - 1_800_000_000.0 % HOUR_SECONDS
WHOSE = Whose("orders", "kafka", {"cluster": "prod"})
BY_NAME = {each.metric: each for each in WANTED}


def test_an_hour_is_filed_once_its_last_samples_can_have_arrived() -> None:
    assert NOON - HOUR_SECONDS not in hours_due(NOON + 60, ())
    assert NOON - HOUR_SECONDS in hours_due(NOON + 601, ())


def test_what_is_filed_is_not_due_and_the_oldest_hour_comes_first() -> None:
    hours = list(hours_due(NOON + 601, ()))
    assert len(hours) == CATCH_UP_HOURS
    assert hours == sorted(hours)
    assert list(hours_due(NOON + 601, {sample_key(hour) for hour in hours[:-1]})) == [
        NOON - HOUR_SECONDS
    ]


def test_every_hour_that_may_be_due_is_listed_after_where_the_list_begins() -> None:
    assert all(sample_key(hour) > name_before_due(NOON) for hour in hours_due(NOON, ()))


def test_a_brokers_own_counters_are_asked_for_without_those_of_its_topics() -> None:
    asked = expression(BY_NAME["kafka_server_brokertopicmetrics_bytesinpersec_total"], WHOSE)
    assert asked == (
        "kafka_server_brokertopicmetrics_bytesinpersec_total"
        '{cluster="prod",topic="",pod=~"orders-.+-[0-9]+"}'
    )


def test_sizes_of_partitions_are_summed_where_they_are() -> None:
    asked = expression(BY_NAME["kafka_log_log_size"], WHOSE)
    assert asked.startswith("sum without (topic, partition) (kafka_log_log_size{")


def test_claims_are_those_of_this_clusters_namespace() -> None:
    asked = expression(BY_NAME["kubelet_volume_stats_used_bytes"], WHOSE)
    assert 'namespace="kafka"' in asked
    assert 'persistentvolumeclaim=~"data-[0-9]+-orders-.+"' in asked


@given(st.sampled_from(WANTED), st.integers(1, MOST_SAMPLES))
def test_questions_ask_for_each_moment_once_and_for_no_more(
    wanted: WantedMetric, series: int
) -> None:
    asked = list(slices(wanted, NOON, series))
    step, moments = wanted.step_seconds, 0
    for number, (begin, end) in enumerate(asked):
        here = round((end - begin) / step) + 1
        assert here * series <= MOST_SAMPLES
        assert number == 0 or begin == asked[number - 1][1] + step
        moments += here
    assert moments == HOUR_SECONDS / step
    assert (asked[0][0], asked[-1][1]) == (NOON, NOON + HOUR_SECONDS - step)


def test_nothing_is_asked_for_where_there_is_no_series() -> None:
    assert list(slices(WANTED[0], NOON, 0)) == []
