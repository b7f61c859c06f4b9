"""The nodes job: what ran on Kafka's nodes, from split cost allocation data: the table NODE_SHARES.

Whether a month has split lines is asked of COST: for a bill without them nothing of the bill is
read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter

from pyspark.sql import functions as F

from spark import tables
from spark.ingest.delivery import Delivery
from spark.rows import Found, grouped, row_type, summed
from spark.tables import Store
from spark.transforms.classify import Component
from spark.transforms.node_shares import AMOUNTS, node_shares

# What a report lists, over all nodes and days.
LISTED = ("cluster", "kind", "namespace", "workload_type", "workload", "currency")
Workload = row_type([*LISTED, "pods", "nodes", *AMOUNTS])


def run(store: Store, delivery: Delivery, periods: Collection[str]) -> None:
    """Replace these delivered months of the node shares table."""
    paid = store.rows(tables.COST, periods)
    is_split = any(row.component == Component.SPLIT.value for row in paid)
    splits = delivery.splits() if is_split else None
    if splits is None:
        store.clear(tables.NODE_SHARES, periods)
        return
    usage = store.read(tables.USAGE).where(F.col("billing_period").isin(*periods))
    store.replace(tables.NODE_SHARES, node_shares(usage, splits.pods, splits.hours), periods)


def workload_totals(shares: Iterable[Found]) -> list[Found]:
    """Return what a report shows of some months: sums per workload, and of how many pods."""
    key = attrgetter(*LISTED)
    return [
        Workload(
            *known,
            len({row.pod for row in rows} - {None}),
            len({row.instance_id for row in rows}),
            *(summed(rows, name) for name in AMOUNTS),
        )
        for known, rows in grouped(shares, key).items()
    ]
