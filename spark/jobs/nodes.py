"""The nodes job: what ran on Kafka's nodes, from split cost allocation data: the table NODE_SHARES.

Whether a month has split lines is asked of COST: for a bill without them nothing of the bill is
read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter

from spark import tables
from spark.ingest.delivery import Delivery
from spark.rows import Found, grouped, row_type, summed
from spark.rules.names import Component
from spark.tables import Store
from spark.transforms.node_shares import AMOUNTS, node_shares, parts_of_hours

# What a report lists, over all nodes and days.
LISTED = ("cluster", "kind", "namespace", "workload_type", "workload", "currency")
Workload = row_type([*LISTED, "pods", "nodes", *AMOUNTS])


def run(store: Store, delivery: Delivery, periods: Collection[str]) -> None:
    """Replace these delivered months of the node shares table."""
    paid = store.rows(tables.COST, periods)
    shares: list[Found] = []
    if delivery.opened.has_splits and any(row.component == Component.SPLIT.value for row in paid):
        usage = store.rows(tables.USAGE, periods, component=Component.BROKER_COMPUTE.value)
        instances = {row.resource_id for row in usage if row.resource_id is not None}
        parts = parts_of_hours(delivery.instance_hours(instances))
        shares = node_shares(usage, delivery.pod_shares(parts))
    store.replace(tables.NODE_SHARES, shares, periods)


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
