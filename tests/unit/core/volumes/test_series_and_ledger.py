"""What Prometheus's answers say of a volume, which are filed, and when it is full."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.volumes import series
from core.volumes.series import (
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
from core.volumes.sizing import Gp3
from core.volumes.views import (
    FillSample,
    History,
    Modification,
    ModificationState,
    add_observation,
    add_request,
    end_modification,
    forecast,
    free_slots,
    ledger_from_json,
    ledger_to_json,
    next_slot_at,
)
from tests.unit.core.volumes.views import DAY, HOUR, LOOKED, NOW, ended_modification, history

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


def test_a_query_names_the_cluster_and_escapes_what_somebody_wrote() -> None:
    query = series.room("up", "kafka", "orders", {"cluster": 'a"b\\c'})
    assert query == (
        'max by (persistentvolumeclaim) (up{cluster="a\\"b\\\\c",namespace="kafka",'
        'persistentvolumeclaim=~"data-[0-9]+-orders-.+"})'
    )


NOON = 1_800_000_000.0 - 1_800_000_000.0 % HOUR_SECONDS
WHOSE = Whose("orders", "kafka", {"cluster": "prod"})
BY_NAME = {each.metric: each for each in WANTED}


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


GROWN = Gp3(200)


def foreign(
    ago: float, state: ModificationState = ModificationState.COMPLETED, target: Gp3 = GROWN
) -> Modification:
    return ended_modification(ago, target, state, kind="")


def test_a_volume_nobody_looked_at_has_no_slot() -> None:
    assert free_slots(History(), NOW) == 0
    assert next_slot_at(History(), NOW) == NOW + DAY


def test_a_first_look_that_finds_one_of_today_counts_all_as_used() -> None:
    seen = add_observation(History(), foreign(HOUR), GROWN, NOW)
    assert free_slots(seen, NOW) == 0
    assert free_slots(seen, NOW + 22 * HOUR) == 0
    # From then on nothing before the first look is within the window.
    assert free_slots(seen, NOW + DAY + 121) == 4


def test_each_modification_frees_its_slot_a_day_after_it_began() -> None:
    used = history(ended_modification(23 * HOUR), ended_modification(10 * HOUR))
    assert free_slots(used, NOW) == 2
    assert next_slot_at(used, NOW) == NOW + HOUR + 120
    assert free_slots(used, NOW + HOUR + 121) == 3


def test_a_request_becomes_the_modification_that_answers_it() -> None:
    asked = add_request(
        LOOKED, ended_modification(60, GROWN, ModificationState.REQUESTED, reason="it fills")
    )
    seen = add_observation(asked, foreign(30, ModificationState.OPTIMIZING), GROWN, NOW)
    assert [(m.state, m.reason, m.started_at) for m in seen.modifications] == [
        (ModificationState.OPTIMIZING, "it fills", NOW - 30)
    ]
    ended = end_modification(seen, ModificationState.COMPLETED, NOW + HOUR)
    assert ended.under_way is None
    assert ended.modifications[0].ended_at == NOW + HOUR


def test_a_request_that_ec2_never_had_to_hear_of_is_forgotten() -> None:
    asked = add_request(LOOKED, ended_modification(60, GROWN, ModificationState.REQUESTED))
    assert add_observation(asked, None, GROWN, NOW).under_way is not None
    assert add_observation(asked, None, GROWN, NOW + HOUR).modifications == ()
    assert add_observation(asked, None, Gp3(100), NOW + HOUR).under_way is not None


def test_an_announcement_of_an_end_nobody_saw_begin_changes_nothing() -> None:
    assert end_modification(LOOKED, ModificationState.COMPLETED, NOW) == LOOKED
    asked = add_request(LOOKED, ended_modification(60, GROWN, ModificationState.REQUESTED))
    assert end_modification(asked, ModificationState.COMPLETED, NOW) == asked


def test_after_a_long_blindness_what_was_missed_counts_as_used() -> None:
    blind = replace(LOOKED, looked_at=NOW - 5 * HOUR)
    assert free_slots(add_observation(blind, foreign(HOUR), GROWN, NOW), NOW) == 0
    assert free_slots(add_observation(blind, foreign(6 * HOUR), GROWN, NOW), NOW) == 3


def test_the_next_one_says_that_the_one_before_is_over() -> None:
    running = history(foreign(2 * HOUR, ModificationState.OPTIMIZING, Gp3(150)))
    seen = add_observation(running, foreign(60, ModificationState.MODIFYING), GROWN, NOW)
    expected = [ModificationState.COMPLETED, ModificationState.MODIFYING]
    assert [m.state for m in seen.modifications] == expected


@given(
    ages=st.lists(st.floats(0, 40 * DAY), max_size=8, unique=True),
    state=st.sampled_from(ModificationState),
)
def test_a_history_reads_as_it_was_written(ages: list[float], state: ModificationState) -> None:
    written = history(
        *(ended_modification(age, state=state, original=Gp3(50)) for age in sorted(ages)[::-1])
    )
    assert ledger_from_json(ledger_to_json(written)) == written


@given(ages=st.lists(st.floats(0, 2 * DAY), max_size=6))
def test_the_next_slot_is_one_more_than_now(ages: list[float]) -> None:
    used = history(*(ended_modification(age) for age in sorted(ages, reverse=True)))
    at = next_slot_at(used, NOW)
    free = free_slots(used, NOW)
    assert free == 4 or free_slots(used, at) > free or at == NOW


def hourly(days: float, per_hour: float, start: float = 0.0) -> list[FillSample]:
    count = int(days * 24)
    return [FillSample(NOW - (count - n) * HOUR, start + n * per_hour) for n in range(count)]


def test_a_steady_fill_is_full_when_arithmetic_says() -> None:
    seen = forecast(hourly(7, 1.0), 168.0, NOW)
    assert math.isclose(seen.long_rate * HOUR, 1.0, rel_tol=1e-6)
    found = seen.seconds_until(268.0)
    assert found is not None
    assert math.isclose(found, 100 * HOUR, rel_tol=1e-3)


def test_a_volume_that_empties_is_never_full() -> None:
    assert forecast(hourly(7, -1.0, 1000.0), 832.0, NOW).seconds_until(2000.0) is None


def test_what_is_there_already_is_there_in_no_time() -> None:
    assert forecast([], 100.0, NOW).seconds_until(100.0) == 0.0


def test_a_volume_that_breathes_is_reckoned_at_its_height() -> None:
    swing = [
        FillSample(NOW - (168 - n) * HOUR, 500 + 100 * math.sin(2 * math.pi * n / 24))
        for n in range(168)
    ]
    seen = forecast(swing, 500.0, NOW)
    assert 80 < seen.spread_bytes < 120
    assert seen.seconds_until(580.0) == 0.0
    assert abs(seen.long_rate) * DAY < 20
