"""Forecasts a cluster's next rotation from the rows of those before."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from core.cost import resync
from spark.report.evidence import Found


@dataclass(frozen=True, slots=True)
class RotationForecast:
    """The next rotation, as the model and the ones before it see it; None of what is not known."""

    cluster: str
    down_seconds: float
    catch_up_seconds: float | None
    low_seconds: float
    high_seconds: float
    moved_bytes: float | None
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
        moved_bytes=way.gross_bytes if way else None,
        empty_seconds=empty.seconds if empty else None,
        empty_cost=latest.empty_cost,
        rotations=len(known),
    )
