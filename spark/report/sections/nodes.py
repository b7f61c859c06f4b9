"""Makes the section of the nodes' cost by workload."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from core.cost.pricing import total
from spark.report import cells
from spark.report.document import Cell, Column, ReportTable, Row, Section, first_rows
from spark.report.evidence import Evidence
from spark.report.words import count, decimal_places, money, percent
from spark.rows import Found
from spark.rules.names import Attribution, Component
from spark.transforms.node_shares import ShareKind

ROWS_SHOWN = 40
TITLE = "Cost of Kafka's nodes by workload"
METHOD = (
    "AWS divides a node's amortised hour among its pods (split cost allocation data). A vCPU "
    "weighs nine times a GB of memory. A pod gets the larger of its request and its usage. AWS "
    "divides the idle rest among the pods of the node in proportion. Several lines may pay for "
    "one hour of a node: the report scales a share by their hours, as the Cloud Intelligence "
    "Dashboards do. This is a second view of the nodes' own lines; no other figure of this report "
    "contains it. The table node_shares has the same cost after private discounts."
)
MISSING = (
    "This bill has no split lines, so the report cannot divide the nodes' cost. Turn on split "
    "cost allocation data for EKS in the payer account (Billing, Cost Management preferences). "
    "Set INCLUDE_SPLIT_COST_ALLOCATION_DATA = TRUE in a CUR 2.0 export. AWS does not back-fill "
    "split lines. FOCUS has no split lines."
)


def section(evidence: Evidence) -> Section | None:
    """Return what ran on the nodes, how to find out, or None of a bill without Kafka's nodes."""
    if not evidence.nodes:
        has_nodes = any(
            line.component == Component.BROKER_COMPUTE and line.attribution == Attribution.NODE_POOL
            for line in evidence.report.lines
        )
        return (
            Section("nodes", TITLE, tuple(re.split(r"(?<=\.) (?=[A-Z])", MISSING)))
            if has_nodes
            else None
        )
    currency = evidence.report.currency
    return Section(
        key="nodes",
        title=TITLE,
        sentences=tuple(_sentences(evidence.nodes, currency)),
        tables=(_table(evidence.nodes, currency),),
        method=METHOD,
    )


def _sentences(rows: Sequence[Found], currency: str) -> list[str]:
    allocated = [row for row in rows if row.kind != ShareKind.NOT_ALLOCATED.value]
    whole = total(_whole_cost(row) for row in rows)
    places = decimal_places(whole, currency)
    kafka = _split_cost(row for row in allocated if row.kind == ShareKind.KAFKA.value)
    others = _split_cost(row for row in allocated if row.kind != ShareKind.KAFKA.value)
    idle = total(row.unused_cost for row in allocated)
    told = [
        f"Kafka's nodes cost {money(whole, places)} {currency}, amortised.",
        f"Kafka's pods used {percent(kafka, whole)} of this cost.",
        f"Daemon sets and other pods used {percent(others, whole)}.",
        f"{percent(idle, whole)} was idle.",
    ]
    rest = whole - kafka - others - idle
    # AWS writes ten places of a share: less than this is rounding.
    if abs(rest) >= Decimal("0.01"):
        told.append(
            f"{money(rest, places)} {currency} has no split line, for example hours before "
            f"split cost allocation data was on."
        )
    return told


def _split_cost(rows: Iterable[Found]) -> Decimal:
    return total(row.split_cost for row in rows)


def _whole_cost(row: Found) -> Decimal:
    return Decimal(row.split_cost + row.unused_cost)


def _table(rows: Sequence[Found], currency: str) -> ReportTable:
    order = {kind.value: place for place, kind in enumerate(ShareKind)}
    ranked = sorted(rows, key=lambda row: (order[row.kind], -_whole_cost(row), _name(row)))
    whole = total(_whole_cost(row) for row in rows)
    places = decimal_places(whole, currency)
    several = len({row.cluster for row in rows}) > 1
    columns = (
        Column("Workload", is_text=True),
        Column("Requested or used", currency, wide=True),
        Column("Idle", currency, wide=True),
        Column("Total", currency),
        Column("Share"),
    )

    def halves(name: str, note: str, split: Decimal, unused: Decimal) -> tuple[Cell, ...]:
        both = split + unused
        return (
            Cell(name, note=note),
            *(cells.billed(amount, places) for amount in (split, unused, both)),
            cells.part(both, whole),
        )

    listed = [
        Row(
            halves(_name(row), _note(row, several=several), row.split_cost, row.unused_cost),
            key=cells.slug("node", f"{row.cluster} {row.kind} {row.namespace} {_name(row)}"),
        )
        for row in ranked
    ]
    first, left_out = first_rows(listed, ROWS_SHOWN)
    unused = total(row.unused_cost for row in rows)
    foot = halves("Total", "", _split_cost(rows), unused)
    return ReportTable("", columns, first, foot=foot, left_out=left_out)


def _name(row: Found) -> str:
    if row.kind == ShareKind.KAFKA.value:
        return "Kafka"
    if row.kind == ShareKind.NOT_ALLOCATED.value:
        return "No split line"
    return str(row.workload or "pods without a controller")


def _note(row: Found, *, several: bool) -> str:
    parts = [str(row.cluster)] if several else []
    if row.kind != ShareKind.NOT_ALLOCATED.value:
        kind = "" if row.kind == ShareKind.KAFKA.value else f"{row.workload_type or row.kind}, "
        where = f" in {row.namespace}" if row.namespace else ""
        parts.append(f"{kind}{count(row.pods, 'pod')}{where}")
    return ", ".join(parts)
