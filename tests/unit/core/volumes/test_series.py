"""What Prometheus's answers say of a volume, and which samples are filed of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.volumes import series
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
from core.volumes.views import Load

VOLUME = "vol-0a"
MINUTES = [60.0 * n for n in range(20)]


def found(**by_metric: float) -> dict[str, dict[str, dict[float, float]]]:
    """Return 20 minutes of every series of a volume at a constant, those named at another."""
    values = dict.fromkeys(series.LOAD_METRICS, 0.0) | {
        f"aws_ebs_csi_{name}_total": value for name, value in by_metric.items()
    }
    assert len(values) == len(series.LOAD_METRICS)
    return {metric: {VOLUME: dict.fromkeys(MINUTES, value)} for metric, value in values.items()}


def test_reads_and_writes_count_together() -> None:
    told = found(read_ops=100, write_ops=900, read_bytes=1e6, write_bytes=5e6)
    of = series.load(VOLUME, told)
    assert (of.iops_p999, of.bytes_per_s_p999) == (1000, 6e6)


def test_a_second_beyond_both_limits_is_one_second() -> None:
    told = found(exceeded_iops_seconds=0.5, exceeded_tp_seconds=0.4)
    of = series.load(VOLUME, told)
    assert of.volume_exceeded_share == pytest.approx(0.5)
    assert of.instance_exceeded_share == 0.0


def test_a_minute_of_trouble_in_two_minutes_of_data_is_no_half_of_an_hour() -> None:
    told = found(exceeded_tp_seconds=1.0)
    for by_volume in told.values():
        by_volume[VOLUME] = {0.0: by_volume[VOLUME][0.0], 60.0: 0.0}
    assert series.load(VOLUME, told).volume_exceeded_share == pytest.approx(1 / 15)


@pytest.mark.parametrize(
    ("missing", "unknown"),
    [
        ("aws_ebs_csi_read_ops_total", "iops_p999"),
        ("aws_ebs_csi_write_bytes_total", "bytes_per_s_p999"),
        ("aws_ebs_csi_exceeded_tp_seconds_total", "volume_exceeded_share"),
        ("aws_ebs_csi_ec2_exceeded_iops_seconds_total", "instance_exceeded_share"),
    ],
)
def test_a_missing_series_leaves_its_figure_unknown_and_named(missing: str, unknown: str) -> None:
    told = found()
    del told[missing][VOLUME]
    of = series.load(VOLUME, told)
    assert getattr(of, unknown) is None
    assert not series.is_whole(of)
    (gap,) = series.gaps(told, [VOLUME], series.LOAD_METRICS, "scrape it")
    assert gap == f"Prometheus has no {missing} of vol-0a; scrape it"


def test_many_that_are_missing_are_counted() -> None:
    (gap,) = series.gaps({}, [f"vol-{n}" for n in range(5)], ["up"], "start it")
    assert gap == "Prometheus has no up of vol-0, vol-1, vol-2 and 2 more; start it"


def test_another_source_fills_what_is_unknown_and_nothing_else() -> None:
    first = Load(iops_p999=10.0, volume_exceeded_share=0.0)
    then = Load(iops_p999=99.0, bytes_per_s_p999=5.0, volume_exceeded_share=0.9)
    assert series.merged_load(first, then) == Load(
        iops_p999=10.0, bytes_per_s_p999=5.0, volume_exceeded_share=0.0
    )


def test_a_query_names_the_cluster_and_escapes_what_somebody_wrote() -> None:
    query = series.room("up", "kafka", "orders", {"cluster": 'a"b\\c'})
    assert query == (
        'max by (persistentvolumeclaim) (up{cluster="a\\"b\\\\c",namespace="kafka",'
        'persistentvolumeclaim=~"data-[0-9]+-orders-.+"})'
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
def test_questions_ask_for_each_moment_once_alone(wanted: WantedMetric, series: int) -> None:
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
