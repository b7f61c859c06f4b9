"""Makes rotations of the ledger's archive: what each took and cost, and what the next should take.

    archive -> ROTATIONS, + samples -> measured -> core.cost.resync, row by row -> RESYNC

The sweep writes the archive (handlers.incidents.broom): one JSON line per incident, in a folder per
day it ended. A rotation is an incident of a Kafka node that is over; of rounds filed twice the
later line counts.

The stop and the return are read from the broker's own counters, which begin again; that it is in
every ISR again from the partitions that the other brokers lead and call under-replicated. Every
time is known to one step of the samples, so `resolution_seconds` goes along. Gross money is for all
bytes of the catch-up, incremental for those that would not have crossed between zones without the
rotation.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from core.cost import economics, pricing, resync
from core.cost.pricing import PriceBook
from core.ground import instances
from core.ground.errors import InvalidInput
from core.settings.facts import Facts
from spark.files import Files
from spark.rows import Found, row_from, row_type
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
from spark.tables import RESYNC, ROTATIONS

_TIMES = ("opened_at", "forwarded_at", "lost_at", "broker_back_at", "closed_at")
_RotationRow = row_type(ROTATIONS.schema)


def read_history(files: Files, address: str, *, archive_name: str, cluster: str) -> list[Found]:
    """Return the ROTATIONS of one cluster, under the name its bill knows it by.

    `archive_name` is what the archive calls it (environment and name). Raises InvalidInput for a
    folder that cannot be read or holds a line that is no JSON.
    """
    what = f"The rotation history {address}"
    if not (files.is_folder(address) or files.is_file(address)):
        raise InvalidInput([f"{what} is not there; name the folder of the ledger's archive."])
    names = [address] if files.is_file(address) else files.below(address, ".jsonl")
    lines = [line for name in names for line in files.read(name).splitlines() if line.strip()]
    return rotations((_incident(line, what) for line in lines), archive_name, cluster)


def _incident(line: bytes, what: str) -> dict[str, Any]:
    """Return one line as it is written, its times as numbers."""
    try:
        found = json.loads(line)
        times = {name: None if found.get(name) is None else float(found[name]) for name in _TIMES}
        node_id = None if found.get("node_id") is None else int(found["node_id"])
    except (ValueError, TypeError, AttributeError):
        shown = line.decode(errors="replace")[:80]
        problem = f"{what} holds a line that is not an incident: {shown!r}; remove it."
        raise InvalidInput([problem]) from None
    return {**found, **times, "node_id": node_id}


def rotations(lines: Iterable[Mapping[str, Any]], archive_name: str, cluster: str) -> list[Found]:
    """Turn the archive's lines into ROTATIONS of one cluster."""
    latest: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        is_over = line["closed_at"] is not None and line["node_id"] is not None
        if line.get("cluster") not in (archive_name, cluster) or not is_over:
            continue
        known = latest.get(line["id"])
        if known is None or line["closed_at"] > known["closed_at"]:
            latest[line["id"]] = line
    return [_rotation(line, cluster) for line in latest.values()]


def _rotation(line: Mapping[str, Any], cluster: str) -> Found:
    opened, forwarded, lost, back, closed = (moment_of(line[name]) for name in _TIMES)
    return _RotationRow(
        billing_period=f"{closed:%Y-%m}",
        cluster=cluster,
        incident=line["id"],
        instance_id=line.get("instance_id"),
        node_id=line["node_id"],
        zone=line.get("zone"),
        pool=line.get("pool"),
        kind=line.get("kind"),
        outcome=line.get("state"),
        opened_at=opened,
        stopped_at=forwarded or lost,
        back_at=back,
        closed_at=closed,
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


METRICS, LEDGER = "metrics", "ledger"
_OF_ROTATION = ("billing_period", "cluster", "incident", "node_id", "zone", "kind", "outcome")


@dataclass(frozen=True, slots=True)
class Rate:
    """What replication brings in, and how that is known."""

    bytes_per_s: float
    known_from: str


def resync_rows(
    rotations: Iterable[Found], samples: Sequence[Series], facts: Facts, book: PriceBook
) -> list[Found]:
    """Return the RESYNC table of one cluster's rotations; each is modelled by those before it."""
    found: list[Found] = []
    seen: list[float] = []
    for rotation in sorted(rotations, key=lambda row: (row.closed_at, row.incident)):
        measured = measured_rotation(rotation, samples)
        rate = rate_for(rotation.pool, seen, facts)
        found.append(_resync_row(rotation, measured, rate, facts, book))
        if measured.moved_bytes and measured.catch_up_seconds:
            seen.append(measured.moved_bytes / measured.catch_up_seconds)
    return found


def rate_for(pool: str | None, seen: Sequence[float], facts: Facts) -> Rate | None:
    """Return the rate of a catch-up: the fastest seen before, or else the tightest known limit.

    A short catch-up never reaches what is possible, so of those that were seen the fastest says
    most; and none of them exceeds a limit that is known.
    """
    if seen:
        return Rate(max(seen), f"the fastest of {len(seen)} before")
    found = facts.pool_of(pool) or next(iter(facts.brokers), None)
    if found is None:
        return None
    limits = {}
    if instance := instances.table().types.get(found.instance_type):
        limits["the instance's EBS baseline"] = instance.ebs_mb_per_s * instances.BYTES_PER_MB
    if rates := pricing.table().get(found.instance_type):
        limits["the instance's network baseline"] = rates.network_bytes_per_s
    limits["the volumes' throughput"] = float(
        sum(volume.throughput_mib_per_s for volume in found.volumes) * instances.BYTES_PER_MIB
    )
    name, bytes_per_s = resync.slowest(limits)
    return Rate(bytes_per_s, name)


def _resync_row(
    row: Found, measured: Measured, rate: Rate | None, facts: Facts, book: PriceBook
) -> Found:
    total = _seconds(row.stopped_at, row.back_at)
    down, catch_up = measured.down_seconds, measured.catch_up_seconds
    away = down if down is not None else total
    append, moved = measured.append_bytes_per_s, measured.moved_bytes
    incremental = None
    if moved is not None and append is not None and down is not None and catch_up is not None:
        incremental = moved - append * (down + catch_up)
    model = empty = None
    held: float | None = measured.held_bytes
    if rate is not None and append is not None and away is not None:
        flow = resync.Flow(
            append_bytes_per_s=append,
            replication_bytes_per_s=rate.bytes_per_s,
            limited_by=rate.known_from,
        )
        if held is None:
            held = resync.held_bytes(append, facts.retention_seconds)
        model = resync.ending(resync.after_outage(flow, outage_seconds=away))
        empty = resync.ending(resync.after_loss(flow, outage_seconds=away, held_bytes=held))
    return row_from(
        RESYNC.schema,
        replace(measured, held_bytes=_whole(held)),
        **{name: getattr(row, name) for name in _OF_ROTATION},
        started_at=measured.last_seen_at or row.stopped_at or row.opened_at,
        measured_from=LEDGER if down is None else METRICS,
        total_seconds=total if down is None or catch_up is None else down + catch_up,
        incremental_bytes=_whole(incremental),
        rate_bytes_per_s=rate.bytes_per_s if rate else None,
        rate_from=rate.known_from if rate else None,
        model_seconds=model.seconds if model else None,
        model_bytes=_whole(model.gross_bytes) if model else None,
        empty_seconds=empty.seconds if empty else None,
        empty_bytes=_whole(empty.gross_bytes) if empty else None,
        gross_cost=_crossing(moved, book),
        incremental_cost=_crossing(None if incremental is None else max(0.0, incremental), book),
        empty_cost=_crossing(max(0.0, empty.incremental_bytes) if empty else None, book),
    )


def _crossing(size_bytes: float | None, book: PriceBook) -> Decimal | None:
    """Return what bytes cost that are replicated: every replica stands in a zone of its own."""
    if size_bytes is None or book.find("inter_zone_gib") is None:
        return None
    return economics.crossing_usd(float(size_bytes), book).quantize(Decimal("1e-12"))


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else max(0.0, (end - start).total_seconds())


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
