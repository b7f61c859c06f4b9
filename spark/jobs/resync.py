"""The resync job: what each rotation took and cost, beside what the model says of it.

    rotations + samples -> guard -> measured -> core.cost.resync, row by row -> guard -> table

A cluster rotates tens of times a month, so the rows fit in the driver once Spark has read the
samples; the physics is core.cost.resync's and stands nowhere else. Gross money is for all bytes of
the catch-up, incremental for those that would not have crossed between zones without the rotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from core.cost import economics, pricing, resync
from core.cost.pricing import PriceBook
from core.ground import instances
from core.settings.facts import Facts
from spark.findings import RESYNC, ROTATIONS, SAMPLES
from spark.schemas import require_schema
from spark.transforms import rotations as transform

METRICS, LEDGER = "metrics", "ledger"


@dataclass(frozen=True, slots=True)
class Rate:
    """What replication brings in, and how that is known."""

    bytes_per_s: float
    known_from: str


def run(
    session: SparkSession, rotations: DataFrame, samples: DataFrame, facts: Facts, book: PriceBook
) -> DataFrame:
    """Return the RESYNC table of one cluster's rotations."""
    history = require_schema(rotations, ROTATIONS, "The resync job's history")
    seen = require_schema(samples, SAMPLES, "The resync job's samples")
    rows = sorted(
        transform.measured_rotations(history, seen).collect(),
        key=lambda row: (row.closed_at, row.incident),
    )
    found = session.createDataFrame(list(_modelled_rows(rows, facts, book)), RESYNC)
    return require_schema(found, RESYNC, "The resync table")


def _modelled_rows(rows: Sequence[Row], facts: Facts, book: PriceBook) -> Iterable[tuple[Any, ...]]:
    """Yield the rows; each is modelled by what was known before it."""
    seen: list[float] = []
    for row in rows:
        rate = rate_for(row.pool, seen, facts)
        yield _row(row, rate, facts, book)
        if row.moved_bytes and row.catch_up_seconds:
            seen.append(row.moved_bytes / row.catch_up_seconds)


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


def _row(row: Row, rate: Rate | None, facts: Facts, book: PriceBook) -> tuple[Any, ...]:
    """Return one row of RESYNC, in its order."""
    total = _seconds(row.stopped_at, row.back_at)
    from_metrics = row.down_seconds is not None
    down = row.down_seconds if from_metrics else None
    away = down if down is not None else total
    append, moved = row.append_bytes_per_s, row.moved_bytes
    incremental = None
    if moved is not None and append is not None and down is not None:
        incremental = moved - append * (down + row.catch_up_seconds)
    model = empty = None
    held = row.held_bytes
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
    return (
        row.billing_period,
        row.cluster,
        row.incident,
        row.node_id,
        row.zone,
        row.kind,
        row.outcome,
        row.last_seen_at or row.stopped_at or row.opened_at,
        METRICS if from_metrics else LEDGER,
        row.resolution_seconds,
        down,
        row.catch_up_seconds,
        total if down is None or row.catch_up_seconds is None else down + row.catch_up_seconds,
        append,
        moved,
        _whole(incremental),
        rate.bytes_per_s if rate else None,
        rate.known_from if rate else None,
        model.seconds if model else None,
        _whole(model.gross_bytes) if model else None,
        _whole(held),
        empty.seconds if empty else None,
        _whole(empty.gross_bytes) if empty else None,
        _crossing(moved, book),
        _crossing(None if incremental is None else max(0.0, incremental), book),
        _crossing(max(0.0, empty.incremental_bytes) if empty else None, book),
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
