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

from core.cost.pricing import total
from spark.rows import Found, grouped, largest, row_type, summed
from spark.rules.names import Attribution, Component
from spark.schemas import NODE_SHARES

AMOUNTS = ("split_cost", "unused_cost", "net_split_cost", "net_unused_cost")
DAEMON_SET = "DaemonSet"
_Row = row_type(NODE_SHARES)


class ShareKind(StrEnum):
    """What a share of a node is for, in the order the report lists it."""

    KAFKA = "Kafka"
    DAEMON_SET = "daemon set"
    OTHER = "other pod"
    NOT_ALLOCATED = "not allocated"


def parts_of_hours(hours: Iterable[Found]) -> dict[tuple[str, str, int], dict[str, float]]:
    """Return, of each interval of an instance, which part of it was paid for in which way.

    Decimals are added up, so that the order of lines does not move a share.
    """
    found = {}
    known = (row for row in hours if row.at is not None)
    for key, rows in grouped(known, lambda r: (r.billing_period, r.instance_id, r.at)).items():
        whole = summed(rows, "hours")
        if whole > 0:
            ways = grouped(rows, lambda row: row.paid_by)
            found[key] = {
                way: float(summed(own, "hours")) / float(whole) for way, own in ways.items()
            }
    return found


def node_shares(usage: Iterable[Found], pods: Iterable[Found]) -> list[Found]:
    """Return NODE_SHARES of USAGE rows, and of what pods had of their nodes on each day."""
    nodes = _nodes(usage)
    found: list[Found] = []
    shared: dict[tuple[str, date, str], list[Found]] = {}
    for row in pods:
        node = nodes.get((row.billing_period, row.day, row.instance_id))
        if node is not None:
            costs = (getattr(row, name) for name in AMOUNTS)
            made = node._replace(
                kind=_kind(node, row).value,
                **{name: getattr(row, name) for name in ("paid_by", "eks_cluster", "namespace")},
                **{name: getattr(row, name) for name in ("workload_type", "workload", "pod")},
                **dict(zip(AMOUNTS, costs, strict=True)),
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


def _nodes(usage: Iterable[Found]) -> Mapping[tuple[str, date, str], Found]:
    """Return a row per day of a node of Kafka's pools, with what its own lines say it cost.

    One per node and day whatever its lines name: a negation may lack the zone.
    """
    own = (
        row
        for row in usage
        if row.component == Component.BROKER_COMPUTE.value
        and (row.resource_id or "").startswith("i-")
    )
    nodes = {}
    for key, rows in grouped(own, lambda r: (r.billing_period, r.day, r.resource_id)).items():
        pools = (r.owner for r in rows if r.attribution == Attribution.NODE_POOL.value)
        owner = largest(pools)
        if owner is None:
            continue
        known = dict.fromkeys(NODE_SHARES.names)
        costs = dict.fromkeys(AMOUNTS, Decimal(0))
        nodes[key] = _Row(
            **{
                **known,
                **costs,
                **dict(zip(("billing_period", "day", "instance_id"), key, strict=True)),
                "cluster": largest(row.cluster for row in rows),
                "owner": owner,
                "zone": largest(row.zone for row in rows),
                "currency": largest(row.currency for row in rows),
                "kind": ShareKind.NOT_ALLOCATED.value,
                "unused_cost": summed(rows, "amortised_cost"),
                "net_unused_cost": summed(rows, "net_cost"),
            }
        )
    return nodes


def _kind(node: Found, share: Found) -> ShareKind:
    """Say what a pod is: a broker's or controller's is named after the node pool it is in."""
    prefix = f"{node.cluster}-{node.owner}-"
    if (share.pod or "").startswith(prefix) and share.pod.removeprefix(prefix).isdecimal():
        return ShareKind.KAFKA
    return ShareKind.DAEMON_SET if share.workload_type == DAEMON_SET else ShareKind.OTHER
