"""Says what ran on the nodes of Kafka's pools and what each cost of them, from split lines.

AWS shares a node's amortised hour out among its pods. A node can be paid for by several lines in
one hour (half by a savings plan, half on demand), so a share is scaled by each line's part of the
hours and never joined without that, as the Cloud Intelligence Dashboards do it
(scad_cca_summary_view). What a node cost and no split line explains is a row too: the rows of an
instance and day add up to what the bill's own lines say, which no share ever changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import StrEnum

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from core.cost.pricing import total
from spark.rows import Found, row_type, rows_of
from spark.rules.meters import Attribution
from spark.tables import NODE_SHARES

_DAY = ["billing_period", "day", "resource_id"]
AMOUNTS = ("split_cost", "unused_cost", "net_split_cost", "net_unused_cost")
_OF_POD = ("paid_by", "eks_cluster", "namespace", "workload_type", "workload", "pod", *AMOUNTS)
DAEMON_SET = "DaemonSet"
_Row = row_type(NODE_SHARES.schema)


class ShareKind(StrEnum):
    """What a share of a node is for, in the order the report lists it."""

    KAFKA = "Kafka"
    DAEMON_SET = "daemon set"
    OTHER = "other pod"
    NOT_ALLOCATED = "not allocated"


def node_shares(usage: pa.Table, pods: Iterable[Found]) -> list[Found]:
    """Return NODE_SHARES of nodes' USAGE, and of what pods had of their nodes on each day."""
    nodes = _nodes(usage)
    found: list[Found] = []
    shared: dict[tuple[str, date, str], list[Found]] = {}
    for row in pods:
        node = nodes.get((row.billing_period, row.day, row.instance_id))
        if node is not None:
            made = node._replace(
                kind=_kind(node, row).value,
                **{name: getattr(row, name) for name in _OF_POD},
            )
            shared.setdefault((row.billing_period, row.day, row.instance_id), []).append(made)
            found.append(made)
    for key, node in nodes.items():
        own = shared.get(key, [])
        # What a node's day cost beyond its shares; below 0 where they came to more.
        unused = _less(node.unused_cost, own, "split_cost", "unused_cost")
        net = _less(node.net_unused_cost, own, "net_split_cost", "net_unused_cost")
        if unused or net:
            found.append(node._replace(unused_cost=unused, net_unused_cost=net))
    return found


def _less(cost: Decimal, shares: Sequence[Found], *names: str) -> Decimal:
    return total([cost, *(-getattr(row, name) for row in shares for name in names)])


def _nodes(usage: pa.Table) -> Mapping[tuple[str, date, str], Found]:
    """Return a row per day of a node of Kafka's pools, with what its own lines say it cost.

    One per node and day whatever its lines name: a negation may lack the zone.
    """
    of_pool = pc.equal(usage["attribution"], Attribution.NODE_POOL.value)
    owner = pc.if_else(of_pool, usage["owner"], None)
    lines = usage.drop_columns("owner").append_column("owner", owner)
    # A net that no line says is 0.
    options = pc.ScalarAggregateOptions(min_count=0)
    wanted = [
        *((name, "max") for name in ("cluster", "owner", "zone", "currency")),
        *((name, "sum", options) for name in ("amortised_cost", "net_cost")),
    ]
    of_nodes = lines.filter(pc.starts_with(lines["resource_id"], "i-"))
    sums = of_nodes.group_by(_DAY, use_threads=False).aggregate(wanted)
    known = dict.fromkeys(NODE_SHARES.schema.names) | dict.fromkeys(AMOUNTS, Decimal(0))
    empty = _Row(**known)._replace(kind=ShareKind.NOT_ALLOCATED.value)
    return {
        (row.billing_period, row.day, row.resource_id): empty._replace(
            billing_period=row.billing_period,
            day=row.day,
            instance_id=row.resource_id,
            cluster=row.cluster_max,
            owner=row.owner_max,
            zone=row.zone_max,
            currency=row.currency_max,
            unused_cost=row.amortised_cost_sum,
            net_unused_cost=row.net_cost_sum,
        )
        for row in rows_of(sums.filter(pc.is_valid(sums["owner_max"])))
    }


def _kind(node: Found, share: Found) -> ShareKind:
    """Say what a pod is: a broker's or controller's is named after the node pool it is in."""
    prefix = f"{node.cluster}-{node.owner}-"
    if (share.pod or "").startswith(prefix) and share.pod.removeprefix(prefix).isdecimal():
        return ShareKind.KAFKA
    return ShareKind.DAEMON_SET if share.workload_type == DAEMON_SET else ShareKind.OTHER
