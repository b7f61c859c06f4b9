"""Reads rotations from the samples, and forecasts the next: how long the broker is away, and back.

The stop and the return are read from the broker's own counters, which begin again; that it is in
every ISR again from the partitions that the other brokers lead and call under-replicated. Every
time is known to one step of the samples, so `resolution_seconds` goes along.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from core.cost import resync
from spark.rows import Found
from spark.samples import (
    BYTES_IN,
    LOG_SIZE,
    REPLICATION_IN,
    UNDER_REPLICATED,
    Increase,
    Series,
    increases,
    moment_of,
    of_all_topics,
    seconds_of,
)

# Samples that must agree before a broker counts as back: one may lie between two shrinks.
AGREEING = 2
BEFORE_SECONDS = 900
AFTER_SECONDS = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of a rotation; what was not is None."""

    last_seen_at: datetime | None = None
    resolution_seconds: float | None = None
    down_seconds: float | None = None
    catch_up_seconds: float | None = None
    append_bytes_per_s: float | None = None
    moved_bytes: int | None = None
    held_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class _Restart:
    """The interval in which a broker was away: where a counter begins again."""

    last_seen: float
    returned: float
    step_seconds: float


def measured_rotation(rotation: Found, samples: Iterable[Series]) -> Measured:
    """Return what the samples say of one rotation of ROTATIONS."""
    opened, closed = seconds_of(rotation.opened_at), seconds_of(rotation.closed_at)
    known = [at for at in (opened, closed) if at is not None]
    first, last = known[0] - BEFORE_SECONDS, known[-1] + AFTER_SECONDS
    of_cluster = [series for series in samples if series.cluster == rotation.cluster]
    own = [series for series in of_cluster if series.node_id == rotation.node_id]
    counted = [
        (series.name, each)
        for series in of_all_topics(own, BYTES_IN, REPLICATION_IN)
        for each in increases(series)
        if first <= each.at <= last
    ]
    restart = _restart([each for name, each in counted if name == REPLICATION_IN], opened)
    if restart is None:
        return Measured()
    in_sync = _in_sync_at(restart, of_cluster, rotation.node_id, last)
    before = [(name, each) for name, each in counted if each.at <= restart.last_seen]
    seconds = sum(each.seconds for name, each in before if name == REPLICATION_IN)
    caught_up = [
        each.value
        for name, each in counted
        if name == REPLICATION_IN and in_sync is not None and restart.last_seen < each.at <= in_sync
    ]
    half = restart.step_seconds / 2
    away = restart.returned - restart.last_seen - restart.step_seconds
    return Measured(
        last_seen_at=moment_of(restart.last_seen),
        resolution_seconds=restart.step_seconds,
        # The stop lies within a step after the last sample, the start within one before the first:
        # on average half of each.
        down_seconds=max(away, 0.0),
        catch_up_seconds=None if in_sync is None else in_sync - restart.returned + half,
        append_bytes_per_s=sum(each.value for _, each in before) / seconds if seconds else None,
        moved_bytes=int(sum(caught_up)) if caught_up else None,
        held_bytes=_held_bytes(restart, own),
    )


def _restart(replication: Sequence[Increase], opened: float | None) -> _Restart | None:
    """Return the likeliest restart since a rotation began: the longest gap before a new count."""
    if not replication or opened is None:
        return None
    step = statistics.median(each.seconds for each in replication)
    begun = [each for each in replication if each.began_again and each.at >= opened]
    if not begun:
        return None
    likeliest = max(begun, key=lambda each: (each.seconds, -each.at))
    return _Restart(likeliest.since, likeliest.at, step)


def _in_sync_at(
    restart: _Restart, of_cluster: Iterable[Series], node_id: int, last: float
) -> float | None:
    """Return when the broker was back in every ISR, as the leaders of its partitions say."""
    short: dict[float, float] = defaultdict(float)
    for series in of_cluster:
        if series.name == UNDER_REPLICATED and series.node_id not in (None, node_id):
            for at, value in series.points:
                if at <= last:
                    short[at] += value
    moments = sorted(short)
    # What was short before the rotation is somebody else's.
    before = [short[at] for at in moments if at <= restart.last_seen]
    usual = before[-1] if before else 0.0
    for place, at in enumerate(moments):
        next_ones = moments[place : place + AGREEING]
        agreed = len(next_ones) == AGREEING and all(short[each] <= usual for each in next_ones)
        if at >= restart.returned and agreed:
            return at
    return None


def _held_bytes(restart: _Restart, own: Iterable[Series]) -> int | None:
    """Return what the broker held when it was last seen."""
    held = []
    for series in own:
        near = [
            value
            for at, value in series.points
            if restart.last_seen - BEFORE_SECONDS <= at <= restart.last_seen
        ]
        if series.name == LOG_SIZE and near:
            held.append(near[-1])
    return int(sum(held)) if held else None


@dataclass(frozen=True, slots=True)
class RotationForecast:
    """The next rotation, as the model and the ones before it see it; None of what is not known."""

    cluster: str
    down_seconds: float
    catch_up_seconds: float | None
    low_seconds: float
    high_seconds: float
    empty_seconds: float | None
    empty_cost: Decimal | None
    rotations: int


def forecast(rows: Sequence[Found]) -> RotationForecast | None:
    """Return what the next rotation of a cluster should take, or None without one to go by.

    The model's catch-up after the median outage; the interval spans how long those before took in
    all, widened to hold the model's own answer.
    """
    known = [row for row in rows if row.total_seconds is not None]
    if not known:
        return None
    latest = known[-1]
    downs = [row.down_seconds for row in known if row.down_seconds is not None]
    down = statistics.median(downs or [row.total_seconds for row in known])
    way = empty = None
    rate, append = latest.rate_bytes_per_s, latest.append_bytes_per_s
    if rate is not None and append is not None:
        flow = resync.Flow(append_bytes_per_s=append, replication_bytes_per_s=rate)
        way = resync.ending(resync.after_outage(flow, outage_seconds=down))
        empty = resync.ending(
            resync.after_loss(flow, outage_seconds=down, held_bytes=latest.held_bytes or 0.0)
        )
    totals = sorted(row.total_seconds for row in known)
    expected = down + (way.seconds if way and downs else 0.0)
    return RotationForecast(
        cluster=latest.cluster,
        down_seconds=down,
        catch_up_seconds=way.seconds if way else None,
        low_seconds=min(totals[0], expected),
        high_seconds=max(totals[-1], expected),
        empty_seconds=empty.seconds if empty else None,
        empty_cost=latest.empty_cost,
        rotations=len(known),
    )
