"""The same minutes of the EBS driver's counters, for the report and for the advisor: one answer."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import accumulate

import pytest

from core.volumes import series
from core.volumes.sizing import Policy
from core.volumes.speed import ThrottleLimit, limited_by
from core.volumes.views import Load
from spark.samples import Series
from spark.transforms.volumes import load_by_volume

START = datetime(2026, 11, 20, 14, tzinfo=UTC).timestamp()
MINUTES = 59
# By volume and metric, what each second of a minute adds to the counter.
Rates = Mapping[str, Mapping[str, list[float]]]


def exceeded(volume_minutes: int, instance_minutes: int) -> dict[str, list[float]]:
    """A volume of which more was asked in so many minutes; the rest as it happens to be."""
    dice = random.Random(volume_minutes)  # noqa: S311 - a load, no secret
    iops, throughput = series.VOLUME_EXCEEDED
    rates = {
        iops: [0.0] * MINUTES,
        throughput: [float(n < volume_minutes) for n in range(MINUTES)],
        series.INSTANCE_EXCEEDED[0]: [float(n < instance_minutes) for n in range(MINUTES)],
        series.INSTANCE_EXCEEDED[1]: [0.0] * MINUTES,
    }
    for metric in (*series.OPERATIONS, *series.BYTES):
        rates[metric] = [dice.uniform(0, 1000) for _ in range(MINUTES)]
    return rates


RATES: Rates = {
    "vol-quiet": exceeded(0, 0),
    "vol-just-below": exceeded(5, 0),
    "vol-throttled": exceeded(6, 0),
    "vol-of-a-small-instance": exceeded(6, 30),
    "vol-half-scraped": {
        metric: rates
        for metric, rates in exceeded(30, 30).items()
        if metric not in (series.VOLUME_EXCEEDED[0], series.INSTANCE_EXCEEDED[1])
    },
}


def reported() -> dict[str, Load]:
    """Return what the report makes of the counters."""
    counted = []
    for volume, rates in RATES.items():
        for metric, by_minute in rates.items():
            values = accumulate((60 * rate for rate in by_minute), initial=1000.0)
            points = [(START + 60.0 * n, value) for n, value in enumerate(values)]
            name = metric.removesuffix("_total")
            counted.append(Series(name=name, volume_id=volume, points=points))
    return {
        volume: Load(
            volume_exceeded_share=found["volume_exceeded_share"],
            instance_exceeded_share=found["instance_exceeded_share"],
            iops_p999=found["iops_p999"],
            bytes_per_s_p999=found["throughput_p999_bytes_per_s"],
        )
        for volume, found in load_by_volume(counted).items()
    }


def seen() -> dict[str, Load]:
    """Return what the advisor makes of the same, as Prometheus would give it."""
    points = {
        volume: {
            metric: {60.0 * n: rate for n, rate in enumerate(by_minute)}
            for metric, by_minute in rates.items()
        }
        for volume, rates in RATES.items()
    }
    metrics = {metric for of in points.values() for metric in of}
    found = {metric: {v: of.get(metric, {}) for v, of in points.items()} for metric in metrics}
    return {volume: series.load(volume, found) for volume in RATES}


def test_report_and_advisor_see_the_same_of_the_same_minutes() -> None:
    report, advisor = reported(), seen()
    assert report.keys() == advisor.keys()
    for volume, load in advisor.items():
        of = report[volume]
        for ours, theirs in (
            (of.volume_exceeded_share, load.volume_exceeded_share),
            (of.instance_exceeded_share, load.instance_exceeded_share),
        ):
            assert ours is None if theirs is None else ours == pytest.approx(theirs), volume
        # The percentile of an hour of minutes is as good as its highest.
        assert of.iops_p999 == pytest.approx(load.iops_p999, rel=0.03)
        assert of.bytes_per_s_p999 == pytest.approx(load.bytes_per_s_p999, rel=0.03)
    assert {volume: limited_by(load, Policy()) for volume, load in report.items()} == {
        "vol-quiet": None,
        "vol-just-below": None,
        "vol-throttled": ThrottleLimit.VOLUME,
        "vol-of-a-small-instance": ThrottleLimit.INSTANCE,
        "vol-half-scraped": None,
    }
