"""Sums USAGE to the cost grain: all that later jobs need of a bill of any size.

The grain has neither resources nor accounts, but for the instances of Kafka's, of which the ledger
may know whose they were. It says as well what a bill pays for that is cheap to do without, by meter
alone, so that it is found on any bill: what a finding would save is all that its meter costs where
nothing is lost by it, and at most that where somebody has to look first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import pyarrow as pa  # type: ignore[import-untyped] # ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped] # the same

from spark.rows import Found, grouped, rows_of, summed
from spark.rules.line import DISCOUNT, MEANING_OF, meaning_of
from spark.rules.meters import Attribution, Component, Easy
from spark.tables import COST

# Of these all that a meter costs is saved; of the others at most that, once somebody has looked.
SURE = frozenset((Easy.EXTENDED_SUPPORT, Easy.IDLE_RESERVATION, Easy.IDLE_IPV4))
# What part of its cost a finding would save: Amazon EBS, general purpose volumes, "up to 20 % lower
# price per GB than gp2".
PARTS = {Easy.GP2_VOLUMES: Decimal("0.2")}

COSTS = ("billed_cost", "amortised_cost", "net_cost")
KEYS = (
    *("billing_period", "day", "component", "attribution", "cluster", "owner", "node_id", "zone"),
    # Of an instance whose node no line names its id, of a transfer its flow, of what is cheap to do
    # without which finding it is.
    *("currency", "instance_id", "flow", "easy"),
)
SUMS = ("charges", "gigabytes", *COSTS)
_BYTES = pa.array(["GB", "GiB"])


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


def grain_of(usage: pa.Table) -> pa.Table:
    """Return USAGE, with `flow` and `easy` beside it, in the cost grain: KEYS, SUMS, is_discounted.

    Grains of parts of a bill make the whole's by added_up().
    """
    resource, quantity = usage["resource_id"], usage["quantity"]
    is_instance = pc.and_(pc.starts_with(resource, "i-"), pc.is_null(usage["node_id"]))
    is_moved = pc.and_(pc.is_valid(usage["flow"]), pc.is_in(usage["unit"], _BYTES))
    nothing = pa.scalar(Decimal(0), quantity.type)
    own = {
        "instance_id": pc.if_else(is_instance, resource, None),
        "gigabytes": pc.if_else(is_moved, quantity, nothing),
        "is_discounted": are_discounts(usage),
    }
    for name, column in own.items():
        usage = usage.append_column(name, column)
    return added_up(usage, KEYS)


def table_grain(usage: pa.Table) -> pa.Table:
    """Return the USAGE table, which keeps neither `flow` nor `easy`, in the cost grain."""
    columns = (usage[name].to_pylist() for name in MEANING_OF)
    meanings = [*map(cache(meaning_of), *columns)]
    for place, name in enumerate(("flow", "easy")):
        texts = pa.array([each[place] for each in meanings], pa.string())
        usage = usage.append_column(name, texts)
    return grain_of(usage)


def net_of_discounts(usage: pa.Table) -> pa.Table:
    """Return USAGE, with has_net beside it, without the discounts that net columns already hold.

    An export of the compatible kind writes them as lines and leaves the net columns empty; one
    that has both would otherwise count them twice.
    """
    month = ["billing_period", "account"]
    has_net = set(rows_of(usage.filter(usage["has_net"]).select(month)))
    chosen = are_discounts(usage)
    rows = rows_of(usage.filter(chosen).select([*month, "net_cost"]))
    found = [Decimal(0) if row[:2] in has_net else row.net_cost for row in rows]
    place = usage.column_names.index("net_cost")
    return usage.set_column(place, usage.field(place), replaced(usage["net_cost"], chosen, found))


def are_discounts(usage: pa.Table) -> pa.ChunkedArray:
    """Say of each row whether it is a discount written as a line of its own."""
    return pc.fill_null(pc.ends_with(usage["category"], DISCOUNT), False)  # noqa: FBT003 - a value


def added_up(grain: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the sums of what these columns have in common, in the order first seen."""
    chosen = [*((name, "sum") for name in SUMS), ("is_discounted", "any")]
    made = grain.group_by(list(keys), use_threads=False).aggregate(chosen)
    return made.rename_columns([*keys, *SUMS, "is_discounted"])


def placed_by_month(grain: pa.Table) -> dict[str, Placed]:
    """Return what each month of the grain holds."""
    keys = ("billing_period", "component", "attribution", "cluster", "currency")
    months = grouped(rows_of(added_up(grain, keys)), lambda row: row.billing_period)
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


def cost_rows(grain: pa.Table, rotations: Iterable[Found] = ()) -> pa.Table:
    """Return the COST table: the grain without instances, flows and findings.

    The ledger's ROTATIONS know whose an instance was that is gone; the one that stands in its place
    is known where a pool has one node in its zone. Elsewhere it stays open, since no bill tells
    them apart.
    """
    nodes = rows_of(added_up(grain, ("cluster", "owner", "node_id")))
    alone = _only(((row.cluster, row.owner), row.node_id) for row in nodes)
    past = _only((row.instance_id, row.node_id) for row in rotations)
    is_open = pc.is_valid(grain["instance_id"])
    unnamed = rows_of(grain.filter(is_open).select(["instance_id", "cluster", "owner"]))
    found = [past.get(i, alone.get((cluster, owner))) for i, cluster, owner in unnamed]
    node_id = replaced(grain["node_id"], is_open, found)
    grain = grain.set_column(grain.column_names.index("node_id"), "node_id", node_id)
    keys = [name for name in KEYS if name in COST.schema.names]
    return added_up(grain, keys).select(COST.schema.names)


def replaced(
    column: pa.ChunkedArray, chosen: pa.ChunkedArray, values: Sequence[object]
) -> pa.Array:
    """Return a column with the chosen rows' values replaced, in their order."""
    whole, mask = column.combine_chunks(), chosen.combine_chunks()
    return pc.replace_with_mask(whole, mask, pa.array(values, column.type))


def _only(pairs: Iterable[tuple[object, int | None]]) -> Mapping[object, int]:
    """Return the node id of keys that have one; of two, neither is said."""
    found: dict[object, set[int]] = {}
    for key, node_id in pairs:
        if node_id is not None:
            found.setdefault(key, set()).add(node_id)
    return {key: min(ids) for key, ids in found.items() if len(ids) == 1}


@dataclass(frozen=True, slots=True)
class EasySaving:
    """What one meter came to in the month, of Kafka or of everybody else."""

    easy: Easy
    is_kafkas: bool
    usd: Decimal

    @property
    def saving(self) -> Decimal:
        """Return what could be saved of it, or at most."""
        return self.usd * PARTS.get(self.easy, Decimal(1))

    @property
    def at_most(self) -> bool:
        return self.easy not in SURE


def easy_savings(grain: pa.Table) -> list[EasySaving]:
    """Return what the easy findings of a cost grain cost, net and amortised; a handful."""
    found = rows_of(added_up(grain.filter(pc.is_valid(grain["easy"])), ("easy", "attribution")))
    keyed = grouped(found, lambda row: (row.easy, row.attribution != Attribution.NOBODY.value))
    costs = ((*key, summed(rows, "net_cost")) for key, rows in keyed.items())
    saved = [EasySaving(Easy(easy), is_kafkas, cost) for easy, is_kafkas, cost in costs if cost > 0]
    return sorted(saved, key=lambda each: (not each.is_kafkas, -each.saving))
