"""The unit job: what a GiB produced, a GiB kept for a month, a partition and a broker cost.

Cost is net and amortised, so that a discount or a commitment counts and a month's worth of it is
not paid on one day. What no provider of computing sold (taxes, credits, Marketplace, support) has
no cluster and is not in it. Units that were not measured are null, never 0. A day counts as
complete once a later one is on the bill, or its month is final: AWS bills with a day's delay, and
half a day would look like a cheap one.
"""

from __future__ import annotations

import statistics
from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from core.cost.pricing import BYTES_PER_GIB
from spark.months import is_of_its_month
from spark.rows import Found, grouped, row_type, summed
from spark.samples import LOG_SIZE, PARTITIONS, Series, day_of
from spark.schemas import UNIT
from spark.transforms.transfer import DailyTraffic

_Row = row_type(UNIT)


@dataclass(frozen=True, slots=True)
class Size:
    """What a cluster held on a day, averaged over it, and how many there were of what at most."""

    retained_gib: float | None
    partitions: float | None
    brokers: int


def unit_rows(
    cost: Iterable[Found],
    traffic: DailyTraffic,
    samples: Iterable[Series],
    last_complete: date | None,
) -> list[Found]:
    """Return the UNIT table of COST rows: a row per cluster and day."""
    sizes = daily_sizes(samples)
    own = (row for row in cost if row.cluster is not None and is_of_its_month(row))
    found = []
    for key, rows in grouped(own, lambda row: (row.billing_period, row.day, row.cluster)).items():
        period, day, cluster = key
        paid, moved = summed(rows, "net_cost"), traffic.get((day, cluster))
        gib = None if moved is None else moved.produced_bytes / BYTES_PER_GIB
        size = sizes.get((day, cluster), Size(None, None, 0))
        brokers = size.brokers if (day, cluster) in sizes else None
        month_cost = float(paid) * monthrange(day.year, day.month)[1]
        found.append(
            _Row(
                period,
                day,
                cluster,
                last_complete is not None and day <= last_complete,
                paid,
                gib,
                size.retained_gib,
                size.partitions,
                brokers,
                _per(float(paid), gib),
                _per(month_cost, size.retained_gib),
                _per(month_cost, size.partitions),
                _per(month_cost, brokers),
            )
        )
    return found


def daily_sizes(samples: Iterable[Series]) -> dict[tuple[date, str], Size]:
    """Return what each cluster held on each day.

    The controllers' own topic is on no list of partitions; a broker that is away counts when it is
    there.
    """
    sizes: dict[tuple[str, float], float] = defaultdict(float)
    partitions: dict[tuple[str, float], float] = defaultdict(float)
    brokers: dict[tuple[str, float], set[int]] = defaultdict(set)
    for series in samples:
        for at, value in series.points if series.name in (LOG_SIZE, PARTITIONS) else ():
            moment = (series.cluster or "", at)
            if series.name == LOG_SIZE:
                sizes[moment] += value
                continue
            partitions[moment] += value
            if series.node_id is not None:
                brokers[moment].add(series.node_id)
    days = grouped(sizes.keys() | partitions.keys(), lambda moment: (day_of(moment[1]), moment[0]))
    found = {}
    for key, moments in days.items():
        held = [sizes[moment] for moment in moments if moment in sizes]
        replicas = [partitions[moment] for moment in moments if moment in partitions]
        found[key] = Size(
            statistics.fmean(held) / BYTES_PER_GIB if held else None,
            max(replicas, default=None),
            max(len(brokers[moment]) for moment in moments),
        )
    return found


def _per(cost: float, units: float | None) -> float | None:
    return cost / units if units else None
