"""Bills read by this process alone: what a worker makes of them, without Java."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark.ingest import bill
from spark.ingest.amounts import PARTS, decimal_of
from spark.ingest.delivery import Delivery
from spark.ingest.share import KEYS, TOTALS, UsageJob
from spark.ingest.unread_lines import UnreadJob
from spark.jobs.summed import SummedHere
from spark.rows import row_type
from spark.tag_keys import OURS, KafkaTags

Row = row_type(["billing_period", "day", *KEYS, "charges", *TOTALS, "has_net"])


def opened(path: Path, kafka: KafkaTags = OURS, months: Sequence[str] = ()) -> Delivery:
    return bill.read(None, path, kafka=kafka, months=months)


def made(delivery: Delivery, job: Callable[..., Any]) -> list[dict[str, Any]]:
    """Return what one worker makes of a bill, a piece a share."""
    shares = [[piece] for piece in delivery.pieces]
    work = job(shares, delivery.layout)
    numbers = pa.RecordBatch.from_pydict({"id": list(range(len(shares)))})
    return [row for batch in work([numbers]) for row in batch.to_pylist()]


def usage(path: Path, kafka: KafkaTags = OURS) -> list[Any]:
    """Return the USAGE of a bill, and what stands beside it."""
    return list(SummedHere(opened(path, kafka).usage_here()).net_of_discounts().rows)


def rows_of(delivery: Delivery) -> list[Any]:
    sums: dict[Any, list[int]] = defaultdict(lambda: [0] * (1 + len(TOTALS) * len(PARTS)))
    nets: dict[Any, bool] = defaultdict(bool)
    for row in made(delivery, UsageJob):
        key = tuple(row[name] for name in ("billing_period", "day", *KEYS))
        parts = [row[f"{name}_{part}"] for name in TOTALS for part in PARTS]
        sums[key] = [a + b for a, b in zip(sums[key], (row["charges"], *parts), strict=True)]
        nets[key] |= row["has_net"]
    found = []
    for key, (charges, *parts) in sums.items():
        each = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        found.append(Row(*key, charges, *(decimal_of(*three) for three in each), nets[key]))
    return found


def quarantine(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a bill that cannot be read, each with its reason."""
    delivery = opened(path)
    names = frozenset(name.lower() for piece in delivery.pieces for name in piece.columns)
    return made(delivery, lambda shares, layout: UnreadJob(shares, layout, names))
