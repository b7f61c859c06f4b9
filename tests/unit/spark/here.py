"""Bills read by this process alone: what a worker makes of them, without Java."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark import rows
from spark.ingest import bill
from spark.ingest.delivery import Delivery
from spark.ingest.share import USAGE_ROWS
from spark.tag_keys import OURS, KafkaTags
from spark.transforms.grain import grain_of, net_of_discounts


def opened(path: Path, kafka: KafkaTags = OURS, months: Sequence[str] = ()) -> Delivery:
    return bill.read(path, kafka=kafka, months=months)


def usage(path: Path, kafka: KafkaTags = OURS) -> list[Any]:
    """Return the USAGE of a bill, and what stands beside it."""
    return rows.rows_of(net_of_discounts(opened(path, kafka).usage()))


def usage_rows(delivery: Delivery) -> list[Any]:
    """Return the USAGE of a bill before discounts, and what stands beside it."""
    return rows.rows_of(delivery.usage())


def grain(*rows: Mapping[str, Any]) -> pa.Table:
    """Return rows of the cost grain, of which only these columns are known."""
    return pa.Table.from_pylist(list(rows), grain_of(USAGE_ROWS.empty_table()).schema)


def quarantine(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a bill that cannot be read, each with its reason."""
    return [row._asdict() for row in opened(path).unread_lines]
