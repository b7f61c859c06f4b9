"""Says why bytes moved and what that cost: transfer lines by their meter, inter-AZ bytes by flow.

The bill knows that bytes crossed zones, not why. A cluster's own counters do: what producers sent,
what followers fetched, what consumers read. With brokers in Z zones, balanced, (Z-1)/Z of what is
produced crosses on its way in and (Z-1)/Z of what is consumed on its way out, unless consumers
fetch from their own zone: where brokers let them and nobody knows which do, no more is theirs than
the bill leaves beside the other flows. What followers fetch crosses whole, since replicas stand in
different zones. A broker's account is billed once for a byte from or to a client, and on both sides
for one between brokers. The billed money is shared out by these bytes, never more of them than were
billed; what no flow explains stays visible.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from core.cost.pricing import total
from spark.rows import NOTHING, Found, row_type, rows_of
from spark.rules.meters import Certainty, Flow
from spark.samples import (
    BYTES_IN,
    BYTES_OUT,
    REPLICATION_IN,
    Series,
    day_of,
    increases,
    of_all_topics,
)
from spark.tables import TRANSFER
from spark.transforms.grain import added_up

# AWS writes GB and bills GiB.
BYTES_PER_GB = 1 << 30
# Of a share, and of the money that it is a share of.
_SHARE_PLACES, _COST_PLACES = Decimal("1e-12"), Decimal("1e-12")
_MONEY_PLACES = Decimal("1e-18")
_DIGITS = 60
_Row = row_type(TRANSFER.schema)

MEASURED = (Flow.PRODUCE, Flow.REPLICATE, Flow.CONSUME)


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


def transfer_rows(grain: pa.Table, traffic: DailyTraffic) -> list[Found]:
    """Return the TRANSFER table: what transfer cost, shared out among flows by counters.

    A cluster and day without counters keeps one row, whose flow is not known. What the rows of a
    cluster and day hold adds up to what was billed.
    """
    moved = grain.filter(pc.is_valid(grain["flow"]))
    keys = ("billing_period", "day", "cluster", "flow", "currency")
    found: list[Found] = []
    for period, day, cluster, flow, currency, _, gigabytes, *costs, _ in rows_of(
        added_up(moved, keys)
    ):
        with localcontext(prec=_DIGITS):
            size = int((gigabytes * BYTES_PER_GB).to_integral_value(ROUND_HALF_UP))
        known = traffic.get((day, cluster)) if flow == Flow.UNEXPLAINED.value else None
        if known is None:
            parts = iter([(Flow(flow), Certainty.BILLED, size, costs)])
        else:
            parts = _shared_out(known, size, costs)
        for of_flow, certainty, part_bytes, part in parts:
            saving = part[0] if of_flow is Flow.CONSUME else NOTHING
            found.append(
                _Row(
                    period,
                    day,
                    cluster,
                    of_flow.value,
                    certainty.value,
                    currency,
                    part_bytes,
                    *part,
                    saving,
                )
            )
    return found


def _shared_out(
    known: Traffic, size: int, costs: list[Decimal]
) -> Iterator[tuple[Flow, Certainty, int, list[Decimal]]]:
    """Yield what each flow has of a day's crossing bytes and money, and last what is left."""
    crossed = _crossing_bytes(known, size)
    # Counters may see more than was billed (a scrape too many): then the bill is all there is.
    whole = max(sum(crossed.values()), float(size))
    left_bytes, left = size, costs
    for flow in MEASURED:
        share = crossed[flow] / whole if whole > 0 else 0.0
        if share <= 0:
            continue
        part_bytes = math.floor(size * share)
        part = [_part(cost, share) for cost in costs]
        left_bytes -= part_bytes
        left = [total((rest, -taken)) for rest, taken in zip(left, part, strict=True)]
        is_open = flow is Flow.CONSUME and known.follower_fetching is not False
        yield flow, Certainty.AT_MOST if is_open else Certainty.SHARED, part_bytes, part
    if left_bytes or left[0]:
        yield Flow.UNEXPLAINED, Certainty.BILLED, left_bytes, left


def _crossing_bytes(known: Traffic, billed_bytes: int) -> dict[Flow, float]:
    """Return, by flow, the bytes that counters say were billed for crossing zones.

    Those of consumers, where they may stay in their zone, are no more than the bill leaves.
    """
    remote = (known.zones - 1) / known.zones if known.zones > 1 else 0.0
    produced = known.produced_bytes * remote
    replicated = known.replicated_bytes * (2.0 if known.zones > 1 else 0.0)
    consumed = known.consumed_bytes * remote
    if known.follower_fetching:
        consumed = min(consumed, max(billed_bytes - produced - replicated, 0.0))
    return {Flow.PRODUCE: produced, Flow.REPLICATE: replicated, Flow.CONSUME: consumed}


def _part(cost: Decimal, share: float) -> Decimal:
    with localcontext(prec=_DIGITS):
        part = cost.quantize(_COST_PLACES, ROUND_HALF_UP) * Decimal(share).quantize(
            _SHARE_PLACES, ROUND_HALF_UP
        )
        return part.quantize(_MONEY_PLACES, ROUND_HALF_UP)
