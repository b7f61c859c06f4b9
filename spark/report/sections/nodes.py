"""Makes the section of the nodes' cost by workload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from core.cost.pricing import total
from spark.report import document
from spark.report.document import Cell, ReportTable, Section
from spark.report.evidence import Evidence
from spark.report.words import count, decimal_places, money, percent
from spark.rows import Found
from spark.rules.meters import Attribution, Component
from spark.transforms.node_shares import ShareKind

ROWS_SHOWN = 40


def section(evidence: Evidence) -> Section | None:
    """Return what ran on the nodes, how to find out, or None of a bill without Kafka's nodes."""
    if not evidence.nodes:
        has_nodes = any(
            line.component == Component.BROKER_COMPUTE and line.attribution == Attribution.NODE_POOL
            for line in evidence.report.lines
        )
        missing = document.told("nodes", document.TEXTS["missing"]["nodes"])
        return replace(missing, method="") if has_nodes else None
    rows, currency = evidence.nodes, evidence.report.currency
    return document.told("nodes", _sentences(rows, currency), [_table(rows, currency)])


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

    def halves(name: str, note: str, split: Decimal, unused: Decimal) -> tuple[Cell, ...]:
        both = split + unused
        return (
            Cell(name, note=note),
            *(document.billed(amount, places) for amount in (split, unused, both)),
            document.part(both, whole),
        )

    def cells(row: Found) -> tuple[Cell, ...]:
        return halves(_name(row), _note(row, several=several), row.split_cost, row.unused_cost)

    def key(row: Found) -> str:
        return document.slug("node", f"{row.cluster} {row.kind} {row.namespace} {_name(row)}")

    foot = halves("Total", "", _split_cost(rows), total(row.unused_cost for row in rows))
    return document.table("nodes", currency, ranked, cells, key=key, foot=foot, most=ROWS_SHOWN)


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
