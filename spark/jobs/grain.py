"""Sums USAGE to the cost grain: all that later jobs need of a bill of any size.

Nothing else of the bill's size comes to the driver: the grain has neither resources nor accounts,
but for the instances of Kafka's, of which the ledger may know whose they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from core.cost.pricing import total
from spark.rows import Found, grouped, row_type, summed
from spark.rules.names import Attribution, Component
from spark.samples import Series
from spark.transforms.transfer import DailyTraffic

COSTS = ("billed_cost", "amortised_cost", "net_cost")
KEYS = (
    *("billing_period", "day", "component", "attribution", "cluster", "owner", "node_id", "zone"),
    # Of an instance whose node no line names its id, of a transfer its flow, of what is cheap to do
    # without which finding it is.
    *("currency", "instance_id", "flow", "easy"),
)
Grain = row_type([*KEYS, "charges", "gigabytes", *COSTS, "is_discounted"])


@dataclass(frozen=True)
class Beside:
    """What is known beside a bill: what was sampled, whose an instance was, why bytes moved."""

    samples: Sequence[Series] = ()
    rotations: Sequence[Found] = ()
    traffic: DailyTraffic = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placed:
    """What the table holds of one month."""

    charges: int
    billed: Decimal
    quarantined: int
    currencies: Sequence[str]
    clusters: frozenset[str]
    has_kafka: bool
    is_discounted: bool


def placed_by_month(grain: Iterable[Found]) -> dict[str, Placed]:
    """Return what each month of the grain holds."""
    months = grouped(grain, lambda row: row.billing_period)
    return {period: _placed(rows) for period, rows in months.items()}


def _placed(rows: Sequence[Found]) -> Placed:
    unread = [row for row in rows if row.component == Component.UNREADABLE.value]
    read = (row for row in rows if row.component != Component.UNREADABLE.value)
    return Placed(
        charges=sum(row.charges for row in rows),
        billed=summed(rows, "billed_cost"),
        quarantined=sum(row.charges for row in unread),
        currencies=sorted({row.currency for row in read if row.currency is not None}),
        clusters=frozenset(row.cluster for row in rows if row.cluster is not None),
        has_kafka=any(row.attribution != Attribution.NOBODY.value for row in rows),
        is_discounted=any(row.is_discounted for row in rows),
    )


def cost_rows(grain: Sequence[Found], rotations: Iterable[Found] = ()) -> list[Any]:
    """Return the COST table: the grain without instances, flows and findings.

    The ledger's ROTATIONS know whose an instance was that is gone; the one that stands in its place
    is known where a pool has one node in its zone. Elsewhere it stays open, since no bill tells
    them apart.
    """
    past = _only((row.instance_id, row.node_id) for row in rotations)
    alone = _only(((row.cluster, row.owner), row.node_id) for row in grain)

    def key(row: Found) -> tuple[object, ...]:
        node_id = row.node_id
        if row.instance_id is not None:
            node_id = past.get(row.instance_id, alone.get((row.cluster, row.owner)))
        return (*row[:6], node_id, row.zone, row.currency)

    return [
        (
            *known,
            sum(row.charges for row in rows),
            *(total(getattr(row, name) for row in rows) for name in COSTS),
        )
        for known, rows in grouped(grain, key).items()
    ]


def _only(pairs: Iterable[tuple[object, int | None]]) -> Mapping[object, int]:
    """Return the node id of keys that have one; of two, neither is said."""
    found: dict[object, set[int]] = {}
    for key, node_id in pairs:
        if node_id is not None:
            found.setdefault(key, set()).add(node_id)
    return {key: min(ids) for key, ids in found.items() if len(ids) == 1}
