"""Decides which samples of Prometheus a report needs, and in which questions an hour is copied.

An hour is filed once it is whole, under a name that says which: filing it again writes the same.
No question asks for more samples than a function has memory for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from core.volumes import series

HOUR_SECONDS = 3600.0
# Samples arrive late: a scrape, a remote write and its retries.
SETTLED_SECONDS = 600.0
# What was not filed in a day is not asked for again: most keep a day, and nobody waits for it.
CATCH_UP_HOURS = 24
# One answer: some 10 MB of text, and 30 MB once it is read.
MOST_SAMPLES = 200_000
# In the folder that the job reads; what somebody else put there has another name.
KEY_PREFIX = "hour-"
_KAFKA = "kafka_server_"


@dataclass(frozen=True, slots=True)
class WantedMetric:
    """One metric: how finely, of whom, and whether a broker's many series are summed to one."""

    metric: str
    step_seconds: float
    of: str
    summed: bool = False


def _wanted_series() -> Iterator[WantedMetric]:
    # A catch-up is told to a step, so what a restart is seen by comes finely.
    for name in ("bytesin", "bytesout", "replicationbytesin"):
        yield WantedMetric(f"{_KAFKA}brokertopicmetrics_{name}persec_total", 15.0, "broker")
    for name in ("underreplicatedpartitions", "partitioncount"):
        yield WantedMetric(f"{_KAFKA}replicamanager_{name}", 15.0, "broker")
    # A series for every partition, of which reports need the sum.
    yield WantedMetric("kafka_log_log_size", 60.0, "broker", summed=True)
    yield WantedMetric("kubelet_volume_stats_used_bytes", 300.0, "claim")
    for name in series.OF_LOAD:
        yield WantedMetric(name, series.STEP_SECONDS, "volume")


WANTED = tuple(_wanted_series())


@dataclass(frozen=True, slots=True)
class Whose:
    """The cluster whose samples are filed; `labels` tell it from others in one Prometheus."""

    cluster: str
    namespace: str
    labels: Mapping[str, str]


def key(begin: float) -> str:
    """Return the name under which the hour that begins then is filed."""
    return f"{KEY_PREFIX}{datetime.fromtimestamp(begin, UTC).strftime('%Y-%m-%dT%H')}.json.gz"


def hours_due(now: float, filed: Collection[str]) -> Iterator[float]:
    """Yield the begins of hours that are whole and not filed, the oldest first: it is forgotten."""
    last = math.floor((now - SETTLED_SECONDS) / HOUR_SECONDS) * HOUR_SECONDS - HOUR_SECONDS
    for hours_ago in reversed(range(CATCH_UP_HOURS)):
        begin = last - hours_ago * HOUR_SECONDS
        if key(begin) not in filed:
            yield begin


def before_due(now: float) -> str:
    """Return a name that stands before those of all hours that may still be due."""
    return key(now - (CATCH_UP_HOURS + 2) * HOUR_SECONDS)


def expression(wanted: WantedMetric, whose: Whose) -> str:
    """Return what is asked: the series as they are, counters with their resets."""
    if wanted.of == "claim":
        like = {series.CLAIM_LABEL: f"data-[0-9]+-{whose.cluster}-.+"}
        return wanted.metric + series.matching({"namespace": whose.namespace, **whose.labels}, like)
    if wanted.of == "volume":
        return wanted.metric + series.matching(whose.labels, {series.VOLUME_LABEL: ".+"})
    own = {} if wanted.summed else {"topic": ""}
    like = {"pod": f"{whose.cluster}-.+-[0-9]+"}
    selected = wanted.metric + series.matching({**own, **whose.labels}, like)
    return f"sum without (topic, partition) ({selected})" if wanted.summed else selected


def count_expression(asked: str) -> str:
    """Return what says how many series an hour has, those that ended in it too."""
    return f"count(count_over_time(({asked})[1h:5m]))"


def slices(wanted: WantedMetric, begin: float, series_count: int) -> Iterator[tuple[float, float]]:
    """Yield the begins and ends of the questions for an hour, each of MOST_SAMPLES at most.

    Nothing is asked where there is no series, and the next hour's first moment is the next file's.
    """
    if not series_count:
        return
    moments = max(1, MOST_SAMPLES // series_count)
    last = begin + HOUR_SECONDS - wanted.step_seconds
    while begin <= last:
        end = min(begin + (moments - 1) * wanted.step_seconds, last)
        yield begin, end
        begin = end + wanted.step_seconds
