"""Sums what a cluster's brokers took in and gave out each day: for the transfer and unit jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from spark.samples import (
    BYTES_IN,
    BYTES_OUT,
    REPLICATION_IN,
    Series,
    day_of,
    increases,
    of_all_topics,
)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a cluster's brokers took in and gave out on a day."""

    produced_bytes: int  # sum of BytesInPerSec over brokers: excludes replication
    replicated_bytes: int  # sum of ReplicationBytesInPerSec over brokers
    consumed_bytes: int  # sum of BytesOutPerSec over brokers: excludes replication
    zones: int
    # Whether brokers let consumers read from their own zone; each consumer decides. None where that
    # is not known.
    follower_fetching: bool | None = None


# By day and cluster.
DailyTraffic = Mapping[tuple[date, str], Traffic]


def traffic(
    samples: Iterable[Series], zones: int, *, follower_fetching: bool | None = None
) -> dict[tuple[date, str], Traffic]:
    """Return the traffic of each day; what fell between two days counts on the later.

    No counter of a broker tells bytes it served as a follower from those it served as a leader,
    and consumers alone know which replica they prefer: what the brokers allow is all there is.
    """
    sums: dict[tuple[date, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for series in of_all_topics(samples, BYTES_IN, BYTES_OUT, REPLICATION_IN):
        for each in increases(series):
            sums[day_of(each.at), series.cluster or ""][series.name] += each.value
    return {
        key: Traffic(
            int(counted[BYTES_IN]),
            int(counted[REPLICATION_IN]),
            int(counted[BYTES_OUT]),
            zones,
            follower_fetching,
        )
        for key, counted in sums.items()
    }
