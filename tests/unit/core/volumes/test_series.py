"""What Prometheus's answers say of a volume, and that what is missing is named, never a zero."""

from __future__ import annotations

import pytest

from core.volumes import series
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
def test_a_missing_series_leaves_its_figure_unknown_and_is_named(
    missing: str, unknown: str
) -> None:
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
