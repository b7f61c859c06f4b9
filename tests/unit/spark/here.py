"""Bills read by this process alone: what a worker makes of them, without Java."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark import arrow_rows
from spark.ingest import bill
from spark.ingest.delivery import Delivery
from spark.ingest.share import USAGE_ROWS
from spark.ingest.unread_lines import UnreadJob
from spark.tag_keys import OURS, KafkaTags
from spark.transforms.grain import grain_of, net_of_discounts


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
    return arrow_rows.rows_of(net_of_discounts(opened(path, kafka).usage()))


def usage_rows(delivery: Delivery) -> list[Any]:
    """Return the USAGE of a bill before discounts, and what stands beside it."""
    return arrow_rows.rows_of(delivery.usage())


def grain(*rows: Mapping[str, Any]) -> pa.Table:
    """Return rows of the cost grain, of which only these columns are known."""
    return pa.Table.from_pylist(list(rows), grain_of(USAGE_ROWS.empty_table()).schema)


def quarantine(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a bill that cannot be read, each with its reason."""
    delivery = opened(path)
    names = frozenset(name.lower() for piece in delivery.pieces for name in piece.columns)
    return made(delivery, lambda shares, layout: UnreadJob(shares, layout, names))
