"""Evidence of traffic between zones: why bytes moved, and what fetching from the own zone saves."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from core.cost.pricing import total
from spark.report import document
from spark.report.document import Cell, ReportTable, Section
from spark.report.evidence import Evidence
from spark.report.words import DASH, money, most, percent, size, smallest_places
from spark.rows import Found
from spark.rules.meters import Certainty


def section(evidence: Evidence) -> Section | None:
    """Return the flows of the month, or None of a bill without any."""
    rows = [row for row in evidence.transfer if row.cluster is not None]
    flows = by_flow(rows)
    if not flows:
        return None
    currency = evidence.report.currency
    billed = total(flow.billed for flow in flows)
    largest = max(flows, key=lambda flow: flow.billed)
    said = [
        f"Kafka's traffic costs {money(billed, smallest_places(currency))} {currency}.",
        f"The largest flow is {largest.name} with {percent(largest.billed, billed)} of this cost.",
    ]
    said += _own_zone(flows, currency)
    if all(row.certainty == "billed" for row in rows):
        said.append("The report needs the brokers' counters (--metrics) to divide traffic by flow.")
    return document.told("transfer", said, [_table(flows, billed, currency)])


def _own_zone(flows: Sequence[FlowCost], currency: str) -> list[str]:
    """Return the saving of reads in the own zone, and how well it is known."""
    saving = total(flow.saving for flow in flows)
    if not saving:
        return []
    figure = f"{money(saving, smallest_places(currency))} {currency}"
    if all(flow.is_known for flow in flows if flow.saving):
        return [
            f"Reads in the consumer's own zone save {figure}.",
            "The brokers do not allow such reads yet.",
        ]
    return [
        f"Reads in the consumer's own zone save at most {figure}.",
        "The brokers' counters do not show which consumers read in their own zone already.",
    ]


class FlowCost:
    """One flow over the month."""

    def __init__(self, name: str, rows: Sequence[Found]) -> None:
        self.name = name
        self.certainty = ", ".join(sorted({row.certainty for row in rows}))
        self.billed_bytes = sum(row.billed_bytes or 0 for row in rows)
        self.billed = total(row.billed_cost for row in rows)
        self.saving = total(row.rack_aware_saving or Decimal(0) for row in rows)
        self.is_known = all(row.certainty != Certainty.AT_MOST.value for row in rows)


def by_flow(rows: Sequence[Found]) -> list[FlowCost]:
    """Return the flows, the dearest first."""
    names = dict.fromkeys(row.flow for row in rows)
    flows = [FlowCost(name, [row for row in rows if row.flow == name]) for name in names]
    return sorted(flows, key=lambda flow: (-flow.billed, flow.name))


def _saves(flow: FlowCost, places: int) -> str:
    return f"{most(not flow.is_known)}{money(flow.saving, places)}" if flow.saving else DASH


def _table(flows: list[FlowCost], billed: Decimal, currency: str) -> ReportTable:
    places = smallest_places(currency)

    def cells(flow: FlowCost) -> tuple[Cell, ...]:
        return (
            Cell(flow.name, note=flow.certainty),
            document.figure(size(flow.billed_bytes), flow.billed_bytes),
            document.billed(flow.billed, places),
            document.part(flow.billed, billed),
            Cell(_saves(flow, places), document.exact(flow.saving)),
        )

    return document.table(
        "transfer", currency, flows, cells, key=lambda flow: document.slug("flow", flow.name)
    )
