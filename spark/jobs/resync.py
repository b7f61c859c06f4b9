"""The resync job: what each rotation took and cost, beside what the model says of it.

    rotations + samples -> measured -> core.cost.resync, row by row -> table

The physics is core.cost.resync's and stands nowhere else. Gross money is for all bytes of
the catch-up, incremental for those that would not have crossed between zones without the rotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from core.cost import economics, pricing, resync
from core.cost.pricing import PriceBook
from core.ground import instances
from core.settings.facts import Facts
from spark.rows import Found, row_from
from spark.samples import Series
from spark.schemas import RESYNC
from spark.transforms.rotations import Measured, measured_rotation

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
        found.append(_row(rotation, measured, rate, facts, book))
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


def _row(row: Found, measured: Measured, rate: Rate | None, facts: Facts, book: PriceBook) -> Found:
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
        RESYNC,
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
